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
use crate::join::{
    Base64Bytes, FromInstance, FromWorker, HEARTBEAT_INTERVAL, HELLO_TIMEOUT, Hello, Joined, PROTOCOL_VERSION,
    SILENCE_TIMEOUT, Welcome, read_message, write_message,
};
use crate::mutual_tls::{CertificateName, Credentials, dial_unauthenticated, with_timeout};

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
        let WorkerSettings { instance_address: join, credential, version, .. } = self.settings;
        let address = join.as_str();
        let mut stream = match credentials {
            Some(credentials) => credentials.dial(address, CertificateName::Instance, self.clock).await?,
            None => {
                dial_unauthenticated(credential.authority(), address, CertificateName::Instance, self.clock).await?
            }
        };
        let hello = Hello {
            protocol: PROTOCOL_VERSION,
            version: version.clone(),
            worker: credential.worker_id(),
            secret: None,
            token: None,
            public_key: Base64Bytes(self.key.public_key_raw().to_vec()),
        };
        let hello = if credentials.is_none() { credential.add_to_hello(hello)? } else { hello };
        let asked = async {
            write_message(&mut stream, &hello).await.map_err(io::Error::other)?;
            read_message::<FromInstance>(&mut stream).await.map_err(io::Error::other)
        };
        match with_timeout(self.clock, HELLO_TIMEOUT, asked).await? {
            Some(FromInstance::Welcome(welcome)) => Ok(JoinAnswer::Welcome(Box::new(stream), welcome)),
            Some(FromInstance::Refused(reason)) => Ok(JoinAnswer::Refused(reason)),
            Some(_) => {
                Err(io::Error::other("the instance answered a hello message with neither a welcome nor a refusal"))
            }
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Sends heartbeats and handles the instance's messages until the instance stops the worker or the connection breaks.
pub(super) async fn run_connection(
    stream: Stream,
    handler: &MessageHandler<'_>,
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
    let receive = async {
        loop {
            let next = async { read_message::<FromInstance>(&mut reading).await.map_err(io::Error::other) };
            match with_timeout(clock, SILENCE_TIMEOUT, next).await {
                Ok(Some(FromInstance::HeartbeatReceived)) => {}
                Ok(Some(FromInstance::Configure(resources))) => handler.configure(&resources),
                Ok(Some(FromInstance::Certificate(certificate))) => handler.install_certificate(&certificate),
                Ok(Some(FromInstance::StartHandover(request))) => {
                    let (took_over, answer) = (handler.warm_cache(request), answer.clone());
                    let taking_over = async move {
                        // The send fails only when the connection has ended, and then no one waits for the report.
                        let _ = answer.send(FromWorker::HandoverDone(took_over.await)).await;
                    };
                    taking.spawn_on(taking_over, handler.tasks);
                }
                Ok(Some(FromInstance::Drain)) => {
                    tracing::info!("the instance drains this worker: it gets no new tasks, and running tasks finish")
                }
                Ok(Some(FromInstance::Stop)) => return ConnectionEnd::Stopped,
                Ok(Some(FromInstance::Welcome(_) | FromInstance::Refused(_))) => {
                    return ConnectionEnd::Lost(io::Error::other(
                        "the instance sent a welcome or a refusal to a worker that has joined already",
                    ));
                }
                Ok(None) => return ConnectionEnd::Lost(io::ErrorKind::UnexpectedEof.into()),
                Err(error) => return ConnectionEnd::Lost(error),
            }
        }
    };
    let send = async {
        let mut written = write_message(&mut writing, &joined).await;
        let mut is_drain_requested = false;
        while written.is_ok() {
            written = write_message(&mut writing, &FromWorker::Heartbeat(handler.heartbeat())).await;
            tokio::select! {
                () = clock.sleep(HEARTBEAT_INTERVAL) => {}
                () = wait_until_true(&mut leaving), if !is_drain_requested => {
                    is_drain_requested = true;
                    if written.is_ok() {
                        tracing::info!("the worker is to terminate and asks the instance to drain it");
                        written = write_message(&mut writing, &FromWorker::DrainRequest).await;
                    }
                }
                Some(answer) = answers.recv() => {
                    if written.is_ok() {
                        written = write_message(&mut writing, &answer).await;
                    }
                }
            }
        }
        written.err().map_or_else(|| io::ErrorKind::BrokenPipe.into(), io::Error::other)
    };
    tokio::select! {
        biased;
        ended = receive => ended,
        error = send => ConnectionEnd::Lost(error),
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
