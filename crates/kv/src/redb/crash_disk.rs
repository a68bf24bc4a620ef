//! A storage for `redb` in memory that loses and tears unsynced writes when it crashes.

use std::fmt;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use redb::StorageBackend;
use types::Random;
use types::random::SeededRandom;

/// What a power cut keeps or loses as one piece.
const SECTOR_BYTES: usize = 512;

/// A disk that outlives the crashes of the store on it.
#[derive(Clone)]
pub(super) struct CrashDisk {
    state: Arc<Mutex<State>>,
}

struct State {
    /// What a read sees.
    current: Vec<u8>,
    /// What is safe.
    synced: Vec<u8>,
    unsynced: Vec<Change>,
    random: SeededRandom,
    /// Requests left before every one fails.
    fuse: Option<u64>,
    request_count: u64,
    /// Handles of earlier lives fail.
    life: u64,
}

enum Change {
    Write { offset: usize, data: Vec<u8> },
    SetLength(usize),
}

impl CrashDisk {
    pub(super) fn new(seed: u64) -> Self {
        let state = State {
            current: Vec::new(),
            synced: Vec::new(),
            unsynced: Vec::new(),
            random: SeededRandom::new(seed),
            fuse: None,
            request_count: 0,
            life: 0,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// A handle for a new store; those before it are dead.
    pub(super) fn backend(&self) -> Handle {
        let mut state = self.state.lock();
        state.life += 1;
        Handle { disk: self.clone(), life: state.life }
    }

    /// Fails every write, sync and resize after the next `count`.
    pub(super) fn fail_after(&self, count: u64) {
        self.state.lock().fuse = Some(count);
    }

    /// Writes, syncs and resizes so far.
    pub(super) fn request_count(&self) -> u64 {
        self.state.lock().request_count
    }

    /// The power goes and comes back: each unsynced write is there, is not, or is there in part.
    pub(super) fn crash(&self) {
        let state = &mut *self.state.lock();
        for change in std::mem::take(&mut state.unsynced) {
            let fate = state.random.next_u64() % 3;
            match change {
                _ if fate == 0 => {}
                Change::SetLength(length) => state.synced.resize(length, 0),
                Change::Write { offset, data } => {
                    for (index, sector) in data.chunks(SECTOR_BYTES).enumerate() {
                        if fate == 1 || state.random.next_u64().is_multiple_of(2) {
                            write_at(&mut state.synced, offset + index * SECTOR_BYTES, sector);
                        }
                    }
                }
            }
        }
        state.current = state.synced.clone();
        state.fuse = None;
        state.life += 1;
    }
}

/// One life's view of the disk.
pub(super) struct Handle {
    disk: CrashDisk,
    life: u64,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("life", &self.life).finish_non_exhaustive()
    }
}

impl Handle {
    fn read_state<T>(&self, read: impl FnOnce(&State) -> io::Result<T>) -> io::Result<T> {
        let state = self.disk.state.lock();
        if state.life != self.life {
            return Err(io::Error::other("the power is off"));
        }
        read(&state)
    }

    fn request(&self, apply: impl FnOnce(&mut State)) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        if state.life != self.life {
            return Err(io::Error::other("the power is off"));
        }
        state.request_count += 1;
        match &mut state.fuse {
            Some(0) => return Err(io::Error::other("injected failure")),
            Some(left) => *left -= 1,
            None => {}
        }
        apply(&mut state);
        Ok(())
    }
}

impl StorageBackend for Handle {
    fn len(&self) -> io::Result<u64> {
        self.read_state(|state| Ok(state.current.len() as u64))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.read_state(|state| {
            let start = usize::try_from(offset).map_err(io::Error::other)?;
            let bytes = state.current.get(start..start + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
            out.copy_from_slice(bytes);
            Ok(())
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let length = usize::try_from(len).map_err(io::Error::other)?;
        self.request(|state| {
            state.current.resize(length, 0);
            state.unsynced.push(Change::SetLength(length));
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.request(|state| {
            for change in std::mem::take(&mut state.unsynced) {
                match change {
                    Change::SetLength(length) => state.synced.resize(length, 0),
                    Change::Write { offset, data } => write_at(&mut state.synced, offset, &data),
                }
            }
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        self.request(|state| {
            write_at(&mut state.current, offset, data);
            state.unsynced.push(Change::Write { offset, data: data.to_vec() });
        })
    }
}

fn write_at(image: &mut Vec<u8>, offset: usize, data: &[u8]) {
    let end = offset + data.len();
    if image.len() < end {
        image.resize(end, 0);
    }
    image[offset..end].copy_from_slice(data);
}
