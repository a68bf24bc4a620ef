//! Free disk space behind a trait, so that tests can simulate a full disk.

use std::io;
use std::sync::Arc;

/// A disk whose free space can be queried.
pub trait Disk: Send + Sync + std::fmt::Debug {
    /// Returns the free space, in bytes.
    ///
    /// # Errors
    /// If the operating system does not report it.
    fn free_bytes(&self) -> io::Result<u64>;
}

/// Disk space that ordinary writes must leave free, for writes that must not fail.
#[derive(Debug, Clone)]
pub struct DiskReserve {
    /// The disk.
    pub disk: Arc<dyn Disk>,
    /// Bytes to keep free.
    pub bytes: u64,
}

impl DiskReserve {
    /// Checks that writing `bytes` leaves the reserve free.
    ///
    /// # Errors
    /// [`io::ErrorKind::StorageFull`] if it does not. If the free space is unknown, the check succeeds.
    pub fn check_space(&self, bytes: u64) -> io::Result<()> {
        match self.disk.free_bytes() {
            Ok(free) if free < self.bytes.saturating_add(bytes) => {
                let reserved = self.bytes;
                let what = format!("no space left on device: {free} bytes are free, of which {reserved} are reserved");
                Err(io::Error::new(io::ErrorKind::StorageFull, what))
            }
            _ => Ok(()),
        }
    }
}
