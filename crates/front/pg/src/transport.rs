//! Bytes to and from one client: messages cut from what has come, and a buffered writer.
//!
//! The session reads them itself, when it is ready for the next: until then the socket holds the client back. That a client hangs up
//! while its statement runs is noticed from aside (`session`'s `hang_up.rs`).

use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use pgwire::messages::PgWireBackendMessage;
use pgwire::tokio::server::MaybeTls;
use session::client_wait::ClientWait;
use session::metrics::Metrics;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use types::SqlResult;

use crate::frontend::{self, Decoded};

/// The writer sends once so much is buffered.
const FLUSH_BYTES: usize = 64 << 10;
/// Room for what comes next: made anew once less than an eighth of it is left.
const READ_BYTES: usize = 64 << 10;

/// The messages of one client, in order.
pub(crate) struct Inbox {
    half: ReadHalf<MaybeTls>,
    buffer: BytesMut,
    /// The stream has lost step: what follows means nothing.
    lost: bool,
    metrics: Arc<Metrics>,
}

impl Inbox {
    /// Of a client whose start-up is done; `read` holds what came with its last packet.
    pub(crate) fn new(half: ReadHalf<MaybeTls>, read: BytesMut, metrics: Arc<Metrics>) -> Self {
        Self { half, buffer: read, lost: false, metrics }
    }

    /// The next message, if the whole of it has been read.
    pub(crate) fn next_read(&mut self) -> Option<SqlResult<Decoded>> {
        if self.lost {
            return None;
        }
        let decoded = frontend::decode(&mut self.buffer, frontend::MESSAGE_BYTES_MAX);
        self.lost = decoded.is_err();
        decoded.transpose()
    }

    /// The next message; `None` once the client has hung up. An `Err` is the last: the stream has lost step. Safe to drop half-way.
    pub(crate) async fn next(&mut self) -> Option<SqlResult<Decoded>> {
        loop {
            if let Some(decoded) = self.next_read() {
                return Some(decoded);
            }
            if self.lost {
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

/// What is on its way to the client.
pub(crate) struct Outbox {
    half: WriteHalf<MaybeTls>,
    /// Whole messages not yet sent; a row is encoded into it directly.
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
        // Encoding fails only beyond a kind's length limit: what grows (rows, COPY data) is not sent through here.
        if let Err(error) = message.encode(&mut self.buffer) {
            tracing::error!(%error, "a message to the client is too long and was left out");
        }
    }

    /// Whether enough has gathered to be sent.
    pub(crate) fn is_full(&self) -> bool {
        FLUSH_BYTES <= self.buffer.len()
    }

    /// Sends everything if enough has gathered. Safe to drop half-way: what was not sent stays buffered.
    pub(crate) async fn flush_if_full(&mut self) -> io::Result<()> {
        if !self.is_full() {
            return Ok(());
        }
        self.flush_rows().await?;
        // Where the client takes all at once nothing is waited for, and a stop is heard only between.
        tokio::task::yield_now().await;
        Ok(())
    }

    /// As [`Outbox::flush`], in the midst of a statement, which waits for its client meanwhile.
    pub(crate) async fn flush_rows(&mut self) -> io::Result<()> {
        let _waiting = self.client_wait.begin();
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
