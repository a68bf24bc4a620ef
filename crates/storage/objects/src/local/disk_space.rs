//! Size and free space of the disk that contains a folder.

use std::io;
use std::path::{Path, PathBuf};

use types::Disk;

/// The disk that contains a folder. The folder need not exist yet.
#[derive(Debug)]
pub struct FolderDisk {
    folder: PathBuf,
}

impl FolderDisk {
    /// Returns the disk that contains, or will contain, `folder`.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Returns the total size of the disk, in bytes.
    ///
    /// # Errors
    /// If `statvfs` fails.
    pub fn total_bytes(&self) -> io::Result<u64> {
        let found = self.query_statvfs()?;
        Ok(found.f_blocks.saturating_mul(found.f_frsize))
    }

    /// Queries the folder's file system, or that of the nearest parent that exists.
    fn query_statvfs(&self) -> io::Result<rustix::fs::StatVfs> {
        let mut folder = self.folder.as_path();
        loop {
            match (rustix::fs::statvfs(folder), folder.parent()) {
                (Ok(found), _) => return Ok(found),
                (Err(rustix::io::Errno::NOENT), Some(parent)) => folder = parent,
                (Err(error), _) => return Err(error.into()),
            }
        }
    }
}

impl Disk for FolderDisk {
    fn free_bytes(&self) -> io::Result<u64> {
        let found = self.query_statvfs()?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }
}
