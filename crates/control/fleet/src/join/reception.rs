//! The instance's end of a worker's connection.

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

/// Whoever is asked whose a token is answers within this.
const VOUCH_TIME_MAX: Duration = Duration::from_secs(4);
/// Words that may wait for a worker to take them. One that leaves more is cut off.
const WAITING_MAX: usize = 64;

/// Who knows the workers.
pub(crate) trait Desk: Send + Sync + 'static {
    /// Whose token somebody shows.
    ///
    /// # Errors
    /// Why it is no worker's.
    fn vouch<'a>(&'a self, token: &'a str) -> Vouching<'a>;

    /// Decides about one who says to be a worker, and has shown its certificate or not, or for whom somebody vouches. Of one that is welcome this is the connection from now
    /// on, over which `say` reaches it.
    ///
    /// # Errors
    /// Why it is refused.
    fn welcome(
        &self,
        hello: &Hello,
        is_certified: bool,
        vouched: Option<Vouched>,
        say: mpsc::Sender<FromInstance>,
    ) -> Result<(Box<Welcome>, LinkNumber), String>;

    /// What a worker says.
    fn heard(&self, worker: WorkerId, said: FromWorker);

    /// A connection is gone.
    fn unlinked(&self, worker: WorkerId, link: LinkNumber);
}

/// Tells a worker's connections from each other.
pub(crate) type LinkNumber = u64;

/// Serves one connection to its end.
pub(crate) async fn receive<D: Desk>(desk: Arc<D>, stranger: Stranger, clock: Arc<dyn Clock>) {
    let Stranger { mut stream, place } = stranger;
    let hello = async { read::<Hello>(&mut stream).await.map_err(io::Error::other) };
    let hello = match within(&clock, HELLO_TIME_MAX, hello).await {
        Ok(Some(hello)) => hello,
        Ok(None) => return,
        Err(error) => return tracing::debug!(%error, "who has connected does not say who it is"),
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
    // Who asks again is perhaps answered.
    let Ok(vouched) = vouched else { return tracing::warn!(%worker, "nobody says in time whose a token is") };
    let welcomed = vouched.and_then(|vouched| desk.welcome(&hello, is_certified, vouched, say.clone()));
    let (welcome, link) = match welcomed {
        Ok(welcome) => welcome,
        Err(reason) => {
            tracing::warn!(%worker, version, reason, "a worker is refused");
            let refusal = FromInstance::Refused(reason);
            let refusing = async {
                write(&mut stream, &refusal).await.map_err(io::Error::other)?;
                stream.shutdown().await
            };
            // Who does not wait for the answer does not miss it.
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
        tracing::debug!(%worker, %error, "the connection of a worker broke");
    }
    desk.unlinked(worker, link);
}

/// Takes what a worker says until it ends, or says nothing for too long.
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
            return Err(io::Error::other("it takes no answers"));
        }
    }
}

/// Tells a worker what there is to tell.
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
