//! The disk that a folder lies on.

use std::io;
use std::path::{Path, PathBuf};

use types::Disk;

/// The disk of a folder, which may not exist yet.
#[derive(Debug)]
pub struct FolderDisk {
    folder: PathBuf,
}

impl FolderDisk {
    /// The disk that `folder` lies on, or will.
    #[must_use]
    pub fn of(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Bytes that it has in all, for everybody.
    ///
    /// # Errors
    /// Where the system does not tell.
    pub fn total_bytes(&self) -> io::Result<u64> {
        let found = self.found()?;
        Ok(found.f_blocks.saturating_mul(found.f_frsize))
    }

    fn found(&self) -> io::Result<rustix::fs::StatVfs> {
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
        let found = self.found()?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }
}
