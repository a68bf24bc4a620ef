//! Simulated backend for deterministic simulation: a store in memory on a disk that crashes on command.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use types::Random;
use types::random::SeededRandom;

use crate::redb::{create_checkpoint, insert_checked, space_table};
use crate::{Batch, Direction, Entries, Entry, Error, KeyRange, Op, Result, Space, TxKv};

#[cfg(test)]
mod tests;

/// A simulated disk, which outlives crashes of the store on it. Clones share the disk.
#[derive(Debug, Clone)]
pub struct SimDisk {
    state: Arc<Mutex<DiskState>>,
}

#[derive(Debug)]
struct DiskState {
    spaces: BTreeMap<Space, BTreeMap<Bytes, Bytes>>,
    random: SeededRandom,
    /// Durable content of a disk that acknowledges writes early: all writes but the last. `None` for an honest disk.
    durable_spaces: Option<BTreeMap<Space, BTreeMap<Bytes, Bytes>>>,
    /// Writes that still succeed before one fails; `None` if none is to fail.
    writes_before_failure: Option<u64>,
    /// Incremented by each open and crash; handles of an earlier life are rejected.
    generation: u64,
    /// Whether the store of the current life is open.
    is_open: bool,
    is_poisoned: bool,
}

impl SimDisk {
    /// Creates an empty disk; `seed` decides whether writes in flight survive a crash.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let state = DiskState {
            spaces: BTreeMap::new(),
            random: SeededRandom::new(seed),
            durable_spaces: None,
            writes_before_failure: None,
            generation: 0,
            is_open: false,
            is_poisoned: false,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Opens the store on this disk; fails with [`Error::AlreadyOpen`] while another handle is open and has not
    /// crashed.
    pub fn open(&self) -> Result<SimStore> {
        let mut state = self.state.lock();
        if state.is_open {
            return Err(Error::AlreadyOpen { path: path() });
        }
        state.generation += 1;
        state.is_open = true;
        state.is_poisoned = false;
        Ok(SimStore { disk: self.clone(), generation: state.generation })
    }

    /// Makes the write after the next `count` fail as in a crash: it is not acknowledged, and the seed decides whether
    /// it took effect.
    pub fn fail_after(&self, count: u64) {
        self.state.lock().writes_before_failure = Some(count);
    }

    /// Makes the disk acknowledge writes before they are durable: a crash then loses the last one. Used to show that
    /// the tests notice such a disk, on which no store can be safe.
    pub fn acknowledge_early(&self) {
        let mut state = self.state.lock();
        state.durable_spaces = Some(state.spaces.clone());
    }

    /// Returns another disk with the same content, like a copy of a stopped server's folder.
    #[must_use]
    pub fn duplicate(&self, seed: u64) -> Self {
        let copy = Self::new(seed);
        copy.state.lock().spaces = self.state.lock().spaces.clone();
        copy
    }

    /// Crashes the open store, if any: its handle rejects all further calls, and the disk can be opened again.
    pub fn crash(&self) {
        let mut state = self.state.lock();
        state.generation += 1;
        state.is_open = false;
        state.writes_before_failure = None;
        if let Some(synced) = &state.durable_spaces {
            state.spaces = synced.clone();
        }
    }
}

/// A handle of the store on a [`SimDisk`], valid until the next crash.
#[derive(Debug)]
pub struct SimStore {
    disk: SimDisk,
    generation: u64,
}

impl SimStore {
    /// Locks the disk; fails if this handle has crashed or is poisoned.
    fn lock_usable(&self) -> Result<MutexGuard<'_, DiskState>> {
        let state = self.disk.state.lock();
        if state.generation != self.generation || state.is_poisoned {
            Err(Error::Poisoned { path: path() })
        } else {
            Ok(state)
        }
    }

    /// Applies `change` as one durable write, or fails if the disk is set to fail now.
    fn apply(&self, change: impl FnOnce(&mut BTreeMap<Space, BTreeMap<Bytes, Bytes>>)) -> Result<()> {
        let mut state = self.lock_usable()?;
        match &mut state.writes_before_failure {
            Some(0) => {
                state.is_poisoned = true;
                if state.random.next_u64().is_multiple_of(2) {
                    change(&mut state.spaces);
                }
                let source = io::Error::other("write failure injected by the simulated disk").into();
                return Err(Error::Write { path: path(), source });
            }
            Some(left) => *left -= 1,
            None => {}
        }
        if state.durable_spaces.is_some() {
            state.durable_spaces = Some(state.spaces.clone());
        }
        change(&mut state.spaces);
        Ok(())
    }
}

impl Drop for SimStore {
    fn drop(&mut self) {
        let mut state = self.disk.state.lock();
        if state.generation == self.generation {
            state.is_open = false;
        }
    }
}

impl TxKv for SimStore {
    fn write(&self, batch: Batch) -> Result<()> {
        batch.check_sizes()?;
        self.apply(|spaces| {
            for op in batch.ops() {
                let entries = spaces.entry(op.space()).or_default();
                match op {
                    Op::Put { key, value, .. } => entries.insert(key.clone(), value.clone()),
                    Op::Delete { key, .. } => entries.remove(key),
                };
            }
        })
    }

    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.lock_usable()?.spaces.get(&space).and_then(|entries| entries.get(key)).cloned())
    }

    fn multi_get(&self, space: Space, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        let state = self.lock_usable()?;
        let entries = state.spaces.get(&space);
        Ok(keys.iter().map(|&key| entries.and_then(|entries| entries.get(key)).cloned()).collect())
    }

    fn scan(&self, space: Space, range: KeyRange, direction: Direction) -> Result<Entries> {
        let state = self.lock_usable()?;
        if range.is_empty() {
            return Ok(Box::new(std::iter::empty()));
        }
        let entries: Vec<Entry> = state
            .spaces
            .get(&space)
            .into_iter()
            .flat_map(|entries| entries.range::<[u8], _>(range.bounds()))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        Ok(match direction {
            Direction::Forward => Box::new(entries.into_iter().map(Ok)),
            Direction::Reverse => Box::new(entries.into_iter().rev().map(Ok)),
        })
    }

    fn delete_prefix(&self, space: Space, prefix: &[u8]) -> Result<()> {
        self.apply(|spaces| {
            spaces.entry(space).or_default().retain(|key, _| !key.starts_with(prefix));
        })
    }

    fn checkpoint(&self, path: &Path) -> Result<()> {
        let spaces = self.lock_usable()?.spaces.clone();
        create_checkpoint(path, |copy| {
            for (space, entries) in &spaces {
                let mut target = copy.open_table(space_table(*space))?;
                for (key, value) in entries {
                    insert_checked(&mut target, *space, key, value)?;
                }
            }
            Ok(())
        })
    }

    fn is_poisoned(&self) -> bool {
        self.lock_usable().is_err()
    }
}

fn path() -> PathBuf {
    PathBuf::from("(simulated)")
}
