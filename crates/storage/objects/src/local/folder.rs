//! Blocking file operations of the local store.

use std::collections::HashSet;
use std::fs::{self, File, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use object_store::path::Path;
use object_store::{Error, ListResult, ObjectMeta, PutMode, PutResult, Result, UpdateVersion};
use parking_lot::Mutex;
use types::{Clock, DiskReserve, Failpoint};

use super::buffer_pool::BufferPool;
use super::local_error;
use super::temporary_files::{TEMPORARY_FOLDER_NAME, TemporaryFile, TemporaryFolder};

/// A folder whose files are objects.
#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
    clock: Arc<dyn Clock>,
    /// Folder for temporary files, created by the first write.
    temporary_folder: Mutex<Option<Arc<TemporaryFolder>>>,
    /// Folders below the root whose directory entries have been synced.
    synced_folders: Mutex<HashSet<PathBuf>>,
    /// Last modification time given to a file, in nanoseconds since 1970; each time is given only once.
    last_mtime_ns: AtomicU64,
    /// Disk space that writes must leave free.
    reserve: Option<DiskReserve>,
    /// Pool of read buffers.
    buffers: Arc<BufferPool>,
}

impl Folder {
    pub(super) fn new(root: &FilePath, clock: Arc<dyn Clock>, reserve: Option<DiskReserve>) -> Result<Self> {
        let root = std::path::absolute(root).map_err(|source| local_error(source.into()))?;
        let (temporary_folder, durable) = (Mutex::default(), Mutex::default());
        Ok(Self {
            root,
            clock,
            temporary_folder,
            synced_folders: durable,
            last_mtime_ns: AtomicU64::new(0),
            reserve,
            buffers: Arc::default(),
        })
    }

    /// Checks that writing `bytes` leaves the reserve free.
    pub(super) fn check_space(&self, bytes: u64) -> Result<()> {
        let Some(reserve) = &self.reserve else { return Ok(()) };
        reserve.check_space(bytes).map_err(|source| local_error(source.into()))
    }

    /// Checks that there is space for an object of `bytes` that is written by a single put. Such objects may use three
    /// quarters of the reserve: they are small, and archived log records are among them, without which nothing can be
    /// deleted.
    pub(super) fn check_space_for_put(&self, bytes: u64) -> Result<()> {
        let Some(reserve) = &self.reserve else { return Ok(()) };
        let last = DiskReserve { disk: Arc::clone(&reserve.disk), bytes: reserve.bytes / 4 };
        last.check_space(bytes).map_err(|source| local_error(source.into()))
    }

    pub(super) fn root(&self) -> &FilePath {
        &self.root
    }

    /// Removes temporary files that ended processes left. Failures are only logged: a process with read access cannot and need
    /// not do it.
    pub(super) fn remove_leftover_files(&self) {
        if let Err(error) = TemporaryFolder::remove_leftover_files(&self.root) {
            tracing::debug!(
                root = %self.root.display(),
                %error,
                "could not remove the temporary files that ended processes left; they keep occupying disk space"
            );
        }
    }

    /// Creates an empty temporary file for [`Self::publish`].
    pub(super) fn create_temporary(&self) -> Result<TemporaryFile> {
        let temporary_folder = self.temporary_folder()?;
        temporary_folder.create_temporary().map_err(|source| local_error(source.into()))
    }

    /// Makes `file` the object at `location`, durably, if the conditions of `mode` hold.
    pub(super) fn publish(&self, file: TemporaryFile, location: &Path, mode: &PutMode) -> Result<PutResult> {
        let target = self.path(location)?;
        let io_failed = |source: io::Error| step_error("write", &target, &source);
        let parent = target.parent().expect("an object's path is below the root");
        self.make_folder(parent).map_err(io_failed)?;
        self.check_inside(parent, location)?;
        file.file.sync_all().map_err(io_failed)?;
        Failpoint::ObjectWritten.check().map_err(io_failed)?;
        let temporary_folder = self.temporary_folder()?;
        match mode {
            PutMode::Create => {
                self.set_unique_mtime(&file, 0).map_err(io_failed)?;
                fs::hard_link(&file.path, &target).map_err(|source| match source.kind() {
                    io::ErrorKind::AlreadyExists => {
                        Error::AlreadyExists { path: location.to_string(), source: source.into() }
                    }
                    _ => io_failed(source),
                })?;
            }
            PutMode::Overwrite | PutMode::Update(_) => {
                // The lock keeps two writers from both seeing the same version and both replacing it.
                let _names = temporary_folder.lock_renames().map_err(io_failed)?;
                let present = match fs::symlink_metadata(&target) {
                    Ok(present) => Some(present),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                    Err(error) => return Err(io_failed(error)),
                };
                if let PutMode::Update(expected) = mode {
                    check_version(location, present.as_ref(), expected)?;
                }
                let later_than = present.as_ref().map_or(0, modified_ns);
                self.set_unique_mtime(&file, later_than).map_err(io_failed)?;
                fs::rename(&file.path, &target).map_err(io_failed)?;
            }
        }
        Failpoint::ObjectNamed.pass();
        sync_folder(parent).map_err(io_failed)?;
        Failpoint::ObjectStored.pass();
        let meta = file.file.metadata().map_err(io_failed)?;
        Ok(PutResult { e_tag: Some(e_tag(&meta)), version: None })
    }

