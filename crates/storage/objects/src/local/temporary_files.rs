//! The store's folder `.kiln` inside the root: temporary files and locks.
//!
//! `.kiln/lock` is held while a file is renamed or deleted. `.kiln/writer-N/lock` is held while writer N is alive, so
//! that temporary files that ended processes left can be identified and removed.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};

/// Name of the folder below the root; it contains no objects.
pub(super) const TEMPORARY_FOLDER_NAME: &str = ".kiln";

/// Folder of one writer for temporary files.
#[derive(Debug)]
pub(super) struct TemporaryFolder {
    folder: PathBuf,
    next_file: AtomicU64,
    /// Lock for renames: the mutex excludes threads, the lock on the file excludes processes.
    rename_lock: Mutex<File>,
    /// Lock that marks the writer as alive, held until the temporary folder is dropped.
    _alive: File,
}

/// Guard of the lock for renames and deletions.
pub(super) struct RenameGuard<'a> {
    file: MutexGuard<'a, File>,
}

/// A temporary file, removed when dropped.
#[derive(Debug)]
pub(super) struct TemporaryFile {
    pub(super) file: File,
    pub(super) path: PathBuf,
}

impl TemporaryFolder {
    /// Creates the folder of a new writer below `root`, which must exist.
    pub(super) fn create(root: &Path) -> io::Result<Self> {
        let home = root.join(TEMPORARY_FOLDER_NAME);
        fs::create_dir_all(&home)?;
        let names = lock_file(&home)?;
        names.lock()?;
        remove_folders_of_ended_writers(&home)?;
        let mut number = 0;
        let folder = loop {
            let folder = home.join(format!("writer-{number}"));
            match fs::create_dir(&folder) {
                Ok(()) => break folder,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        };
        let alive = lock_file(&folder)?;
        alive.lock()?;
        names.unlock()?;
        Ok(Self { folder, next_file: AtomicU64::new(0), rename_lock: Mutex::new(names), _alive: alive })
    }

    /// Removes the folders of dead writers below `root`.
    pub(super) fn remove_leftover_files(root: &Path) -> io::Result<()> {
        let home = root.join(TEMPORARY_FOLDER_NAME);
        if !home.try_exists()? {
            return Ok(());
        }
        let names = lock_file(&home)?;
        names.lock()?;
        remove_folders_of_ended_writers(&home)
    }

    /// Locks renames and deletions against all other writers, in this and in other processes.
    pub(super) fn lock_renames(&self) -> io::Result<RenameGuard<'_>> {
        let file = self.rename_lock.lock();
        file.lock()?;
        Ok(RenameGuard { file })
    }

    /// Creates an empty temporary file.
    pub(super) fn create_temporary(&self) -> io::Result<TemporaryFile> {
        let path = self.folder.join(self.next_file.fetch_add(1, Ordering::Relaxed).to_string());
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        Ok(TemporaryFile { file, path })
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // Best effort: the next writer sweeps leftovers.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Drop for RenameGuard<'_> {
    fn drop(&mut self) {
        // Unlocking a held lock does not fail; even if it did, closing the file would release the lock.
        let _ = self.file.unlock();
    }
}

impl TemporaryFile {
    /// Appends `pieces` to the file.
    pub(super) fn write<'a>(&mut self, mut chunks: impl Iterator<Item = &'a Bytes>) -> io::Result<()> {
        chunks.try_for_each(|piece| self.file.write_all(piece))
    }

    /// Appends `source` from its current position to its end.
    pub(super) fn copy_from(&mut self, source: &mut File) -> io::Result<()> {
        io::copy(source, &mut self.file)?;
        Ok(())
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // A renamed file is already gone; if the removal fails, the next sweep removes the file.
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes the folders of writers whose lock is free. The caller must hold the lock for renames, under which new
/// writers create their folders.
fn remove_folders_of_ended_writers(home: &Path) -> io::Result<()> {
    for entry in fs::read_dir(home)? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            continue;
        }
        match lock_file(&entry.path())?.try_lock() {
            Ok(()) => fs::remove_dir_all(entry.path())?,
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(())
}

fn lock_file(folder: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).open(folder.join("lock"))
}
