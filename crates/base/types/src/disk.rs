//! Room on disks through a trait, so that tests can fill one.

use std::io;
use std::sync::Arc;

/// A disk, as far as its room goes.
pub trait Disk: Send + Sync + std::fmt::Debug {
    /// Bytes that can still be written.
    ///
    /// # Errors
    /// Where the system does not tell.
    fn free_bytes(&self) -> io::Result<u64>;
}

/// Room on a disk that is left to those who must not fail.
#[derive(Debug, Clone)]
pub struct Reserve {
    pub disk: Arc<dyn Disk>,
    pub bytes: u64,
}

impl Reserve {
    /// Whether `bytes` can be written beside what is kept.
    ///
    /// # Errors
    /// [`io::ErrorKind::StorageFull`] where not. A disk that does not tell its room has some.
    pub fn check(&self, bytes: u64) -> io::Result<()> {
        match self.disk.free_bytes() {
            Ok(free) if free < self.bytes.saturating_add(bytes) => {
                let kept = self.bytes;
                let what = format!("no space left on device: {free} bytes are free, of which {kept} are kept free");
                Err(io::Error::new(io::ErrorKind::StorageFull, what))
            }
            _ => Ok(()),
        }
    }
}
