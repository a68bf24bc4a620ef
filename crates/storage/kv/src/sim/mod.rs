//! Simulated backend for deterministic simulation: a store in memory on a disk that crashes on command.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use types::Random;
use types::random::SeededRandom;

use crate::redb::{checkpoint, insert, table};
use crate::{Batch, Direction, Entries, Entry, Error, KeyRange, Op, Result, Space, TxKv};

#[cfg(test)]
mod tests;

/// A simulated disk, which outlives crashes of the store on it. Clones share the disk.
#[derive(Debug, Clone)]
pub struct Disk {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    spaces: BTreeMap<Space, BTreeMap<Bytes, Bytes>>,
    random: SeededRandom,
    /// Durable content of a disk that acknowledges writes early: all writes but the last. `None` for an honest disk.
    synced: Option<BTreeMap<Space, BTreeMap<Bytes, Bytes>>>,
    /// Writes that still succeed before one fails; `None` if none is to fail.
    fuse: Option<u64>,
    /// Incremented by each open and crash; handles of an earlier life are rejected.
    life: u64,
    /// Whether the store of the current life is open.
    open: bool,
    poisoned: bool,
}

impl Disk {
    /// Creates an empty disk; `seed` decides whether writes in flight survive a crash.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let state = State {
            spaces: BTreeMap::new(),
            random: SeededRandom::new(seed),
            synced: None,
            fuse: None,
            life: 0,
            open: false,
            poisoned: false,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Opens the store on this disk; fails with [`Error::AlreadyOpen`] while another handle is open and has not
    /// crashed.
    pub fn open(&self) -> Result<Store> {
        let mut state = self.state.lock();
        if state.open {
            return Err(Error::AlreadyOpen { path: path() });
        }
        state.life += 1;
        state.open = true;
        state.poisoned = false;
        Ok(Store { disk: self.clone(), life: state.life })
    }

    /// Makes the write after the next `count` fail as in a crash: it is not acknowledged, and the seed decides whether
    /// it took effect.
    pub fn fail_after(&self, count: u64) {
        self.state.lock().fuse = Some(count);
    }

    /// Makes the disk acknowledge writes before they are durable: a crash then loses the last one. Used to show that
    /// the tests notice such a disk, on which no store can be safe.
    pub fn lie(&self) {
        let mut state = self.state.lock();
        state.synced = Some(state.spaces.clone());
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
        state.life += 1;
        state.open = false;
        state.fuse = None;
        if let Some(synced) = &state.synced {
            state.spaces = synced.clone();
        }
    }
}

/// A handle of the store on a [`Disk`], valid until the next crash.
#[derive(Debug)]
pub struct Store {
    disk: Disk,
    life: u64,
}

impl Store {
    /// Locks the disk; fails if this handle has crashed or is poisoned.
    fn usable(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.disk.state.lock();
        if state.life != self.life || state.poisoned { Err(Error::Poisoned { path: path() }) } else { Ok(state) }
    }

    /// Applies `change` as one durable write, or fails if the disk is set to fail now.
    fn change(&self, change: impl FnOnce(&mut BTreeMap<Space, BTreeMap<Bytes, Bytes>>)) -> Result<()> {
        let mut state = self.usable()?;
        match &mut state.fuse {
            Some(0) => {
                state.poisoned = true;
                if state.random.next_u64().is_multiple_of(2) {
                    change(&mut state.spaces);
                }
                let source = io::Error::other("injected failure").into();
                return Err(Error::Write { path: path(), source });
            }
            Some(left) => *left -= 1,
            None => {}
        }
        if state.synced.is_some() {
            state.synced = Some(state.spaces.clone());
        }
        change(&mut state.spaces);
        Ok(())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let mut state = self.disk.state.lock();
        if state.life == self.life {
            state.open = false;
        }
    }
}

impl TxKv for Store {
    fn write(&self, batch: Batch) -> Result<()> {
        batch.check_sizes()?;
        self.change(|spaces| {
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
        Ok(self.usable()?.spaces.get(&space).and_then(|entries| entries.get(key)).cloned())
    }

    fn multi_get(&self, space: Space, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        let state = self.usable()?;
        let entries = state.spaces.get(&space);
        Ok(keys.iter().map(|&key| entries.and_then(|entries| entries.get(key)).cloned()).collect())
    }

    fn scan(&self, space: Space, range: KeyRange, direction: Direction) -> Result<Entries> {
        let state = self.usable()?;
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
        self.change(|spaces| {
            spaces.entry(space).or_default().retain(|key, _| !key.starts_with(prefix));
        })
    }

    fn checkpoint(&self, path: &Path) -> Result<()> {
        let spaces = self.usable()?.spaces.clone();
        checkpoint(path, |copy| {
            for (space, entries) in &spaces {
                let mut target = copy.open_table(table(*space))?;
                for (key, value) in entries {
                    insert(&mut target, *space, key, value)?;
                }
            }
            Ok(())
        })
    }

    fn is_poisoned(&self) -> bool {
        self.usable().is_err()
    }
}

fn path() -> PathBuf {
    PathBuf::from("(simulated)")
}
