//! Cuts the bytes of all inputs, one after the other, into chunks of complete records.

use std::sync::Arc;

use bytes::Bytes;
use executor::statement_progress::StatementProgress;
use futures::stream::{BoxStream, Stream, StreamExt, unfold};
use tokio_util::sync::CancellationToken;
use types::interrupt::canceled_error;
use types::{SqlError, SqlResult};

use super::chunk_cutter::{Chunk, ChunkCutter};
use super::error_context::{ErrorLocation, InputOrigin};
use super::input_layout::InputLayout;

/// Item of an input stream.
#[derive(Debug)]
pub(crate) enum InputItem {
    /// Start of an input, with the name of its file or URL; a client's stream has none.
    Open(Option<String>),
    /// Next bytes of the current input.
    Bytes(Bytes),
}

/// Stream of the inputs of a COPY, in order, read on demand.
pub(crate) type InputStream = BoxStream<'static, SqlResult<InputItem>>;

/// Cuts `input` into chunks, in order; the stream ends after the first error.
pub(super) fn cut_chunks(
    layout: Arc<InputLayout>,
    input: InputStream,
    progress: Arc<StatementProgress>,
    cancel: CancellationToken,
) -> impl Stream<Item = SqlResult<(Arc<InputOrigin>, Chunk)>> + Send + 'static {
    let origin = Arc::new(InputOrigin { table: layout.table.clone(), input: None });
    let state = ChunkStream { layout, input, progress, cancel, origin, cutter: None, failure: None, is_ended: false };
    unfold(state, |mut state| async move { state.next().await.map(|chunk| (chunk, state)) })
}

/// State of the stream of chunks.
struct ChunkStream {
    layout: Arc<InputLayout>,
    input: InputStream,
    progress: Arc<StatementProgress>,
    cancel: CancellationToken,
    origin: Arc<InputOrigin>,
    cutter: Option<ChunkCutter>,
    /// Error behind the last chunk of a finished input, to be returned next.
    failure: Option<SqlError>,
    is_ended: bool,
}

impl ChunkStream {
    async fn next(&mut self) -> Option<SqlResult<(Arc<InputOrigin>, Chunk)>> {
        loop {
            if let Some(error) = self.failure.take() {
                self.is_ended = true;
                self.cutter = None;
                return Some(Err(error));
            }
            if let Some(cutter) = &mut self.cutter {
                if let Some(chunk) = cutter.next_chunk() {
                    return Some(Ok((Arc::clone(&self.origin), chunk)));
                }
                if let Some((error, line)) = cutter.take_failure() {
                    self.failure = Some(self.origin.with_context(error, line, ErrorLocation::Line));
                    continue;
                }
            }
            if self.is_ended {
                return None;
            }
            let piece = tokio::select! {
                biased;
                () = self.cancel.cancelled() => Some(Err(canceled_error())),
                piece = self.input.next() => piece,
            };
            match piece {
                Some(Err(error)) => {
                    self.is_ended = true;
                    self.cutter = None;
                    return Some(Err(error));
                }
                Some(Ok(InputItem::Bytes(bytes))) => {
                    self.progress.add_bytes(bytes.len());
                    if let Some(cutter) = &mut self.cutter {
                        cutter.push(&bytes);
                    }
                }
                Some(Ok(InputItem::Open(name))) => {
                    let from_client = name.is_none();
                    let next = ChunkCutter::new(&self.layout, from_client);
                    let last = self.finish_input(Some(next));
                    let origin = InputOrigin { table: self.layout.table.clone(), input: name };
                    let previous = std::mem::replace(&mut self.origin, Arc::new(origin));
                    if let Some(chunk) = last {
                        return Some(Ok((previous, chunk)));
                    }
                }
                None => {
                    self.is_ended = true;
                    if let Some(chunk) = self.finish_input(None) {
                        return Some(Ok((Arc::clone(&self.origin), chunk)));
                    }
                }
            }
        }
    }

    /// Finishes the present input and returns its last chunk; an error behind that chunk is returned next.
    fn finish_input(&mut self, next: Option<ChunkCutter>) -> Option<Chunk> {
        let mut last = std::mem::replace(&mut self.cutter, next)?;
        let chunk = last.finish();
        self.failure =
            last.take_failure().map(|(error, line)| self.origin.with_context(error, line, ErrorLocation::Line));
        chunk
    }
}
