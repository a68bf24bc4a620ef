//! Location of an external file and its state when it was listed; only bytes of that state are ever returned.

use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use objects::{ObjectInfo, Objects};

use crate::{Error, Result};

/// Local file or object, in the state in which it was listed.
#[derive(Debug, Clone)]
pub enum ExternalFileLocation {
    Path { path: Arc<Path>, state: FileState },
    Object { objects: Objects, object: Arc<ObjectInfo> },
}

/// State of a local file that changes with its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileState {
    bytes: u64,
    device: u64,
    inode: u64,
    /// Seconds and nanoseconds since 1970; `changed` likewise.
    modified: (i64, i64),
    changed: (i64, i64),
}

/// Largest granularity of file times in seconds: a file modified less than this long before it was listed may be
/// modified again unnoticed.
const MTIME_GRANULARITY_SECONDS: i64 = 2;

impl ExternalFileLocation {
    /// Returns the local file at `path` in its present state. Blocks on disk I/O.
    ///
    /// # Errors
    /// [`Error::File`] if there is none.
    pub fn from_path(path: PathBuf) -> Result<Self> {
        let state = path.metadata().map(|metadata| FileState::from_metadata(&metadata));
        let state = state.map_err(|source| Error::File { file: path.display().to_string(), source })?;
        Ok(Self::Path { path: path.into(), state })
    }

    /// Returns the name of the file in errors.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Path { path, .. } => path.display().to_string(),
            Self::Object { objects, object } => objects.object_url(&object.name),
        }
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Path { state, .. } => state.bytes,
            Self::Object { object, .. } => object.bytes,
        }
    }

    /// Returns true if both are the same state of the same file.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Path { path, state }, Self::Path { path: other, state: now }) => path == other && state == now,
            (Self::Object { objects, object }, Self::Object { objects: other, object: now }) => {
                objects.url() == other.url() && object == now
            }
            _ => false,
        }
    }

    /// Returns true if any later change would be noticed; false for a local file modified just before `now_us`, in
    /// microseconds since 1970.
    #[must_use]
    pub fn is_change_detectable(&self, now_us: i64) -> bool {
        match self {
            Self::Path { state, .. } => state.modified.0 + MTIME_GRANULARITY_SECONDS < now_us / 1_000_000,
            Self::Object { .. } => true,
        }
    }

    /// Reads the bytes of each of `ranges`.
    pub(crate) async fn get_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        if ranges.iter().any(|range| range.end < range.start || self.bytes() < range.end) {
            let reason = "its metadata refers to bytes beyond its end".to_owned();
            return Err(Error::Damaged { object: self.name(), reason });
        }
        match self {
            Self::Path { path, state } => {
                let (path, state, ranges) = (Arc::clone(path), *state, ranges.to_vec());
                let read = tokio::task::spawn_blocking(move || read_path(&path, state, &ranges)).await;
                read.map_err(|error| Error::TaskEnded { reason: error.to_string() })?
            }
            Self::Object { objects, object } => Ok(objects.get_ranges_if_unchanged(object, ranges).await?),
        }
    }
}

impl FileState {
    fn from_metadata(metadata: &Metadata) -> Self {
        Self {
            bytes: metadata.len(),
            device: metadata.dev(),
            inode: metadata.ino(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// Reads ranges of a local file and checks that its state has not changed.
fn read_path(path: &Path, known: FileState, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
    let failed = |source: io::Error| Error::File { file: path.display().to_string(), source };
    let file = File::open(path).map_err(failed)?;
    let is_same = || file.metadata().map(|metadata| FileState::from_metadata(&metadata) == known).map_err(failed);
    let changed = || Error::Changed { object: path.display().to_string() };
    if !is_same()? {
        return Err(changed());
    }
    let mut read = Vec::with_capacity(ranges.len());
    for range in ranges {
        let length = usize::try_from(range.end - range.start).expect("the length of a read fits usize");
        let mut bytes = vec![0; length];
        match file.read_exact_at(&mut bytes, range.start) {
            // The file was truncated meanwhile.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(changed()),
            other => other.map_err(failed)?,
        }
        read.push(Bytes::from(bytes));
    }
    if is_same()? { Ok(read) } else { Err(changed()) }
}
