//! Cuts the bytes of all inputs, one after the other, into chunks of complete records.

use std::sync::Arc;

use bytes::Bytes;
use executor::progress::Progress;
use futures::stream::{BoxStream, Stream, StreamExt, unfold};
use tokio_util::sync::CancellationToken;
use types::interrupt::canceled;
use types::{SqlError, SqlResult};

use super::context::{Origin, Part};
use super::cut::{Chunk, Cutter};
use super::layout::Layout;

/// Item of an input stream.
#[derive(Debug)]
pub(crate) enum Piece {
    /// Start of an input, with the name of its file or URL; a client's stream has none.
    Open(Option<String>),
    /// Next bytes of the current input.
    Bytes(Bytes),
}

/// Stream of the inputs of a COPY, in order, read on demand.
pub(crate) type Pieces = BoxStream<'static, SqlResult<Piece>>;

/// Cuts `pieces` into chunks, in order; the stream ends after the first error.
pub(super) fn chunks(
    layout: Arc<Layout>,
    pieces: Pieces,
    progress: Arc<Progress>,
    cancel: CancellationToken,
) -> impl Stream<Item = SqlResult<(Arc<Origin>, Chunk)>> + Send + 'static {
    let origin = Arc::new(Origin { table: layout.table.clone(), input: None });
    let state = Chunks { layout, pieces, progress, cancel, origin, cutter: None, failure: None, ended: false };
    unfold(state, |mut state| async move { state.next().await.map(|chunk| (chunk, state)) })
}

/// State of the stream of chunks.
struct Chunks {
    layout: Arc<Layout>,
    pieces: Pieces,
    progress: Arc<Progress>,
    cancel: CancellationToken,
    origin: Arc<Origin>,
    cutter: Option<Cutter>,
    /// Error behind the last chunk of a finished input, to be returned next.
    failure: Option<SqlError>,
    ended: bool,
}

impl Chunks {
    async fn next(&mut self) -> Option<SqlResult<(Arc<Origin>, Chunk)>> {
        loop {
            if let Some(error) = self.failure.take() {
                self.ended = true;
                self.cutter = None;
                return Some(Err(error));
            }
            if let Some(cutter) = &mut self.cutter {
                if let Some(chunk) = cutter.next_chunk() {
                    return Some(Ok((Arc::clone(&self.origin), chunk)));
                }
                if let Some((error, line)) = cutter.failure() {
                    self.failure = Some(self.origin.place(error, line, Part::Line));
                    continue;
                }
            }
            if self.ended {
                return None;
            }
            let piece = tokio::select! {
                biased;
                () = self.cancel.cancelled() => Some(Err(canceled())),
                piece = self.pieces.next() => piece,
            };
            match piece {
                Some(Err(error)) => {
                    self.ended = true;
                    self.cutter = None;
                    return Some(Err(error));
                }
                Some(Ok(Piece::Bytes(bytes))) => {
                    self.progress.add_bytes(bytes.len());
                    if let Some(cutter) = &mut self.cutter {
                        cutter.push(&bytes);
                    }
                }
                Some(Ok(Piece::Open(name))) => {
                    let from_client = name.is_none();
                    let next = Cutter::new(&self.layout, from_client);
                    let last = self.close(Some(next));
                    let origin = Origin { table: self.layout.table.clone(), input: name };
                    let previous = std::mem::replace(&mut self.origin, Arc::new(origin));
                    if let Some(chunk) = last {
                        return Some(Ok((previous, chunk)));
                    }
                }
                None => {
                    self.ended = true;
                    if let Some(chunk) = self.close(None) {
                        return Some(Ok((Arc::clone(&self.origin), chunk)));
                    }
                }
            }
        }
    }

    /// Finishes the present input and returns its last chunk; an error behind that chunk is returned next.
    fn close(&mut self, next: Option<Cutter>) -> Option<Chunk> {
        let mut last = std::mem::replace(&mut self.cutter, next)?;
        let chunk = last.finish();
        self.failure = last.failure().map(|(error, line)| self.origin.place(error, line, Part::Line));
        chunk
    }
}
