//! The store's own folder inside the root: temporary files, and the lock under which names change.
//!
//! `.kiln/lock` is held while a name changes hands; `.kiln/writer-N/lock` for as long as writer N lives, so that its temporary
//! files can be told from those of the dead.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};

/// The folder below the root; no object lives there.
pub(super) const NAME: &str = ".kiln";

/// One writer's place for temporary files.
#[derive(Debug)]
pub(super) struct Workspace {
    folder: PathBuf,
    next_file: AtomicU64,
    /// The mutex keeps threads apart, the lock on the file processes.
    names: Mutex<File>,
    /// Held until the workspace is dropped.
    _alive: File,
}

/// The right to change which file a name stands for.
pub(super) struct NamesGuard<'a> {
    file: MutexGuard<'a, File>,
}

/// A file without a name of its own yet; gone when dropped.
#[derive(Debug)]
pub(super) struct Temporary {
    pub(super) file: File,
    pub(super) path: PathBuf,
}

impl Workspace {
    /// Makes a new writer's place below `root`, which exists.
    pub(super) fn make(root: &Path) -> io::Result<Self> {
        let home = root.join(NAME);
        fs::create_dir_all(&home)?;
        let names = lock_file(&home)?;
        names.lock()?;
        remove_dead_writers(&home)?;
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
        Ok(Self { folder, next_file: AtomicU64::new(0), names: Mutex::new(names), _alive: alive })
    }

    /// Removes what dead writers below `root` have left, if any ever wrote there.
    pub(super) fn sweep(root: &Path) -> io::Result<()> {
        let home = root.join(NAME);
        if !home.try_exists()? {
            return Ok(());
        }
        let names = lock_file(&home)?;
        names.lock()?;
        remove_dead_writers(&home)
    }

    /// Keeps every other writer, in this process and others, from changing names.
    pub(super) fn lock_names(&self) -> io::Result<NamesGuard<'_>> {
        let file = self.names.lock();
        file.lock()?;
        Ok(NamesGuard { file })
    }

    /// An empty temporary file.
    pub(super) fn temporary(&self) -> io::Result<Temporary> {
        let path = self.folder.join(self.next_file.fetch_add(1, Ordering::Relaxed).to_string());
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        Ok(Temporary { file, path })
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // Best effort: what stays is swept by the next writer.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Drop for NamesGuard<'_> {
    fn drop(&mut self) {
        // Cannot fail for a lock that is held; if it did, closing the file at exit would release it.
        let _ = self.file.unlock();
    }
}

impl Temporary {
    /// Appends `pieces`.
    pub(super) fn write<'a>(&mut self, mut pieces: impl Iterator<Item = &'a Bytes>) -> io::Result<()> {
        pieces.try_for_each(|piece| self.file.write_all(piece))
    }

    /// Appends all that is left in `source`.
    pub(super) fn copy_from(&mut self, source: &mut File) -> io::Result<()> {
        io::copy(source, &mut self.file)?;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Gone already where it was renamed; where removal fails, the next sweep does it.
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes the folders of writers whose lock nobody holds. The caller holds the lock on names, under which writers begin.
fn remove_dead_writers(home: &Path) -> io::Result<()> {
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
