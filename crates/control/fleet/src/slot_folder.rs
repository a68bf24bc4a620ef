//! The folder that a worker has on its disk: for its cache, which its successor in the slot finds, and for what it spills.
//!
//! A slot's folder is called `cluster-slot`. Whoever has one holds a lock in it for as long as it lives. Where a successor comes before the one before it has
//! gone, it takes another, `cluster-slot.1`: two never have the same.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cluster_model::ClusterId;

/// Name of the file that is locked.
const LOCK: &str = "lock";

/// A folder that nobody else has until this is dropped.
#[derive(Debug)]
pub(crate) struct SlotFolder {
    path: PathBuf,
    lock: File,
}

impl SlotFolder {
    /// Of the slot's folders that nobody has, the one that was taken last; a new one where there is none.
    ///
    /// # Errors
    /// What the disk says.
    pub(crate) fn claim(all: &Path, cluster: ClusterId, slot: u32) -> io::Result<Self> {
        fs::create_dir_all(all)?;
        let mut known: Vec<(SystemTime, PathBuf)> = found(all)?
            .into_iter()
            .filter(|folder| (folder.cluster, folder.slot) == (cluster, slot))
            .map(|folder| (taken_at(&folder.path), folder.path))
            .collect();
        known.sort_by(|one, other| other.cmp(one));
        for (_, path) in known {
            if let Some(folder) = Self::lock(path)? {
                return folder.taken();
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
                return folder.taken();
            }
        }
        unreachable!("there is always another number")
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.path.join("cache")
    }

    pub(crate) fn spill(&self) -> PathBuf {
        self.path.join("spill")
    }

    /// The folder, if nobody has it and it is still there.
    fn lock(path: PathBuf) -> io::Result<Option<Self>> {
        let lock = match File::options().create(true).append(true).open(path.join(LOCK)) {
            Ok(lock) => lock,
            // It was taken away just now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match lock.try_lock() {
            Ok(()) if path.join(LOCK).try_exists()? => {}
            Ok(()) | Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        Ok(Some(Self { path, lock }))
    }

    /// Notes when it was taken, by the time at which the file is written.
    fn taken(mut self) -> io::Result<Self> {
        self.lock.set_len(0)?;
        self.lock.write_all(b"taken\n")?;
        Ok(self)
    }
}

/// Takes away folders that nobody has: those of slots that are not wanted, and those beside one that somebody has.
pub(crate) fn clean(all: &Path, is_wanted: impl Fn(ClusterId, u32) -> bool) -> io::Result<()> {
    let folders = match found(all) {
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

fn taken_at(folder: &Path) -> SystemTime {
    let known = fs::metadata(folder.join(LOCK)).and_then(|lock| lock.modified());
    known.unwrap_or(SystemTime::UNIX_EPOCH)
}

struct Found {
    cluster: ClusterId,
    slot: u32,
    path: PathBuf,
}

/// The folders of slots; what is called otherwise is somebody else's.
fn found(all: &Path) -> io::Result<Vec<Found>> {
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
            folders.push(Found { cluster, slot, path: entry.path() });
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
            .expect("it is there")
            .map(|entry| entry.expect("it can be read").file_name().into_string().expect("names are text"))
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_successor_finds_what_was_left_and_two_never_share() {
        let all = tempfile::tempdir().expect("a temporary folder can be made");
        let all = all.path();
        let first = SlotFolder::claim(all, CLUSTER, 0).expect("the disk has room");
        let other_slot = SlotFolder::claim(all, CLUSTER, 1).expect("the disk has room");
        let beside = SlotFolder::claim(all, CLUSTER, 0).expect("the disk has room");
        assert_eq!(names(all), ["2-0", "2-0.1", "2-1"]);
        assert!(first.cache() != beside.cache() && first.spill() != other_slot.spill());
        let path = first.path.clone();
        drop(first);
        // Processes that other tests start at this moment have the lock too until they have become what they are to be.
        let mut others = Vec::new();
        while others.len() < 100 {
            let successor = SlotFolder::claim(all, CLUSTER, 0).expect("the disk has room");
            if successor.path == path {
                return;
            }
            others.push(successor);
        }
        panic!("what was left is not found");
    }

    #[test]
    fn what_is_not_wanted_goes_unless_somebody_has_it() {
        let all = tempfile::tempdir().expect("a temporary folder can be made");
        let all = all.path();
        clean(&all.join("none"), |_, _| false).expect("there is nothing");
        fs::create_dir(all.join("elses")).expect("it is ours");
        let held = SlotFolder::claim(all, CLUSTER, 0).expect("the disk has room");
        let beside = SlotFolder::claim(all, CLUSTER, 0).expect("the disk has room");
        let asleep = SlotFolder::claim(all, CLUSTER, 1).expect("the disk has room");
        let dropped = SlotFolder::claim(all, ClusterId(3), 0).expect("the disk has room");
        fs::create_dir(dropped.cache()).expect("it is ours");
        let dropped_and_held = SlotFolder::claim(all, ClusterId(4), 0).expect("the disk has room");
        drop((beside, asleep, dropped));
        cleaned(all, |cluster, _| cluster == CLUSTER, &["2-0", "2-1", "4-0", "elses"]);
        drop((held, dropped_and_held));
        cleaned(all, |_, _| false, &["elses"]);
    }

    /// Cleans until this is left; see above.
    fn cleaned(all: &Path, is_wanted: impl Fn(ClusterId, u32) -> bool, left: &[&str]) {
        for _ in 0..100 {
            clean(all, &is_wanted).expect("they can be removed");
            if names(all) == left {
                return;
            }
        }
        panic!("there are {:?}", names(all));
    }
}
