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

use super::{MessageHandler, WorkerSettings};
use crate::identity::{CertificateName, Credentials, dial_unauthenticated, with_timeout};
use crate::join::{
    Base64Bytes, FromInstance, FromWorker, HEARTBEAT_INTERVAL, HELLO_TIMEOUT, Hello, Joined, PROTOCOL, SILENCE_TIMEOUT,
    Welcome, read_message, write_message,
};

pub(super) type Stream = Box<TlsStream<TcpStream>>;

/// Client that connects to the instance and joins.
pub(super) struct JoinClient<'a> {
    pub(super) settings: &'a WorkerSettings,
    pub(super) key: &'a KeyPair,
    pub(super) clock: &'a Arc<dyn Clock>,
    /// True once the process was asked to terminate.
    pub(super) terminating: &'a watch::Receiver<bool>,
}

/// Answer of the instance to a hello message.
pub(super) enum JoinAnswer {
    Welcome(Stream, Box<Welcome>),
    Refused(String),
}

/// End of a connection.
pub(super) enum ConnectionEnd {
    /// The instance has stopped the worker.
    Stopped,
    /// The connection is broken.
    Lost(io::Error),
}

impl JoinClient<'_> {
    /// Connects and sends the hello message, with the certificate, or with the ticket or token if there is none yet.
    pub(super) async fn join(&self, credentials: Option<&Credentials>) -> io::Result<JoinAnswer> {
        let WorkerSettings { instance_address: join, credential: way_in, version, .. } = self.settings;
        let address = join.as_str();
        let mut stream = match credentials {
            Some(credentials) => credentials.dial(address, CertificateName::Instance, self.clock).await?,
            None => dial_unauthenticated(way_in.authority(), address, CertificateName::Instance, self.clock).await?,
        };
        let hello = Hello {
            protocol: PROTOCOL,
            version: version.clone(),
            worker: way_in.worker_id(),
            secret: None,
            token: None,
            public_key: Base64Bytes(self.key.public_key_raw().to_vec()),
        };
        let hello = if credentials.is_none() { way_in.add_to_hello(hello)? } else { hello };
        let asked = async {
            write_message(&mut stream, &hello).await.map_err(io::Error::other)?;
            read_message::<FromInstance>(&mut stream).await.map_err(io::Error::other)
        };
        match with_timeout(self.clock, HELLO_TIMEOUT, asked).await? {
            Some(FromInstance::Welcome(welcome)) => Ok(JoinAnswer::Welcome(Box::new(stream), welcome)),
            Some(FromInstance::Refused(reason)) => Ok(JoinAnswer::Refused(reason)),
            Some(_) => Err(io::Error::other("unexpected answer of the instance to a hello message")),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Sends heartbeats and handles the instance's messages until the instance stops the worker or the connection breaks.
pub(super) async fn run_connection(
    stream: Stream,
    office: &MessageHandler<'_>,
    tasks: SocketAddr,
    mut leaving: watch::Receiver<bool>,
    clock: &Arc<dyn Clock>,
) -> ConnectionEnd {
    let joined = match announced_address(&stream, tasks) {
        Ok(address) => FromWorker::Joined(Joined { address: address.to_string() }),
        Err(error) => return ConnectionEnd::Lost(error),
    };
    let (mut reading, mut writing) = tokio::io::split(stream);
    let (answer, mut answers) = mpsc::channel(1);
    // Hand-overs are aborted when the connection ends.
    let mut taking = JoinSet::new();
    let hear = async {
        loop {
            let next = async { read_message::<FromInstance>(&mut reading).await.map_err(io::Error::other) };
            match with_timeout(clock, SILENCE_TIMEOUT, next).await {
                Ok(Some(FromInstance::Heard)) => {}
                Ok(Some(FromInstance::Configure(means))) => office.configure(&means),
                Ok(Some(FromInstance::Certificate(certificate))) => office.install_certificate(&certificate),
                Ok(Some(FromInstance::TakeOver(told))) => {
                    let (took_over, answer) = (office.warm_cache(told), answer.clone());
                    let taking_over = async move {
                        // The send fails only when the connection has ended, and then no one waits for the report.
                        let _ = answer.send(FromWorker::TookOver(took_over.await)).await;
                    };
                    taking.spawn_on(taking_over, office.tasks);
                }
                Ok(Some(FromInstance::Drain)) => tracing::info!("draining: no new tasks, running tasks finish"),
                Ok(Some(FromInstance::Stop)) => return ConnectionEnd::Stopped,
                Ok(Some(FromInstance::Welcome(_) | FromInstance::Refused(_))) => {
                    return ConnectionEnd::Lost(io::Error::other(
                        "unexpected answer of the instance without a hello message",
                    ));
                }
                Ok(None) => return ConnectionEnd::Lost(io::ErrorKind::UnexpectedEof.into()),
                Err(error) => return ConnectionEnd::Lost(error),
            }
        }
    };
    let say = async {
        let mut said = write_message(&mut writing, &joined).await;
        let mut has_said_so = false;
        while said.is_ok() {
            said = write_message(&mut writing, &FromWorker::Beat(office.heartbeat())).await;
            tokio::select! {
                () = clock.sleep(HEARTBEAT_INTERVAL) => {}
                () = wait_until_true(&mut leaving), if !has_said_so => {
                    has_said_so = true;
                    if said.is_ok() {
                        tracing::info!("terminating: asking the instance to drain this worker");
                        said = write_message(&mut writing, &FromWorker::Leaving).await;
                    }
                }
                Some(answer) = answers.recv() => {
                    if said.is_ok() {
                        said = write_message(&mut writing, &answer).await;
                    }
                }
            }
        }
        said.err().map_or_else(|| io::ErrorKind::BrokenPipe.into(), io::Error::other)
    };
    tokio::select! {
        biased;
        ended = hear => ended,
        error = say => ConnectionEnd::Lost(error),
    }
}

/// Completes when the flag is true; never if its sender is gone before.
pub(super) async fn wait_until_true(flag: &mut watch::Receiver<bool>) {
    if flag.wait_for(|is_so| *is_so).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Returns the address under which others reach the task listener.
fn announced_address(stream: &Stream, tasks: SocketAddr) -> io::Result<SocketAddr> {
    if !tasks.ip().is_unspecified() {
        return Ok(tasks);
    }
    let own = stream.get_ref().0.local_addr()?;
    Ok(SocketAddr::new(own.ip(), tasks.port()))
}
