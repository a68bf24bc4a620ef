//! The instance's end of a join connection.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use cluster_model::WorkerId;
use control_plane::{VerifiedWorker, VerifyFuture};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use types::Clock;

use super::{
    FrameError, FromInstance, FromWorker, HELLO_TIMEOUT, Hello, SILENCE_TIMEOUT, Welcome, read_message, write_message,
};
use crate::mutual_tls::{CertificateName, with_timeout};
use crate::tls_listener::PendingConnection;

/// Time limit for the verification of a token.
const TOKEN_VERIFICATION_TIMEOUT: Duration = Duration::from_secs(4);
/// Length of a worker's send queue. A worker that reads too slowly is disconnected.
const SEND_QUEUE_LENGTH: usize = 64;

/// Registry of workers that decides about joins and handles messages.
pub(crate) trait WorkerRegistry: Send + Sync + 'static {
    /// Verifies a token and returns the slot that it stands for.
    ///
    /// # Errors
    /// The reason why the token belongs to no worker of this instance.
    fn verify_token<'a>(&'a self, token: &'a str) -> VerifyFuture<'a>;

    /// Decides whether a worker may join. `is_certified` tells whether its certificate matches its id, `verified` is
    /// the result of verifying its token. If it may, this connection replaces its earlier one, and `sender` sends to
    /// it.
    ///
    /// # Errors
    /// The reason for the refusal.
    fn try_join(
        &self,
        hello: &Hello,
        is_certified: bool,
        verified: Option<VerifiedWorker>,
        sender: mpsc::Sender<FromInstance>,
    ) -> Result<(Box<Welcome>, ConnectionNumber), String>;

    /// Handles a message of a worker.
    fn handle_message(&self, worker: WorkerId, message: FromWorker);

    /// Records that a worker's connection is closed.
    fn handle_disconnect(&self, worker: WorkerId, connection: ConnectionNumber);
}

/// Number that distinguishes a worker's connections.
pub(crate) type ConnectionNumber = u64;

/// Serves one join connection until it is closed.
pub(crate) async fn serve_join<R: WorkerRegistry>(registry: Arc<R>, pending: PendingConnection, clock: Arc<dyn Clock>) {
    let PendingConnection { mut stream, permit } = pending;
    let hello = async { read_message::<Hello>(&mut stream).await.map_err(io::Error::other) };
    let hello = match with_timeout(&clock, HELLO_TIMEOUT, hello).await {
        Ok(Some(hello)) => hello,
        Ok(None) => return,
        Err(error) => return tracing::debug!(%error, "a connecting worker sent no valid hello message"),
    };
    let (worker, version) = (hello.worker, &hello.version);
    let is_certified = CertificateName::Worker(worker).matches_peer(&stream);
    let (sender, queued) = mpsc::channel(SEND_QUEUE_LENGTH);
    let verifying = async {
        match &hello.token {
            Some(token) => Ok::<_, io::Error>(registry.verify_token(&token.0).await.map(Some)),
            None => Ok(Ok(None)),
        }
    };
    let verified = with_timeout(&clock, TOKEN_VERIFICATION_TIMEOUT, verifying).await;
    // Close without a refusal, so that the worker tries again.
    let Ok(verified) = verified else { return tracing::warn!(%worker, "verification of a worker's token timed out") };
    let welcomed = verified.and_then(|verified| registry.try_join(&hello, is_certified, verified, sender.clone()));
    let (welcome, connection) = match welcomed {
        Ok(welcome) => welcome,
        Err(reason) => {
            tracing::warn!(%worker, version, reason, "refused a worker");
            let refusal = FromInstance::Refused(reason);
            let refusing = async {
                write_message(&mut stream, &refusal).await.map_err(io::Error::other)?;
                stream.shutdown().await
            };
            // Best effort: the worker may have disconnected already.
            let _ = with_timeout(&clock, HELLO_TIMEOUT, refusing).await;
            return;
        }
    };
    drop(permit);
    let (reading, writing) = tokio::io::split(stream);
    let ended = tokio::select! {
        ended = receive_messages(&*registry, worker, reading, &sender, &clock) => ended,
        ended = send_messages(FromInstance::Welcome(welcome), queued, writing) => ended,
    };
    if let Err(error) = ended {
        tracing::debug!(%worker, %error, "lost the join connection to a worker");
    }
    registry.handle_disconnect(worker, connection);
}

/// Receives a worker's messages until it closes the connection or is silent for too long.
async fn receive_messages(
    registry: &impl WorkerRegistry,
    worker: WorkerId,
    mut from: impl AsyncRead + Unpin,
    sender: &mpsc::Sender<FromInstance>,
    clock: &Arc<dyn Clock>,
) -> io::Result<()> {
    loop {
        let next = async { read_message::<FromWorker>(&mut from).await.map_err(io::Error::other) };
        let Some(message) = with_timeout(clock, SILENCE_TIMEOUT, next).await? else { return Ok(()) };
        let is_beat = matches!(message, FromWorker::Heartbeat(_));
        registry.handle_message(worker, message);
        if is_beat && sender.try_send(FromInstance::HeartbeatReceived).is_err() {
            return Err(io::Error::other(
                "closed the join connection: the worker reads too slowly, and the queue of messages to it is full",
            ));
        }
    }
}

/// Sends the queued messages to a worker.
async fn send_messages(
    first: FromInstance,
    mut queued: mpsc::Receiver<FromInstance>,
    mut to: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let failed = |error: FrameError| io::Error::other(error);
    write_message(&mut to, &first).await.map_err(failed)?;
    while let Some(message) = queued.recv().await {
        write_message(&mut to, &message).await.map_err(failed)?;
    }
    Ok(())
}
