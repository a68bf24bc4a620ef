//! Durable object storage in a local folder: acknowledged writes survive a power failure.
//!
//! A write goes to a temporary file, which is synced and then renamed or linked to its name; then the folder is synced.
//! Conditional puts are exact between threads and between processes.
//!
//! In reading order:
//! - `folder.rs`: the blocking file operations
//! - `temporary_files.rs`: temporary files and the lock for renames
//! - `multipart.rs`: multipart uploads
//! - `disk_space.rs`: free space of the folder's disk
//! - `buffer_pool.rs`: recycled read buffers

use std::fmt;
use std::ops::Range;
use std::path::Path as FilePath;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    Attributes, CopyMode, CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use types::{Clock, DiskReserve};

mod buffer_pool;
mod disk_space;
mod folder;
mod multipart;
mod temporary_files;
#[cfg(test)]
mod tests;

pub use disk_space::FolderDisk;
use folder::Folder;
use multipart::LocalMultipart;

/// Name of this store in errors.
pub(crate) const STORE_NAME: &str = "local folder";

/// Size of the chunks in which a body is read, in bytes.
const CHUNK_BYTES: u64 = 1024 * 1024;

/// Object store in a local folder: each file is an object.
///
/// The folder is created by the first write; reading changes nothing. Names starting with `.kiln/` are reserved for the
/// store.
#[derive(Debug)]
pub struct LocalStore {
    folder: Arc<Folder>,
}

impl LocalStore {
    /// Opens the store in the folder `root`, which need not exist. Removes temporary files left by ended processes.
    pub fn new(root: &FilePath, clock: Arc<dyn Clock>) -> Result<Self> {
        Self::with_reserve(root, clock, None)
    }

    /// Opens the store like [`Self::new`]; writes leave `reserve` free on the disk.
    pub fn with_reserve(root: &FilePath, clock: Arc<dyn Clock>, reserve: Option<DiskReserve>) -> Result<Self> {
        let folder = Folder::new(root, clock, reserve)?;
        folder.remove_leftover_files();
        Ok(Self { folder: Arc::new(folder) })
    }
}

#[async_trait]
impl ObjectStore for LocalStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        refuse_attributes(&options.attributes)?;
        let location = location.clone();
        run_blocking(&self.folder, move |folder| {
            folder.check_space_for_put(payload.content_length() as u64)?;
            let mut file = folder.create_temporary()?;
            file.write(payload.iter()).map_err(|source| local_error(source.into()))?;
            folder.publish(file, &location, &options.mode)
        })
        .await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        refuse_attributes(&options.attributes)?;
        let file = run_blocking(&self.folder, Folder::create_temporary).await?;
        Ok(Box::new(LocalMultipart::new(Arc::clone(&self.folder), location.clone(), file)))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if options.version.is_some() {
            return Err(unsupported_error("object versions"));
        }
        let at = location.clone();
        let (file, meta, range) = run_blocking(&self.folder, move |folder| {
            let (file, meta) = folder.open(&at)?;
            options.check_preconditions(&meta)?;
            let range = match &options.range {
                _ if options.head => 0..0,
                Some(range) => range.as_range(meta.size).map_err(|source| local_error(source.into()))?,
                None => 0..meta.size,
            };
            Ok((Arc::new(file), meta, range))
        })
        .await?;
        let (folder, at) = (Arc::clone(&self.folder), location.clone());
        let chunks = stream::try_unfold(range.clone(), move |rest| {
            let (folder, file, at) = (Arc::clone(&folder), Arc::clone(&file), at.clone());
            async move {
                if rest.is_empty() {
                    return Ok(None);
                }
                let chunk = rest.start..rest.end.min(rest.start + CHUNK_BYTES);
                let rest = chunk.end..rest.end;
                let bytes = run_blocking(&folder, move |folder| folder.read(&file, &at, chunk)).await?;
                Ok(Some((bytes, rest)))
            }
        });
        Ok(GetResult { payload: GetResultPayload::Stream(chunks.boxed()), meta, range, attributes: Attributes::new() })
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let (location, ranges) = (location.clone(), ranges.to_vec());
        run_blocking(&self.folder, move |folder| {
            let (file, _) = folder.open(&location)?;
            ranges.into_iter().map(|range| folder.read(&file, &location, range)).collect()
        })
        .await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let folder = Arc::clone(&self.folder);
        let deleted = locations.and_then(move |location| {
            let folder = Arc::clone(&folder);
            async move {
                run_blocking(&folder, move |folder| {
                    folder.delete(&location)?;
                    Ok(location)
                })
                .await
            }
        });
        deleted.boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (folder, prefix) = (Arc::clone(&self.folder), prefix.cloned().unwrap_or_default());
        let found = async move { run_blocking(&folder, move |folder| folder.list(&prefix)).await };
        stream::once(found).map_ok(|found| stream::iter(found.into_iter().map(Ok))).try_flatten().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let prefix = prefix.cloned().unwrap_or_default();
        run_blocking(&self.folder, move |folder| folder.list_with_delimiter(&prefix)).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let (from, to) = (from.clone(), to.clone());
        let mode = match options.mode {
            CopyMode::Overwrite => PutMode::Overwrite,
            CopyMode::Create => PutMode::Create,
        };
        run_blocking(&self.folder, move |folder| {
            let (mut source, meta) = folder.open(&from)?;
            folder.check_space(meta.size)?;
            let mut file = folder.create_temporary()?;
            file.copy_from(&mut source).map_err(|source| local_error(source.into()))?;
            folder.publish(file, &to, &mode)?;
            Ok(())
        })
        .await
    }
}

impl fmt::Display for LocalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{STORE_NAME} {}", self.folder.root().display())
    }
}

/// Runs `work`, which blocks on disk I/O, on a blocking thread.
async fn run_blocking<T: Send + 'static>(
    folder: &Arc<Folder>,
    work: impl FnOnce(&Folder) -> Result<T> + Send + 'static,
) -> Result<T> {
    let folder = Arc::clone(folder);
    tokio::task::spawn_blocking(move || work(&folder)).await?
}

fn local_error(source: Box<dyn std::error::Error + Send + Sync>) -> Error {
    Error::Generic { store: STORE_NAME, source }
}

fn unsupported_error(what: &str) -> Error {
    Error::NotSupported { source: format!("a local folder has no {what}").into() }
}

fn refuse_attributes(attributes: &Attributes) -> Result<()> {
    if attributes.is_empty() { Ok(()) } else { Err(unsupported_error("object attributes")) }
}