    /// Opens the object's file and returns it with its metadata.
    pub(super) fn open(&self, location: &Path) -> Result<(File, ObjectMeta)> {
        let path = self.path(location)?;
        let opened = File::open(&path).and_then(|file| Ok((file.metadata()?, file)));
        let (meta, file) = opened.map_err(|source| access_error(location, &path, source))?;
        if !meta.is_file() {
            return Err(not_found_error(location, "it is a folder"));
        }
        self.check_inside(&path, location)?;
        Ok((file, object_meta(location.clone(), &meta)))
    }

    /// Deletes the object durably.
    pub(super) fn delete(&self, location: &Path) -> Result<()> {
        let path = self.path(location)?;
        let parent = path.parent().expect("an object's path is below the root");
        let gone_or_failed = |source| access_error(location, &path, source);
        let meta = fs::symlink_metadata(&path).map_err(gone_or_failed)?;
        if meta.is_dir() {
            return Err(not_found_error(location, "it is a folder"));
        }
        self.check_inside(parent, location)?;
        {
            let temporary_folder = self.temporary_folder()?;
            let _names = temporary_folder.lock_renames().map_err(gone_or_failed)?;
            fs::remove_file(&path).map_err(gone_or_failed)?;
        }
        Failpoint::ObjectDeleted.pass();
        sync_folder(parent).map_err(gone_or_failed)
    }

    /// Lists all objects below `prefix`. Symbolic links are not objects.
    pub(super) fn list(&self, prefix: &Path) -> Result<Vec<ObjectMeta>> {
        let mut objects = Vec::new();
        let mut folders = vec![prefix.clone()];
        while let Some(folder) = folders.pop() {
            let found = self.list_with_delimiter(&folder)?;
            objects.extend(found.objects);
            folders.extend(found.common_prefixes);
        }
        Ok(objects)
    }

    /// Lists the objects and folders directly below `prefix`.
    pub(super) fn list_with_delimiter(&self, prefix: &Path) -> Result<ListResult> {
        let mut found = ListResult { common_prefixes: Vec::new(), objects: Vec::new() };
        let folder = self.folder_path(prefix)?;
        let io_failed =
            |source: io::Error| local_error(format!("failed to list {}: {source}", folder.display()).into());
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if is_absent(&error) => return Ok(found),
            Err(error) => return Err(io_failed(error)),
        };
        self.check_inside(&folder, prefix)?;
        for entry in entries {
            let entry = entry.map_err(io_failed)?;
            let name = entry.file_name();
            if prefix.is_root() && name == TEMPORARY_FOLDER_NAME {
                continue;
            }
            // Files whose names are no valid object names were not written by this store.
            let Some(location) = name.to_str().and_then(|name| child_location(prefix, name)) else { continue };
            let kind = entry.file_type().map_err(io_failed)?;
            if kind.is_dir() {
                found.common_prefixes.push(location);
            } else if kind.is_file() {
                match entry.metadata() {
                    Ok(meta) => found.objects.push(object_meta(location, &meta)),
                    Err(error) if is_absent(&error) => {}
                    Err(error) => return Err(io_failed(error)),
                }
            }
        }
        Ok(found)
    }

    /// Returns the writer's folder for temporary files; creates it on first use.
    fn temporary_folder(&self) -> Result<Arc<TemporaryFolder>> {
        let mut temporary_folder = self.temporary_folder.lock();
        if let Some(temporary_folder) = &*temporary_folder {
            return Ok(Arc::clone(temporary_folder));
        }
        let io_failed = |source: io::Error| step_error("create a folder for temporary files in", &self.root, &source);
        self.make_folder(&self.root).map_err(io_failed)?;
        let made = Arc::new(TemporaryFolder::create(&self.root).map_err(io_failed)?);
        Ok(Arc::clone(temporary_folder.insert(made)))
    }

    /// Returns the path of an object's file; rejects names that lead out of the folder or into `.kiln`.
    fn path(&self, location: &Path) -> Result<PathBuf> {
        if location.is_root() {
            return Err(name_error(location, "it is empty"));
        }
        self.folder_path(location)
    }

    fn folder_path(&self, prefix: &Path) -> Result<PathBuf> {
        let mut path = self.root.clone();
        for (index, part) in prefix.as_ref().split('/').filter(|_| !prefix.is_root()).enumerate() {
            if part.is_empty() || part == "." || part == ".." || part.contains(['\0', '\\']) {
                return Err(name_error(prefix, "a part of it is not a valid file name"));
            }
            if index == 0 && part == TEMPORARY_FOLDER_NAME {
                return Err(name_error(prefix, "names below .kiln are reserved"));
            }
            path.push(part);
        }
        Ok(path)
    }

    /// Checks that no symbolic link in `path`, which must exist, leads out of the folder.
    fn check_inside(&self, path: &FilePath, location: &Path) -> Result<()> {
        let io_failed = |source: io::Error| access_error(location, path, source);
        let root = fs::canonicalize(&self.root).map_err(io_failed)?;
        let real = fs::canonicalize(path).map_err(io_failed)?;
        if real.starts_with(&root) {
            return Ok(());
        }
        let source = format!("a symbolic link leads out of {}", self.root.display()).into();
        Err(Error::PermissionDenied { path: location.to_string(), source })
    }

    /// Creates `folder` and its parents durably.
    fn make_folder(&self, folder: &FilePath) -> io::Result<()> {
        if self.synced_folders.lock().contains(folder) {
            return Ok(());
        }
        let Some(parent) = folder.parent() else { return Ok(()) };
        // Parents above the root are left alone unless they have to be created.
        if folder.starts_with(&self.root) && folder != self.root || !parent.try_exists()? {
            self.make_folder(parent)?;
        }
        match fs::create_dir(folder) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        // Also if it existed: its creator may have died before the sync.
        sync_folder(parent)?;
        self.synced_folders.lock().insert(folder.to_owned());
        Ok(())
    }

    /// Reads `range` of a file; returns fewer bytes if the file ends before.
    pub(super) fn read(&self, file: &File, location: &Path, range: Range<u64>) -> Result<Bytes> {
        let failed_at = |source: io::Error| local_error(format!("failed to read {location}: {source}").into());
        let length = file.metadata().map_err(failed_at)?.len();
        let end = range.end.min(length);
        let bytes = usize::try_from(end.saturating_sub(range.start)).map_err(|source| local_error(source.into()))?;
        self.buffers.fill_buffer(bytes, |buffer| file.read_exact_at(buffer, range.start).map_err(failed_at))
    }

    /// Sets a modification time on `file` that no earlier content of its name has had. It makes the version unique,
    /// because file systems soon reuse the inodes of deleted files.
    fn set_unique_mtime(&self, file: &TemporaryFile, later_than: u64) -> io::Result<()> {
        let now = u64::try_from(self.clock.now_us()).unwrap_or(0) * 1_000;
        let floor = now.max(later_than + 1);
        let stamped = |last: u64| floor.max(last + 1);
        let last = self.last_mtime_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(stamped(last)));
        let stamp = stamped(last.unwrap_or_else(|last| last));
        file.file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_nanos(stamp))
    }
}

