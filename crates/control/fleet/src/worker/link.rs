//! The worker's end of the join connection.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::KeyPair;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_rustls::client::TlsStream;
use types::Clock;

use super::{Office, WorkerSettings};
use crate::identity::{Credentials, Name, dial_as_stranger, within};
use crate::join::{
    BEAT_EVERY, Base64, FromInstance, FromWorker, HELLO_TIME_MAX, Hello, Joined, PROTOCOL, SILENCE_MAX, Welcome, read,
    write,
};

pub(super) type Stream = Box<TlsStream<TcpStream>>;

/// Client that connects to the instance and joins.
pub(super) struct Caller<'a> {
    pub(super) settings: &'a WorkerSettings,
    pub(super) key: &'a KeyPair,
    pub(super) clock: &'a Arc<dyn Clock>,
    /// True once the process was asked to terminate.
    pub(super) leaving: &'a watch::Receiver<bool>,
}

/// Answer of the instance to a hello message.
pub(super) enum Answer {
    Welcome(Stream, Box<Welcome>),
    Refused(String),
}

/// End of a connection.
pub(super) enum LinkEnd {
    /// The instance has stopped the worker.
    Told,
    /// The connection is broken.
    Lost(io::Error),
}

impl Caller<'_> {
    /// Connects and sends the hello message, with the certificate, or with the ticket or token if there is none yet.
    pub(super) async fn call(&self, credentials: Option<&Credentials>) -> io::Result<Answer> {
        let WorkerSettings { join, way_in, version, .. } = self.settings;
        let address = join.as_str();
        let mut stream = match credentials {
            Some(credentials) => credentials.dial(address, Name::Instance, self.clock).await?,
            None => dial_as_stranger(way_in.authority(), address, Name::Instance, self.clock).await?,
        };
        let hello = Hello {
            protocol: PROTOCOL,
            version: version.clone(),
            worker: way_in.worker(),
            secret: None,
            token: None,
            public_key: Base64(self.key.public_key_raw().to_vec()),
        };
        let hello = if credentials.is_none() { way_in.show(hello)? } else { hello };
        let asked = async {
            write(&mut stream, &hello).await.map_err(io::Error::other)?;
            read::<FromInstance>(&mut stream).await.map_err(io::Error::other)
        };
        match within(self.clock, HELLO_TIME_MAX, asked).await? {
            Some(FromInstance::Welcome(welcome)) => Ok(Answer::Welcome(Box::new(stream), welcome)),
            Some(FromInstance::Refused(reason)) => Ok(Answer::Refused(reason)),
            Some(_) => Err(io::Error::other("unexpected answer of the instance to a hello message")),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Sends heartbeats and handles the instance's messages until the instance stops the worker or the connection breaks.
pub(super) async fn talk(
    stream: Stream,
    office: &Office<'_>,
    tasks: SocketAddr,
    mut leaving: watch::Receiver<bool>,
    clock: &Arc<dyn Clock>,
) -> LinkEnd {
    let joined = match announced(&stream, tasks) {
        Ok(address) => FromWorker::Joined(Joined { address: address.to_string() }),
        Err(error) => return LinkEnd::Lost(error),
    };
    let (mut reading, mut writing) = tokio::io::split(stream);
    let (answer, mut answers) = mpsc::channel(1);
    // Hand-overs are aborted when the connection ends.
    let mut taking = JoinSet::new();
    let hear = async {
        loop {
            let next = async { read::<FromInstance>(&mut reading).await.map_err(io::Error::other) };
            match within(clock, SILENCE_MAX, next).await {
                Ok(Some(FromInstance::Heard)) => {}
                Ok(Some(FromInstance::Configure(means))) => office.configure(&means),
                Ok(Some(FromInstance::Certificate(certificate))) => office.certify(&certificate),
                Ok(Some(FromInstance::TakeOver(told))) => {
                    let (took_over, answer) = (office.take_over(told), answer.clone());
                    let taking_over = async move {
                        // The send fails only when the connection has ended, and then no one waits for the report.
                        let _ = answer.send(FromWorker::TookOver(took_over.await)).await;
                    };
                    taking.spawn_on(taking_over, office.tasks);
                }
                Ok(Some(FromInstance::Drain)) => tracing::info!("draining: no new tasks, running tasks finish"),
                Ok(Some(FromInstance::Stop)) => return LinkEnd::Told,
                Ok(Some(FromInstance::Welcome(_) | FromInstance::Refused(_))) => {
                    return LinkEnd::Lost(io::Error::other(
                        "unexpected answer of the instance without a hello message",
                    ));
                }
                Ok(None) => return LinkEnd::Lost(io::ErrorKind::UnexpectedEof.into()),
                Err(error) => return LinkEnd::Lost(error),
            }
        }
    };
    let say = async {
        let mut said = write(&mut writing, &joined).await;
        let mut has_said_so = false;
        while said.is_ok() {
            said = write(&mut writing, &FromWorker::Beat(office.beat())).await;
            tokio::select! {
                () = clock.sleep(BEAT_EVERY) => {}
                () = is_so(&mut leaving), if !has_said_so => {
                    has_said_so = true;
                    if said.is_ok() {
                        tracing::info!("terminating: asking the instance to drain this worker");
                        said = write(&mut writing, &FromWorker::Leaving).await;
                    }
                }
                Some(answer) = answers.recv() => {
                    if said.is_ok() {
                        said = write(&mut writing, &answer).await;
                    }
                }
            }
        }
        said.err().map_or_else(|| io::ErrorKind::BrokenPipe.into(), io::Error::other)
    };
    tokio::select! {
        biased;
        ended = hear => ended,
        error = say => LinkEnd::Lost(error),
    }
}

/// Completes when the flag is true; never if its sender is gone before.
pub(super) async fn is_so(flag: &mut watch::Receiver<bool>) {
    if flag.wait_for(|is_so| *is_so).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Returns the address under which others reach the task listener.
fn announced(stream: &Stream, tasks: SocketAddr) -> io::Result<SocketAddr> {
    if !tasks.ip().is_unspecified() {
        return Ok(tasks);
    }
    let own = stream.get_ref().0.local_addr()?;
    Ok(SocketAddr::new(own.ip(), tasks.port()))
}
