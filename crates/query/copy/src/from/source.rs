//! Inputs of COPY FROM: a client's stream, files of the server, or objects at a URL.

use std::path::PathBuf;
use std::sync::Arc;

use binder::CopySource;
use bytes::Bytes;
use external_files::{bucket_of, expand, objects_in};
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use objects::{Object, Objects};
use storage_error::from_objects;
use types::{SqlError, SqlResult};

use super::{Piece, Pieces};
use crate::Copier;
use crate::files::{read_files, total_bytes};

/// Inputs of a COPY, resolved but not yet read.
pub(crate) enum Inputs {
    Client(BoxStream<'static, SqlResult<Bytes>>),
    Files(Vec<PathBuf>),
    Objects(Objects, Vec<Object>),
}

impl Inputs {
    /// Resolves `source` to its inputs. `stdin` is the client's data.
    ///
    /// # Errors
    /// `58P01` and related conditions if nothing matches; errors of the storage.
    pub(crate) async fn find(
        copier: &Copier,
        source: &CopySource,
        stdin: Option<BoxStream<'static, SqlResult<Bytes>>>,
    ) -> SqlResult<Self> {
        let files = |pattern: String| async move { blocking(move || expand(&pattern)).await.map(Inputs::Files) };
        match source {
            CopySource::Stdin => {
                stdin.map(Inputs::Client).ok_or_else(|| SqlError::internal("COPY FROM STDIN got no client stream"))
            }
            CopySource::File(pattern) => files(pattern.clone()).await,
            CopySource::Url(url) => match url.strip_prefix("file://") {
                Some(path) => files(path.to_owned()).await,
                None => objects_at(copier, url).await,
            },
        }
    }

    /// Returns the total bytes of all inputs; 0 if unknown.
    pub(crate) async fn bytes(&mut self) -> SqlResult<u64> {
        match self {
            Inputs::Client(_) => Ok(0),
            Inputs::Files(paths) => {
                let paths = paths.clone();
                blocking(move || total_bytes(&paths)).await
            }
            Inputs::Objects(_, found) => Ok(found.iter().map(|object| object.bytes).sum()),
        }
    }

    /// Reads all inputs in order; each starts with a [`Piece::Open`].
    pub(crate) fn pieces(self) -> Pieces {
        match self {
            Inputs::Client(data) => {
                let opened = stream::once(async { Ok(Piece::Open(None)) });
                opened.chain(data.map_ok(Piece::Bytes)).boxed()
            }
            Inputs::Files(paths) => read_files(paths),
            Inputs::Objects(objects, found) => {
                stream::iter(found).then(move |object| read_object(objects.clone(), object)).try_flatten().boxed()
            }
        }
    }
}

async fn read_object(objects: Objects, object: Object) -> SqlResult<Pieces> {
    let bytes = objects.stream(&object.name).await.map_err(from_objects)?;
    let opened = Piece::Open(Some(objects.object_url(&object.name)));
    let pieces = bytes.map_ok(Piece::Bytes).map_err(from_objects);
    Ok(stream::once(async { Ok(opened) }).chain(pieces).boxed())
}

async fn objects_at(copier: &Copier, url: &str) -> SqlResult<Inputs> {
    let (bucket, name) = bucket_of(url)?;
    let (clock, random) = (Arc::clone(&copier.clock), Arc::clone(&copier.random));
    let objects = Objects::open(&bucket, clock, random).map_err(from_objects)?;
    let found = objects_in(&objects, name).await?;
    Ok(Inputs::Objects(objects, found))
}

/// Runs blocking disk work on a thread for blocking work.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> SqlResult<T> + Send + 'static) -> SqlResult<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(SqlError::internal(format!("a file task of COPY failed: {error}"))))
}
