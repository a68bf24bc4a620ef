//! Accept loop with one task per connection, and an orderly shutdown.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use authentication::{Certificate, ConnectionLimit, CountedConnection, Tls};
use pgwire::messages::PgWireBackendMessage;
use pgwire::tokio::server::MaybeTls;
use session::Session;
use session::backends::NewSession;
use session::instance::Instance;
use session::message_severity::Severity;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;
use types::{Condition, SqlError, SqlResult};

use crate::authenticate::authenticate;
use crate::connection::Connection;
use crate::error_message::error_response;
use crate::startup::{self, PendingConnection, StartupError, StartupRequest};

/// Maximum number of connections that have not authenticated, beside those that have. One more closes the oldest of
/// them that has had [`AUTHENTICATION_TIME_MIN`].
const UNAUTHENTICATED_MAX: usize = 200;
/// Time that each connection has to authenticate, however many others there are: a pool may open hundreds at once.
const AUTHENTICATION_TIME_MIN: Duration = Duration::from_secs(5);
/// Time that cancelled statements have to report to their clients after the grace period.
const CANCEL_GRACE: Duration = Duration::from_secs(2);
/// Pause after a failed accept (mostly too many open files), which would fail again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Settings of the PostgreSQL port.
#[derive(Debug, Clone, Copy)]
pub struct PgSettings {
    /// Time from accepting a connection to the end of its authentication.
    pub startup_timeout: Duration,
    /// Time that running statements have to finish after a request to shut down.
    pub shutdown_grace: Duration,
}

impl Default for PgSettings {
    fn default() -> Self {
        Self { startup_timeout: Duration::from_secs(60), shutdown_grace: Duration::from_secs(10) }
    }
}

/// Serves clients until `shutdown` is cancelled and every connection has ended. Idle sessions end at once with 57P01;
/// running statements get the grace period, then are cancelled with 57P01.
///
/// # Errors
/// None at present; errors of a connection only end that connection.
pub async fn serve(
    instance: Arc<Instance>,
    settings: PgSettings,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let connections = TaskTracker::new();
    let unauthenticated = ConnectionLimit::new(UNAUTHENTICATED_MAX);
    loop {
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "could not accept a client connection");
                    instance.clock.sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
            () = shutdown.cancelled() => break,
        };
        instance.metrics.connections_total.inc();
        if connections.len() >= instance.backends.connections_max() + UNAUTHENTICATED_MAX {
            instance.metrics.connections_refused.inc();
            let error = SqlError::new(Condition::TooManyConnections, "sorry, too many clients already");
            refuse(&mut MaybeTls::Plain(stream), &error).await;
            continue;
        }
        let span = tracing::info_span!("connection", %peer, pid = tracing::field::Empty, role = tracing::field::Empty);
        let starting = unauthenticated.add();
        let timeout = settings.startup_timeout;
        connections.spawn(
            serve_connection(Arc::clone(&instance), timeout, stream, peer, starting, shutdown.clone()).instrument(span),
        );
    }
    drop(listener);
    connections.close();
    tokio::select! {
        () = connections.wait() => return Ok(()),
        () = instance.clock.sleep(settings.shutdown_grace) => {}
    }
    tracing::info!(connections = connections.len(), "shutdown grace period is over: cancelling running statements");
    instance.backends.terminate_all();
    tokio::select! {
        () = connections.wait() => {}
        () = instance.clock.sleep(CANCEL_GRACE) =>
            tracing::warn!(connections = connections.len(), "abandoning client connections that did not end at shutdown"),
    }
    Ok(())
}

/// Serves one connection from its first byte to its last.
async fn serve_connection(
    instance: Arc<Instance>,
    startup_timeout: Duration,
    stream: TcpStream,
    peer: SocketAddr,
    unauthenticated: CountedConnection,
    shutdown: CancellationToken,
) {
    let begun = instance.clock.monotonic();
    let too_many = async {
        unauthenticated.close_requested().await;
        instance.clock.sleep((begun + AUTHENTICATION_TIME_MIN).saturating_sub(instance.clock.monotonic())).await;
    };
    let opening = Box::pin(start_up(&instance, stream, peer));
    let connection = tokio::select! {
        connection = opening => connection,
        () = instance.clock.sleep(startup_timeout) => return tracing::debug!("client did not authenticate in time"),
        () = too_many => {
            return tracing::debug!("closed an unauthenticated connection for a newer one: there are too many");
        }
        () = shutdown.cancelled() => return,
    };
    drop(unauthenticated);
    if let Some(connection) = connection {
        Box::pin(connection.run(shutdown)).await;
    }
}

/// Runs startup and authentication; `None` if the connection ends here. Refusals are sent to the client.
async fn start_up(instance: &Arc<Instance>, stream: TcpStream, peer: SocketAddr) -> Option<Connection> {
    // One certificate for the whole startup, even if it is replaced meanwhile.
    let tls = instance.credentials.certificate().map(Certificate::current_tls);
    match startup::read_startup(stream, peer, tls.as_ref()).await {
        Ok(Some(StartupRequest::Session(mut opened))) => match begin_session(instance, &mut opened, tls.as_ref()).await
        {
            Ok(Some(session)) => Some(Connection::new(Arc::clone(instance), *opened, session)),
            Ok(None) => None,
            Err(error) => {
                instance.metrics.connections_refused.inc();
                tracing::info!(user = opened.request.user, %error, "refused a client connection");
                refuse(&mut opened.stream, &error).await;
                None
            }
        },
        Ok(Some(StartupRequest::Cancel { pid, secret })) => {
            instance.backends.cancel_request(pid, &secret);
            None
        }
        Ok(None) => None,
        Err(StartupError::Refused(refused)) => {
            let (mut stream, error) = *refused;
            instance.metrics.connections_refused.inc();
            refuse(&mut stream, &error).await;
            None
        }
        Err(StartupError::Broken(error)) => {
            tracing::debug!(%error, "client connection failed during startup");
            None
        }
    }
}

/// Authenticates the client and creates its session; `None` if the client has left.
async fn begin_session(
    instance: &Arc<Instance>,
    opened: &mut PendingConnection,
    tls: Option<&Tls>,
) -> SqlResult<Option<Session>> {
    if let Some(negotiation) = opened.request.negotiation.take() {
        let mut bytes = bytes::BytesMut::new();
        if negotiation.into_message().encode(&mut bytes).is_err() || opened.stream.write_all(&bytes).await.is_err() {
            return Ok(None);
        }
    }
    let Some(role) = authenticate(opened, instance, tls).await? else { return Ok(None) };
    let newcomer = NewSession {
        role: Arc::clone(&role),
        database: opened.request.database.clone(),
        peer: opened.peer,
        secret_bytes: if opened.request.minor == 0 { 4 } else { 32 },
        now_us: instance.clock.now_us(),
        clock: Arc::clone(&instance.clock),
    };
    let seat = instance.backends.add(newcomer, &*instance.random)?;
    let span = tracing::Span::current();
    span.record("pid", seat.backend.pid);
    span.record("role", &role.name);
    Session::new(Arc::clone(instance), seat, role, &opened.request.settings).map(Some)
}

/// Sends a fatal error and closes the connection.
async fn refuse<S: AsyncWrite + Unpin>(stream: &mut S, error: &SqlError) {
    let mut bytes = bytes::BytesMut::new();
    let message = PgWireBackendMessage::ErrorResponse(error_response(Severity::Fatal, error, None));
    if message.encode(&mut bytes).is_ok() {
        // The client may be gone already.
        let _ = stream.write_all(&bytes).await;
        let _ = stream.shutdown().await;
    }
}
