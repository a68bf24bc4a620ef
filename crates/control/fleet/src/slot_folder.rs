//! A worker's folder on disk, for its cache and its spill files. The next worker of the slot reuses the cache.
//!
//! The folder of a slot is named `cluster-slot`. A worker locks a file in it for as long as it runs. If a successor
//! starts while its predecessor still runs, it takes another folder, `cluster-slot.1`.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cluster_model::ClusterId;

/// Name of the lock file.
const LOCK_FILE: &str = "lock";

/// Locked folder of a slot, used exclusively until it is dropped.
#[derive(Debug)]
pub(crate) struct SlotFolder {
    path: PathBuf,
    lock: File,
}

impl SlotFolder {
    /// Locks the most recently used of the slot's unlocked folders; creates one if there is none.
    ///
    /// # Errors
    /// A file operation fails.
    pub(crate) fn claim(all: &Path, cluster: ClusterId, slot: u32) -> io::Result<Self> {
        fs::create_dir_all(all)?;
        let mut known: Vec<(SystemTime, PathBuf)> = list_slot_folders(all)?
            .into_iter()
            .filter(|folder| (folder.cluster, folder.slot) == (cluster, slot))
            .map(|folder| (last_used(&folder.path), folder.path))
            .collect();
        known.sort_by(|one, other| other.cmp(one));
        for (_, path) in known {
            if let Some(folder) = Self::lock(path)? {
                return folder.record_use();
            }
        }
        for number in 0.. {
            let more = if number == 0 { String::new() } else { format!(".{number}") };
            let path = all.join(format!("{}-{slot}{more}", cluster.0));
            match fs::create_dir(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            }
            if let Some(folder) = Self::lock(path)? {
                return folder.record_use();
            }
        }
        unreachable!("the numbers of a slot's folders are not exhausted")
    }

    /// Returns the path of the cache folder.
    pub(crate) fn cache_folder(&self) -> PathBuf {
        self.path.join("cache")
    }

    /// Returns the path of the spill folder.
    pub(crate) fn spill_folder(&self) -> PathBuf {
        self.path.join("spill")
    }

    /// Locks a folder; `None` if another process has locked it or it was deleted.
    fn lock(path: PathBuf) -> io::Result<Option<Self>> {
        let lock = match File::options().create(true).append(true).open(path.join(LOCK_FILE)) {
            Ok(lock) => lock,
            // `clean` has deleted it just now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match lock.try_lock() {
            Ok(()) if path.join(LOCK_FILE).try_exists()? => {}
            Ok(()) | Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        Ok(Some(Self { path, lock }))
    }

    /// Writes the lock file, whose modification time tells when the folder was last taken.
    fn record_use(mut self) -> io::Result<Self> {
        self.lock.set_len(0)?;
        self.lock.write_all(b"taken\n")?;
        Ok(self)
    }
}

/// Deletes unlocked folders of slots that are not wanted, and unlocked folders of slots that have a locked one.
pub(crate) fn remove_unused_folders(all: &Path, is_wanted: impl Fn(ClusterId, u32) -> bool) -> io::Result<()> {
    let folders = match list_slot_folders(all) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        folders => folders?,
    };
    let (mut free, mut taken) = (Vec::new(), Vec::new());
    for folder in folders {
        match SlotFolder::lock(folder.path.clone())? {
            Some(lock) => free.push((folder, lock)),
            None => taken.push((folder.cluster, folder.slot)),
        }
    }
    for (folder, lock) in free {
        let slot = (folder.cluster, folder.slot);
        if !is_wanted(folder.cluster, folder.slot) || taken.contains(&slot) {
            fs::remove_dir_all(&folder.path)?;
        }
        drop(lock);
    }
    Ok(())
}

/// Returns the time at which a folder was last taken.
fn last_used(folder: &Path) -> SystemTime {
    let known = fs::metadata(folder.join(LOCK_FILE)).and_then(|lock| lock.modified());
    known.unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Folder of a slot.
struct SlotFolderEntry {
    cluster: ClusterId,
    slot: u32,
    path: PathBuf,
}

/// Lists the folders of slots; ignores other names.
fn list_slot_folders(all: &Path) -> io::Result<Vec<SlotFolderEntry>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(all)? {
        let entry = entry?;
        let name = entry.file_name();
        let slot = name.to_str().and_then(|name| {
            let name = name.split_once('.').map_or(name, |(name, _)| name);
            let (cluster, slot) = name.split_once('-')?;
            Some((ClusterId(cluster.parse().ok()?), slot.parse().ok()?))
        });
        if let Some((cluster, slot)) = slot {
            folders.push(SlotFolderEntry { cluster, slot, path: entry.path() });
        }
    }
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLUSTER: ClusterId = ClusterId(2);

    fn names(all: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(all)
            .expect("read the folder")
            .map(|entry| entry.expect("read the entry").file_name().into_string().expect("names are UTF-8"))
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_successor_reuses_the_folder_and_two_workers_never_share() {
        let all = tempfile::tempdir().expect("create a temporary folder");
        let all = all.path();
        let first = SlotFolder::claim(all, CLUSTER, 0).expect("claim a folder");
        let other_slot = SlotFolder::claim(all, CLUSTER, 1).expect("claim a folder");
        let beside = SlotFolder::claim(all, CLUSTER, 0).expect("claim a folder");
        assert_eq!(names(all), ["2-0", "2-0.1", "2-1"]);
        assert!(first.cache_folder() != beside.cache_folder() && first.spill_folder() != other_slot.spill_folder());
        let path = first.path.clone();
        drop(first);
        // Processes that other tests fork at this moment hold the inherited lock until they call exec.
        let mut others = Vec::new();
        while others.len() < 100 {
            let successor = SlotFolder::claim(all, CLUSTER, 0).expect("claim a folder");
            if successor.path == path {
                return;
            }
            others.push(successor);
        }
        panic!("the successor does not reuse the folder");
    }

    #[test]
    fn unused_folders_are_deleted_unless_locked() {
        let all = tempfile::tempdir().expect("create a temporary folder");
        let all = all.path();
        remove_unused_folders(&all.join("none"), |_, _| false).expect("a missing folder is no error");
        fs::create_dir(all.join("elses")).expect("create a folder");
        let held = SlotFolder::claim(all, CLUSTER, 0).expect("claim a folder");
        let beside = SlotFolder::claim(all, CLUSTER, 0).expect("claim a folder");
        let asleep = SlotFolder::claim(all, CLUSTER, 1).expect("claim a folder");
        let dropped = SlotFolder::claim(all, ClusterId(3), 0).expect("claim a folder");
        fs::create_dir(dropped.cache_folder()).expect("create a folder");
        let dropped_and_held = SlotFolder::claim(all, ClusterId(4), 0).expect("claim a folder");
        drop((beside, asleep, dropped));
        cleaned(all, |cluster, _| cluster == CLUSTER, &["2-0", "2-1", "4-0", "elses"]);
        drop((held, dropped_and_held));
        cleaned(all, |_, _| false, &["elses"]);
    }

    /// Cleans until only `left` remains; repeated because of inherited locks, as above.
    fn cleaned(all: &Path, is_wanted: impl Fn(ClusterId, u32) -> bool, left: &[&str]) {
        for _ in 0..100 {
            remove_unused_folders(all, &is_wanted).expect("delete unused folders");
            if names(all) == left {
                return;
            }
        }
        panic!("unexpected folders {:?}", names(all));
    }
}
