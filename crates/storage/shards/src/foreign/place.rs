//! Where a file of others lies, and what it was when it was found: bytes are given of that content alone.

use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use objects::{Object, Objects};

use crate::{Error, Result};

/// A file of this machine or an object, as it was when it was found.
#[derive(Debug, Clone)]
pub enum ForeignPlace {
    Path { path: Arc<Path>, state: PathState },
    Object { objects: Objects, object: Arc<Object> },
}

/// What tells one content of a file from the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PathState {
    bytes: u64,
    device: u64,
    inode: u64,
    /// Seconds and nanoseconds since 1970.
    modified: (i64, i64),
    changed: (i64, i64),
}

/// A file that was modified less than so many seconds before it was looked at may be modified again without a trace: file systems count
/// time in steps.
const STEP_SECONDS_MAX: i64 = 2;

impl ForeignPlace {
    /// The file of this machine at `path`, as it is now. Waits for the disk.
    ///
    /// # Errors
    /// [`Error::File`] where there is none.
    pub fn of_path(path: PathBuf) -> Result<Self> {
        let state = path.metadata().map(|metadata| PathState::of(&metadata));
        let state = state.map_err(|source| Error::File { file: path.display().to_string(), source })?;
        Ok(Self::Path { path: path.into(), state })
    }

    /// What errors call the file.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Path { path, .. } => path.display().to_string(),
            Self::Object { objects, object } => objects.object_url(&object.name),
        }
    }

    /// Its size.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Path { state, .. } => state.bytes,
            Self::Object { object, .. } => object.bytes,
        }
    }

    /// Whether both are the same content of the same file.
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

    /// Whether another content would look otherwise: not yet, where the file was modified just before `now_us`, microseconds since 1970.
    #[must_use]
    pub fn is_settled(&self, now_us: i64) -> bool {
        match self {
            Self::Path { state, .. } => state.modified.0 + STEP_SECONDS_MAX < now_us / 1_000_000,
            Self::Object { .. } => true,
        }
    }

    /// The bytes of each of `ranges`.
    pub(crate) async fn get_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        if ranges.iter().any(|range| range.end < range.start || self.bytes() < range.end) {
            let reason = "it speaks of bytes beyond its end".to_owned();
            return Err(Error::Damaged { object: self.name(), reason });
        }
        match self {
            Self::Path { path, state } => {
                let (path, state, ranges) = (Arc::clone(path), *state, ranges.to_vec());
                let read = tokio::task::spawn_blocking(move || read_path(&path, state, &ranges)).await;
                read.map_err(|error| Error::Stopped { reason: error.to_string() })?
            }
            Self::Object { objects, object } => Ok(objects.get_ranges_of(object, ranges).await?),
        }
    }
}

impl PathState {
    fn of(metadata: &Metadata) -> Self {
        Self {
            bytes: metadata.len(),
            device: metadata.dev(),
            inode: metadata.ino(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

fn read_path(path: &Path, known: PathState, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
    let failed = |source: io::Error| Error::File { file: path.display().to_string(), source };
    let file = File::open(path).map_err(failed)?;
    let is_same = || file.metadata().map(|metadata| PathState::of(&metadata) == known).map_err(failed);
    let changed = || Error::Changed { object: path.display().to_string() };
    if !is_same()? {
        return Err(changed());
    }
    let mut read = Vec::with_capacity(ranges.len());
    for range in ranges {
        let length = usize::try_from(range.end - range.start).expect("a part of a file fits memory's addresses");
        let mut bytes = vec![0; length];
        match file.read_exact_at(&mut bytes, range.start) {
            // Cut short in between.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(changed()),
            other => other.map_err(failed)?,
        }
        read.push(Bytes::from(bytes));
    }
    if is_same()? { Ok(read) } else { Err(changed()) }
}
