//! Bytes to and from one client: a reader that runs ahead of the statement, and a buffered writer.
//!
//! The reader is its own task so that a client that hangs up is noticed while its query runs. How far it may run ahead is
//! bounded; beyond that the socket itself holds the client back.

use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use pgwire::messages::PgWireBackendMessage;
use pgwire::tokio::server::MaybeTls;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use types::SqlResult;

use crate::http::metrics::Metrics;
use crate::pg::frontend::{self, Decoded};

/// Bytes of decoded messages that may wait for the session.
const READ_AHEAD_BYTES_MAX: usize = 4 << 20;
/// What one waiting message costs at least, so that many empty ones are bounded too.
const MESSAGE_COST_BYTES_MIN: usize = 64;
/// The writer sends once so much is buffered.
const FLUSH_BYTES: usize = 64 << 10;
const READ_BYTES: usize = 64 << 10;

/// The messages of one client, in order.
#[derive(Debug)]
pub(crate) struct Inbox {
    messages: mpsc::UnboundedReceiver<Waiting>,
    gone: CancellationToken,
}

#[derive(Debug)]
struct Waiting {
    decoded: SqlResult<Decoded>,
    _room: OwnedSemaphorePermit,
}

impl Inbox {
    /// The next message; `None` once the client has hung up. An `Err` is the last: the stream has lost step.
    pub(crate) async fn next(&mut self) -> Option<SqlResult<Decoded>> {
        self.messages.recv().await.map(|waiting| waiting.decoded)
    }

    /// Fires when the client has hung up, even while its messages still wait.
    pub(crate) fn gone(&self) -> CancellationToken {
        self.gone.clone()
    }
}

/// Starts reading from a client whose start-up is done; `read` holds what came with its last packet.
pub(crate) fn start_reading(half: ReadHalf<MaybeTls>, read: BytesMut, metrics: Arc<Metrics>) -> Inbox {
    let (sender, messages) = mpsc::unbounded_channel();
    let gone = CancellationToken::new();
    let reader = Reader { half, buffer: read, sender, room: Arc::new(Semaphore::new(READ_AHEAD_BYTES_MAX)), metrics };
    let hung_up = gone.clone();
    tokio::spawn(async move {
        reader.run().await;
        hung_up.cancel();
    });
    Inbox { messages, gone }
}

struct Reader {
    half: ReadHalf<MaybeTls>,
    buffer: BytesMut,
    sender: mpsc::UnboundedSender<Waiting>,
    room: Arc<Semaphore>,
    metrics: Arc<Metrics>,
}

impl Reader {
    /// Returns when the client hangs up, loses step, or the session is over.
    async fn run(mut self) {
        loop {
            let before = self.buffer.len();
            match frontend::decode(&mut self.buffer, frontend::MESSAGE_BYTES_MAX) {
                Ok(Some(decoded)) => {
                    let cost = (before - self.buffer.len()).clamp(MESSAGE_COST_BYTES_MIN, READ_AHEAD_BYTES_MAX);
                    if !self.pass_on(Ok(decoded), cost).await {
                        return;
                    }
                }
                Ok(None) => {
                    self.buffer.reserve(READ_BYTES);
                    let closed = tokio::select! {
                        read = self.half.read_buf(&mut self.buffer) => match read {
                            Ok(0) | Err(_) => true,
                            Ok(bytes) => {
                                self.metrics.bytes_in.inc_by(bytes as u64);
                                false
                            }
                        },
                        () = self.sender.closed() => true,
                    };
                    if closed {
                        return;
                    }
                }
                Err(error) => {
                    self.pass_on(Err(error), MESSAGE_COST_BYTES_MIN).await;
                    return;
                }
            }
        }
    }

    async fn pass_on(&self, decoded: SqlResult<Decoded>, cost: usize) -> bool {
        let cost = u32::try_from(cost).expect("at most the read-ahead limit");
        let room = Arc::clone(&self.room).acquire_many_owned(cost);
        let permit = tokio::select! {
            permit = room => permit.expect("the semaphore is never closed"),
            () = self.sender.closed() => return false,
        };
        self.sender.send(Waiting { decoded, _room: permit }).is_ok()
    }
}

/// What is on its way to the client.
pub(crate) struct Outbox {
    half: WriteHalf<MaybeTls>,
    /// Whole messages not yet sent; a row is encoded into it directly.
    pub(crate) buffer: BytesMut,
    metrics: Arc<Metrics>,
}

impl Outbox {
    pub(crate) fn new(half: WriteHalf<MaybeTls>, metrics: Arc<Metrics>) -> Self {
        Self { half, buffer: BytesMut::with_capacity(FLUSH_BYTES / 8), metrics }
    }

    /// Buffers one message.
    pub(crate) fn put(&mut self, message: PgWireBackendMessage) {
        // Encoding fails only beyond a kind's length limit: what grows (rows, COPY data) is not sent through here.
        if let Err(error) = message.encode(&mut self.buffer) {
            tracing::error!(%error, "a message to the client is too long and was left out");
        }
    }

    /// Sends everything if enough has gathered. Safe to drop half-way: what was not sent stays buffered.
    pub(crate) async fn flush_if_full(&mut self) -> io::Result<()> {
        if self.buffer.len() < FLUSH_BYTES {
            return Ok(());
        }
        self.flush().await
    }

    /// Sends everything. Safe to drop half-way: what was not sent stays buffered.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        while !self.buffer.is_empty() {
            let bytes = self.half.write_buf(&mut self.buffer).await?;
            if bytes == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.metrics.bytes_out.inc_by(bytes as u64);
        }
        if self.buffer.capacity() > 4 * FLUSH_BYTES {
            self.buffer = BytesMut::with_capacity(FLUSH_BYTES);
        }
        self.half.flush().await
    }

    /// Sends what is buffered and says goodbye.
    pub(crate) async fn close(&mut self) -> io::Result<()> {
        self.flush().await?;
        self.half.shutdown().await
    }
}
