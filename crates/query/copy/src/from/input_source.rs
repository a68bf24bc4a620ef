//! Inputs of COPY FROM: a client's stream, files of the server, or objects at a URL.

use std::path::PathBuf;
use std::sync::Arc;

use binder::CopySource;
use bytes::Bytes;
use external_files::{expand_pattern, list_matching_objects, split_bucket_url};
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use objects::{ObjectInfo, Objects};
use storage_error::from_objects;
use types::{SqlError, SqlResult};

use super::{InputItem, InputStream};
use crate::CopyService;
use crate::files::{read_files, total_bytes};

/// Inputs of a COPY, resolved but not yet read.
pub(crate) enum Inputs {
    Client(BoxStream<'static, SqlResult<Bytes>>),
    Files(Vec<PathBuf>),
    Objects(Objects, Vec<ObjectInfo>),
}

impl Inputs {
    /// Resolves `source` to its inputs. `stdin` is the client's data.
    ///
    /// # Errors
    /// `58P01` and related conditions if nothing matches; errors of the storage.
    pub(crate) async fn resolve(
        copier: &CopyService,
        source: &CopySource,
        stdin: Option<BoxStream<'static, SqlResult<Bytes>>>,
    ) -> SqlResult<Self> {
        let files =
            |pattern: String| async move { run_blocking(move || expand_pattern(&pattern)).await.map(Inputs::Files) };
        match source {
            CopySource::Stdin => {
                stdin.map(Inputs::Client).ok_or_else(|| SqlError::internal("COPY FROM STDIN got no client stream"))
            }
            CopySource::File(pattern) => files(pattern.clone()).await,
            CopySource::Url(url) => match url.strip_prefix("file://") {
                Some(path) => files(path.to_owned()).await,
                None => resolve_url(copier, url).await,
            },
        }
    }

    /// Returns the total bytes of all inputs; 0 if unknown.
    pub(crate) async fn total_bytes(&mut self) -> SqlResult<u64> {
        match self {
            Inputs::Client(_) => Ok(0),
            Inputs::Files(paths) => {
                let paths = paths.clone();
                run_blocking(move || total_bytes(&paths)).await
            }
            Inputs::Objects(_, found) => Ok(found.iter().map(|object| object.bytes).sum()),
        }
    }

    /// Reads all inputs in order; each starts with a [`InputItem::Open`].
    pub(crate) fn read(self) -> InputStream {
        match self {
            Inputs::Client(data) => {
                let opened = stream::once(async { Ok(InputItem::Open(None)) });
                opened.chain(data.map_ok(InputItem::Bytes)).boxed()
            }
            Inputs::Files(paths) => read_files(paths),
            Inputs::Objects(objects, found) => {
                stream::iter(found).then(move |object| read_object(objects.clone(), object)).try_flatten().boxed()
            }
        }
    }
}

async fn read_object(objects: Objects, object: ObjectInfo) -> SqlResult<InputStream> {
    let bytes = objects.stream(&object.name).await.map_err(from_objects)?;
    let opened = InputItem::Open(Some(objects.object_url(&object.name)));
    let pieces = bytes.map_ok(InputItem::Bytes).map_err(from_objects);
    Ok(stream::once(async { Ok(opened) }).chain(pieces).boxed())
}

async fn resolve_url(copier: &CopyService, url: &str) -> SqlResult<Inputs> {
    let (bucket, name) = split_bucket_url(url)?;
    let (clock, random) = (Arc::clone(&copier.clock), Arc::clone(&copier.random));
    let objects = Objects::open(&bucket, clock, random).map_err(from_objects)?;
    let found = list_matching_objects(&objects, name).await?;
    Ok(Inputs::Objects(objects, found))
}

/// Runs blocking disk work on a thread for blocking work.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> SqlResult<T> + Send + 'static) -> SqlResult<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        Err(SqlError::internal(format!("a task that reads files for COPY FROM failed: {error}")))
    })
}
