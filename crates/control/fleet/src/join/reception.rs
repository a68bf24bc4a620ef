//! The instance's end of a join connection.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use cluster_model::WorkerId;
use control_plane::{Vouched, Vouching};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use types::Clock;

use super::{FrameError, FromInstance, FromWorker, HELLO_TIME_MAX, Hello, SILENCE_MAX, Welcome, read, write};
use crate::identity::{Name, within};
use crate::listen::Stranger;

/// Time limit for the verification of a token.
const VOUCH_TIME_MAX: Duration = Duration::from_secs(4);
/// Length of a worker's send queue. A worker that reads too slowly is disconnected.
const WAITING_MAX: usize = 64;

/// Registry of workers that decides about joins and handles messages.
pub(crate) trait Desk: Send + Sync + 'static {
    /// Verifies a token and returns the slot that it stands for.
    ///
    /// # Errors
    /// The reason why the token belongs to no worker of this instance.
    fn vouch<'a>(&'a self, token: &'a str) -> Vouching<'a>;

    /// Decides whether a worker may join. `is_certified` tells whether its certificate matches its id, `vouched` is the
    /// result of verifying its token. If it may, this connection replaces its earlier one, and `say` sends to it.
    ///
    /// # Errors
    /// The reason for the refusal.
    fn welcome(
        &self,
        hello: &Hello,
        is_certified: bool,
        vouched: Option<Vouched>,
        say: mpsc::Sender<FromInstance>,
    ) -> Result<(Box<Welcome>, LinkNumber), String>;

    /// Handles a message of a worker.
    fn heard(&self, worker: WorkerId, said: FromWorker);

    /// Records that a worker's connection is closed.
    fn unlinked(&self, worker: WorkerId, link: LinkNumber);
}

/// Number that distinguishes a worker's connections.
pub(crate) type LinkNumber = u64;

/// Serves one join connection until it is closed.
pub(crate) async fn receive<D: Desk>(desk: Arc<D>, stranger: Stranger, clock: Arc<dyn Clock>) {
    let Stranger { mut stream, place } = stranger;
    let hello = async { read::<Hello>(&mut stream).await.map_err(io::Error::other) };
    let hello = match within(&clock, HELLO_TIME_MAX, hello).await {
        Ok(Some(hello)) => hello,
        Ok(None) => return,
        Err(error) => return tracing::debug!(%error, "received no valid hello message"),
    };
    let (worker, version) = (hello.worker, &hello.version);
    let is_certified = Name::Worker(worker).is_of(&stream);
    let (say, told) = mpsc::channel(WAITING_MAX);
    let vouching = async {
        match &hello.token {
            Some(token) => Ok::<_, io::Error>(desk.vouch(&token.0).await.map(Some)),
            None => Ok(Ok(None)),
        }
    };
    let vouched = within(&clock, VOUCH_TIME_MAX, vouching).await;
    // Close without a refusal, so that the worker tries again.
    let Ok(vouched) = vouched else { return tracing::warn!(%worker, "verification of a worker's token timed out") };
    let welcomed = vouched.and_then(|vouched| desk.welcome(&hello, is_certified, vouched, say.clone()));
    let (welcome, link) = match welcomed {
        Ok(welcome) => welcome,
        Err(reason) => {
            tracing::warn!(%worker, version, reason, "refused a worker");
            let refusal = FromInstance::Refused(reason);
            let refusing = async {
                write(&mut stream, &refusal).await.map_err(io::Error::other)?;
                stream.shutdown().await
            };
            // Best effort: the worker may have disconnected already.
            let _ = within(&clock, HELLO_TIME_MAX, refusing).await;
            return;
        }
    };
    drop(place);
    let (reading, writing) = tokio::io::split(stream);
    let ended = tokio::select! {
        ended = hear(&*desk, worker, reading, &say, &clock) => ended,
        ended = tell(FromInstance::Welcome(welcome), told, writing) => ended,
    };
    if let Err(error) = ended {
        tracing::debug!(%worker, %error, "connection to a worker failed");
    }
    desk.unlinked(worker, link);
}

/// Receives a worker's messages until it closes the connection or is silent for too long.
async fn hear(
    desk: &impl Desk,
    worker: WorkerId,
    mut from: impl AsyncRead + Unpin,
    say: &mpsc::Sender<FromInstance>,
    clock: &Arc<dyn Clock>,
) -> io::Result<()> {
    loop {
        let next = async { read::<FromWorker>(&mut from).await.map_err(io::Error::other) };
        let Some(said) = within(clock, SILENCE_MAX, next).await? else { return Ok(()) };
        let is_beat = matches!(said, FromWorker::Beat(_));
        desk.heard(worker, said);
        if is_beat && say.try_send(FromInstance::Heard).is_err() {
            return Err(io::Error::other("the worker's send queue is full"));
        }
    }
}

/// Sends the queued messages to a worker.
async fn tell(
    first: FromInstance,
    mut told: mpsc::Receiver<FromInstance>,
    mut to: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let failed = |error: FrameError| io::Error::other(error);
    write(&mut to, &first).await.map_err(failed)?;
    while let Some(message) = told.recv().await {
        write(&mut to, &message).await.map_err(failed)?;
    }
    Ok(())
}
