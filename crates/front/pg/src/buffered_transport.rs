//! Buffered input and output of one client's connection.
//!
//! The session reads a message when it is ready for the next one: until then the socket holds the client back. A
//! disconnect while a statement runs is detected by `session`'s `hang_up.rs`.

use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use pgwire::messages::PgWireBackendMessage;
use pgwire::tokio::server::MaybeTls;
use session::client_wait::ClientWait;
use session::metrics::Metrics;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use types::SqlResult;

use crate::frontend_messages::{self, DecodedMessage};

/// Buffered bytes after which the outbox is sent.
const FLUSH_BYTES: usize = 64 << 10;
/// Free space of the input buffer; it is reserved when less than an eighth of it is left.
const READ_BYTES: usize = 64 << 10;

/// Incoming messages of one client, in order.
pub(crate) struct Inbox {
    half: ReadHalf<MaybeTls>,
    buffer: BytesMut,
    /// True after a frame that cannot be decoded: what follows in the stream cannot be read.
    is_unreadable: bool,
    metrics: Arc<Metrics>,
}

impl Inbox {
    /// Creates the inbox after startup; `read` holds the bytes that arrived with its last packet.
    pub(crate) fn new(half: ReadHalf<MaybeTls>, read: BytesMut, metrics: Arc<Metrics>) -> Self {
        Self { half, buffer: read, is_unreadable: false, metrics }
    }

    /// Returns the next message if all of it is buffered.
    pub(crate) fn next_buffered(&mut self) -> Option<SqlResult<DecodedMessage>> {
        if self.is_unreadable {
            return None;
        }
        let decoded = frontend_messages::decode(&mut self.buffer, frontend_messages::MESSAGE_BYTES_MAX);
        self.is_unreadable = decoded.is_err();
        decoded.transpose()
    }

    /// Reads the next message; `None` once the client has disconnected. An `Err` is the last item: the stream cannot be
    /// read any further. Safe to drop before it completes.
    pub(crate) async fn next(&mut self) -> Option<SqlResult<DecodedMessage>> {
        loop {
            if let Some(decoded) = self.next_buffered() {
                return Some(decoded);
            }
            if self.is_unreadable {
                return None;
            }
            if self.buffer.capacity() - self.buffer.len() < READ_BYTES / 8 {
                self.buffer.reserve(READ_BYTES);
            }
            match self.half.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return None,
                Ok(bytes) => self.metrics.bytes_in.inc_by(bytes as u64),
            };
        }
    }
}

/// Outgoing messages of one client.
pub(crate) struct Outbox {
    half: WriteHalf<MaybeTls>,
    /// Complete messages that are not sent yet; rows are encoded directly into it.
    pub(crate) buffer: BytesMut,
    metrics: Arc<Metrics>,
    client_wait: Arc<ClientWait>,
}

impl Outbox {
    pub(crate) fn new(half: WriteHalf<MaybeTls>, metrics: Arc<Metrics>, client_wait: Arc<ClientWait>) -> Self {
        Self { half, buffer: BytesMut::with_capacity(FLUSH_BYTES / 8), metrics, client_wait }
    }

    /// Buffers one message.
    pub(crate) fn put(&mut self, message: PgWireBackendMessage) {
        // Encoding fails only for messages over their length limit; rows and COPY data, which can grow, are not sent
        // this way.
        if let Err(error) = message.encode(&mut self.buffer) {
            tracing::error!(%error, "could not encode a message to the client: it is not sent");
        }
    }

    /// Whether enough is buffered to be sent.
    pub(crate) fn is_full(&self) -> bool {
        FLUSH_BYTES <= self.buffer.len()
    }

    /// Sends everything if enough is buffered. Safe to drop before it completes: unsent bytes stay buffered.
    pub(crate) async fn flush_if_full(&mut self) -> io::Result<()> {
        if !self.is_full() {
            return Ok(());
        }
        self.flush_counting_wait().await?;
        // Sending to a client that takes everything at once never waits; yielding lets a cancellation through.
        tokio::task::yield_now().await;
        Ok(())
    }

    /// Does the same as [`Outbox::flush`], and counts the time as the statement's wait for its client.
    pub(crate) async fn flush_counting_wait(&mut self) -> io::Result<()> {
        let _waiting = self.client_wait.begin();
        self.flush().await
    }

    /// Sends everything. Safe to drop before it completes: unsent bytes stay buffered.
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

    /// Sends everything and closes the connection.
    pub(crate) async fn close(&mut self) -> io::Result<()> {
        self.flush().await?;
        self.half.shutdown().await
    }
}
