//! Test files in memory that lose and tear unsynced writes in a simulated power failure.

use std::fmt;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use redb::StorageBackend;
use types::Random;
use types::random::SeededRandom;

/// Unit in which a power failure keeps or loses data, in bytes.
const SECTOR_BYTES: usize = 512;

/// A simulated disk, which outlives crashes of the store on it.
#[derive(Clone)]
pub(crate) struct CrashDisk {
    state: Arc<Mutex<DiskState>>,
}

struct DiskState {
    files: Vec<FileContent>,
    random: SeededRandom,
    /// Requests that still succeed before all fail; `None` if none is to fail.
    requests_before_failure: Option<u64>,
    request_count: u64,
    /// Incremented by each open and crash; handles of an earlier life fail.
    generation: u64,
}

#[derive(Default)]
struct FileContent {
    /// Content that reads return.
    current: Vec<u8>,
    /// Content that survives a power failure.
    synced: Vec<u8>,
    /// Changes since the last sync.
    unsynced: Vec<Change>,
}

enum Change {
    Write { offset: usize, data: Vec<u8> },
    SetLength(usize),
}

impl CrashDisk {
    pub(crate) fn new(seed: u64) -> Self {
        let state = DiskState {
            files: Vec::new(),
            random: SeededRandom::new(seed),
            requests_before_failure: None,
            request_count: 0,
            generation: 0,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Opens the disk's files for a new store and invalidates all earlier handles.
    pub(crate) fn open_files<const COUNT: usize>(&self) -> [FileHandle; COUNT] {
        let mut state = self.state.lock();
        state.generation += 1;
        if state.files.len() < COUNT {
            state.files.resize_with(COUNT, FileContent::default);
        }
        std::array::from_fn(|file| FileHandle { disk: self.clone(), generation: state.generation, file })
    }

    /// Makes every write, sync and resize after the next `count` fail.
    pub(crate) fn fail_after(&self, count: u64) {
        self.state.lock().requests_before_failure = Some(count);
    }

    /// Returns the number of writes, syncs and resizes so far.
    pub(crate) fn request_count(&self) -> u64 {
        self.state.lock().request_count
    }

    /// Simulates a power failure: each unsynced change survives, is lost, or, for a write, survives in part.
    pub(crate) fn crash(&self) {
        let state = &mut *self.state.lock();
        for file in &mut state.files {
            for change in std::mem::take(&mut file.unsynced) {
                let fate = state.random.next_u64() % 3;
                match change {
                    _ if fate == 0 => {}
                    Change::SetLength(length) => file.synced.resize(length, 0),
                    Change::Write { offset, data } => {
                        for (index, sector) in data.chunks(SECTOR_BYTES).enumerate() {
                            if fate == 1 || state.random.next_u64().is_multiple_of(2) {
                                write_at(&mut file.synced, offset + index * SECTOR_BYTES, sector);
                            }
                        }
                    }
                }
            }
            file.current = file.synced.clone();
        }
        state.requests_before_failure = None;
        state.generation += 1;
    }
}

/// A handle of a file, valid until the next crash or open.
pub(crate) struct FileHandle {
    disk: CrashDisk,
    generation: u64,
    file: usize,
}

impl fmt::Debug for FileHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileHandle").field("life", &self.generation).finish_non_exhaustive()
    }
}

impl FileHandle {
    fn read_file<T>(&self, read: impl FnOnce(&FileContent) -> io::Result<T>) -> io::Result<T> {
        let state = self.disk.state.lock();
        if state.generation != self.generation {
            return Err(io::Error::other("the simulated disk lost power after this file handle was opened"));
        }
        read(&state.files[self.file])
    }

    fn request(&self, apply: impl FnOnce(&mut FileContent)) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        if state.generation != self.generation {
            return Err(io::Error::other("the simulated disk lost power after this file handle was opened"));
        }
        state.request_count += 1;
        match &mut state.requests_before_failure {
            Some(0) => return Err(io::Error::other("write failure injected by the simulated disk")),
            Some(left) => *left -= 1,
            None => {}
        }
        apply(&mut state.files[self.file]);
        Ok(())
    }
}

impl StorageBackend for FileHandle {
    fn len(&self) -> io::Result<u64> {
        self.read_file(|file| Ok(file.current.len() as u64))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.read_file(|file| {
            let start = usize::try_from(offset).map_err(io::Error::other)?;
            let bytes = file.current.get(start..start + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
            out.copy_from_slice(bytes);
            Ok(())
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let length = usize::try_from(len).map_err(io::Error::other)?;
        self.request(|file| {
            file.current.resize(length, 0);
            file.unsynced.push(Change::SetLength(length));
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.request(|file| {
            for change in std::mem::take(&mut file.unsynced) {
                match change {
                    Change::SetLength(length) => file.synced.resize(length, 0),
                    Change::Write { offset, data } => write_at(&mut file.synced, offset, &data),
                }
            }
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        self.request(|file| {
            write_at(&mut file.current, offset, data);
            file.unsynced.push(Change::Write { offset, data: data.to_vec() });
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