/// Builds an error that keeps the kind of `source`, by which a full disk is recognized.
fn step_error(step: &str, path: &FilePath, source: &io::Error) -> Error {
    local_error(io::Error::new(source.kind(), format!("failed to {step} {}: {source}", path.display())).into())
}

fn child_location(prefix: &Path, name: &str) -> Option<Path> {
    let location = if prefix.is_root() { name.to_owned() } else { format!("{prefix}/{name}") };
    Path::parse(location).ok()
}

fn check_version(location: &Path, present: Option<&Metadata>, expected: &UpdateVersion) -> Result<()> {
    let found = present.map(e_tag);
    if found.is_some() && found == expected.e_tag {
        return Ok(());
    }
    let source = format!("its version is {found:?}, and {:?} was expected", expected.e_tag).into();
    Err(Error::Precondition { path: location.to_string(), source })
}

fn object_meta(location: Path, meta: &Metadata) -> ObjectMeta {
    let modified = i64::try_from(modified_ns(meta)).unwrap_or(i64::MAX);
    let last_modified: DateTime<Utc> = DateTime::from_timestamp_nanos(modified);
    ObjectMeta { location, last_modified, size: meta.len(), e_tag: Some(e_tag(meta)), version: None }
}

/// Returns the version of a file: inode, modification time and size.
fn e_tag(meta: &Metadata) -> String {
    format!("\"{:x}-{:x}-{:x}\"", meta.ino(), modified_ns(meta), meta.len())
}

/// Returns the modification time in nanoseconds since 1970; 0 for earlier times.
fn modified_ns(meta: &Metadata) -> u64 {
    let seconds = u64::try_from(meta.mtime()).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(meta.mtime_nsec()).unwrap_or(0))
}

fn sync_folder(folder: &FilePath) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Whether the error means that the path does not exist: no such file, or a parent that is a file.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn access_error(location: &Path, path: &FilePath, source: io::Error) -> Error {
    if is_absent(&source) {
        return Error::NotFound { path: location.to_string(), source: source.into() };
    }
    if source.kind() == io::ErrorKind::PermissionDenied {
        return Error::PermissionDenied { path: location.to_string(), source: source.into() };
    }
    local_error(format!("failed to open {}: {source}", path.display()).into())
}

fn not_found_error(location: &Path, reason: &str) -> Error {
    Error::NotFound { path: location.to_string(), source: reason.into() }
}

fn name_error(location: &Path, reason: &str) -> Error {
    Error::NotSupported { source: format!("\"{location}\" cannot be the name of an object: {reason}").into() }
}
