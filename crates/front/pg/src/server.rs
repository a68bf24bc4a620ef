//! The accept loop: one task for each connection, and an orderly end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use authentication::{Certificate, ConnectionLimit, Counted, Tls};
use pgwire::messages::PgWireBackendMessage;
use pgwire::tokio::server::MaybeTls;
use session::Session;
use session::backends::Newcomer;
use session::instance::Instance;
use session::notice::Severity;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;
use types::{Condition, SqlError, SqlResult};

use crate::authenticate::authenticate;
use crate::connection::Connection;
use crate::error_message::error_response;
use crate::startup::{self, Beginning, Opened, OpeningError};

/// Connections that have not authenticated, beside those that have. One more closes the oldest of them that has had [`STARTING_TIME_MIN`].
const STARTING_MAX: usize = 200;
/// Time to authenticate that a connection has however many come with it: a pool may open hundreds at once.
const STARTING_TIME_MIN: Duration = Duration::from_secs(5);
/// How long cancelled statements get to say goodbye once the grace period is over.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// After a failed accept (too many open files, mostly): trying at once would only burn the processor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The settings of the PostgreSQL port.
#[derive(Debug, Clone, Copy)]
pub struct PgSettings {
    /// From the first byte to the end of authentication.
    pub startup_timeout: Duration,
    /// Time for running statements to finish after a request to shut down.
    pub shutdown_grace: Duration,
}

impl Default for PgSettings {
    fn default() -> Self {
        Self { startup_timeout: Duration::from_secs(60), shutdown_grace: Duration::from_secs(10) }
    }
}

/// Serves until `shutdown` fires and every connection has ended. Idle sessions end at once with 57P01; running
/// statements get the grace period, then are cancelled with 57P01.
///
/// # Errors
/// None at present; a connection that fails is its own matter.
pub async fn serve(
    instance: Arc<Instance>,
    settings: PgSettings,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let connections = TaskTracker::new();
    let starting = ConnectionLimit::new(STARTING_MAX);
    loop {
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "could not accept a connection");
                    instance.clock.sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
            () = shutdown.cancelled() => break,
        };
        instance.metrics.connections_total.inc();
        if connections.len() >= instance.backends.connections_max() + STARTING_MAX {
            instance.metrics.connections_refused.inc();
            let error = SqlError::new(Condition::TooManyConnections, "sorry, too many clients already");
            refuse(&mut MaybeTls::Plain(stream), &error).await;
            continue;
        }
        let span = tracing::info_span!("connection", %peer, pid = tracing::field::Empty, role = tracing::field::Empty);
        let starting = starting.count();
        let timeout = settings.startup_timeout;
        connections
            .spawn(one(Arc::clone(&instance), timeout, stream, peer, starting, shutdown.clone()).instrument(span));
    }
    drop(listener);
    connections.close();
    tokio::select! {
        () = connections.wait() => return Ok(()),
        () = instance.clock.sleep(settings.shutdown_grace) => {}
    }
    tracing::info!(connections = connections.len(), "the grace period is over: cancelling what still runs");
    instance.backends.terminate_all();
    tokio::select! {
        () = connections.wait() => {}
        () = instance.clock.sleep(LAST_WORDS) => tracing::warn!(connections = connections.len(), "left connections behind"),
    }
    Ok(())
}

/// One connection from its first byte to its last.
async fn one(
    instance: Arc<Instance>,
    startup_timeout: Duration,
    stream: TcpStream,
    peer: SocketAddr,
    starting: Counted,
    shutdown: CancellationToken,
) {
    let begun = instance.clock.monotonic();
    let too_many = async {
        starting.is_to_close().await;
        instance.clock.sleep((begun + STARTING_TIME_MIN).saturating_sub(instance.clock.monotonic())).await;
    };
    let opening = Box::pin(enter(&instance, stream, peer));
    let connection = tokio::select! {
        connection = opening => connection,
        () = instance.clock.sleep(startup_timeout) => return tracing::debug!("timed out before it began"),
        () = too_many => return tracing::debug!("closed before it began: too many begin at once"),
        () = shutdown.cancelled() => return,
    };
    drop(starting);
    if let Some(connection) = connection {
        Box::pin(connection.run(shutdown)).await;
    }
}

/// Start-up and authentication; a refusal is told to the client.
async fn enter(instance: &Arc<Instance>, stream: TcpStream, peer: SocketAddr) -> Option<Connection> {
    // The same for all of its beginning, whatever is shown to those that come later.
    let tls = instance.credentials.certificate().map(Certificate::shown);
    match startup::open(stream, peer, tls.as_ref()).await {
        Ok(Some(Beginning::Session(mut opened))) => match welcome(instance, &mut opened, tls.as_ref()).await {
            Ok(Some(session)) => Some(Connection::new(Arc::clone(instance), *opened, session)),
            Ok(None) => None,
            Err(error) => {
                instance.metrics.connections_refused.inc();
                tracing::info!(user = opened.request.user, %error, "connection refused");
                refuse(&mut opened.stream, &error).await;
                None
            }
        },
        Ok(Some(Beginning::Cancel { pid, secret })) => {
            instance.backends.cancel_request(pid, &secret);
            None
        }
        Ok(None) => None,
        Err(OpeningError::Refused(refused)) => {
            let (mut stream, error) = *refused;
            instance.metrics.connections_refused.inc();
            refuse(&mut stream, &error).await;
            None
        }
        Err(OpeningError::Broken(error)) => {
            tracing::debug!(%error, "connection broke before it began");
            None
        }
    }
}

/// Authentication, a seat in the list of sessions, and the settings to start with; `None` if the client left.
async fn welcome(instance: &Arc<Instance>, opened: &mut Opened, tls: Option<&Tls>) -> SqlResult<Option<Session>> {
    if let Some(negotiation) = opened.request.negotiation.take() {
        let mut bytes = bytes::BytesMut::new();
        if negotiation.message().encode(&mut bytes).is_err() || opened.stream.write_all(&bytes).await.is_err() {
            return Ok(None);
        }
    }
    let Some(role) = authenticate(opened, instance, tls).await? else { return Ok(None) };
    let newcomer = Newcomer {
        role: Arc::clone(&role),
        database: opened.request.database.clone(),
        peer: opened.peer,
        secret_bytes: if opened.request.minor == 0 { 4 } else { 32 },
        now_us: instance.clock.now_us(),
        clock: Arc::clone(&instance.clock),
    };
    let seat = instance.backends.enter(newcomer, &*instance.random)?;
    let span = tracing::Span::current();
    span.record("pid", seat.backend.pid);
    span.record("role", &role.name);
    Session::new(Arc::clone(instance), seat, role, &opened.request.settings).map(Some)
}

async fn refuse<S: AsyncWrite + Unpin>(stream: &mut S, error: &SqlError) {
    let mut bytes = bytes::BytesMut::new();
    let message = PgWireBackendMessage::ErrorResponse(error_response(Severity::Fatal, error, None));
    if message.encode(&mut bytes).is_ok() {
        // The client may be gone already, which is no loss here.
        let _ = stream.write_all(&bytes).await;
        let _ = stream.shutdown().await;
    }
}
