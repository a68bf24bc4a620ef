//! Pool of read buffers. New memory is zeroed by the operating system first, which takes as long as the read itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

/// Minimum length of a pooled buffer, in bytes; shorter reads allocate memory.
const POOLED_BYTES_MIN: usize = 64 << 10;
/// Maximum size of the pool, in bytes.
const POOL_BYTES_MAX: usize = 64 << 20;

/// A pool of free buffers.
#[derive(Debug, Default)]
pub(super) struct BufferPool {
    free: Mutex<FreeBuffers>,
}

#[derive(Debug, Default)]
struct FreeBuffers {
    /// Free buffers by their length, a power of two.
    by_length: BTreeMap<usize, Vec<Vec<u8>>>,
    /// Total size of the free buffers.
    bytes: usize,
}

impl BufferPool {
    /// Returns `length` bytes that `fill` has written. The memory returns to the pool when the last reader drops the
    /// bytes.
    pub(super) fn fill_buffer<E>(
        self: &Arc<Self>,
        length: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Bytes, E> {
        if length < POOLED_BYTES_MIN {
            let mut bytes = vec![0; length];
            fill(&mut bytes)?;
            return Ok(Bytes::from(bytes));
        }
        let mut buffer = PooledBuffer { bytes: self.take(length.next_power_of_two()), length, pool: Arc::clone(self) };
        fill(&mut buffer.bytes[..length])?;
        Ok(Bytes::from_owner(buffer))
    }

    fn take(&self, length: usize) -> Vec<u8> {
        let mut free = self.free.lock();
        let reused = free.by_length.get_mut(&length).and_then(Vec::pop);
        if reused.is_some() {
            free.bytes -= length;
        }
        drop(free);
        reused.unwrap_or_else(|| vec![0; length])
    }

    fn put(&self, bytes: Vec<u8>) {
        let mut free = self.free.lock();
        if free.bytes + bytes.len() <= POOL_BYTES_MAX {
            free.bytes += bytes.len();
            free.by_length.entry(bytes.len()).or_default().push(bytes);
        }
    }
}

/// A buffer in use; dropping it returns the memory to the pool.
struct PooledBuffer {
    /// The memory, whose length is a power of two.
    bytes: Vec<u8>,
    /// Number of bytes in use.
    length: usize,
    pool: Arc<BufferPool>,
}

impl AsRef<[u8]> for PooledBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        self.pool.put(std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn filled(buffers: &Arc<BufferPool>, length: usize, byte: u8) -> Bytes {
        let fill = |bytes: &mut [u8]| {
            bytes.fill(byte);
            Ok::<_, Infallible>(())
        };
        buffers.fill_buffer(length, fill).expect("nothing fails")
    }

    #[test]
    fn memory_is_used_again_when_nobody_reads_it_any_more() {
        let buffers = Arc::new(BufferPool::default());
        let first = filled(&buffers, POOLED_BYTES_MIN + 1, 1);
        let part = first.slice(7..9);
        let place = first.as_ptr();
        drop(first);
        let second = filled(&buffers, POOLED_BYTES_MIN + 2, 2);
        assert_ne!(second.as_ptr(), place, "a slice of the first buffer is still in use");
        assert_eq!((&part[..], second.len()), ([1, 1].as_slice(), POOLED_BYTES_MIN + 2));
        drop(part);
        let third = filled(&buffers, 2 * POOLED_BYTES_MIN, 3);
        assert_eq!(third.as_ptr(), place);
        assert!(third.iter().all(|byte| *byte == 3) && second.iter().all(|byte| *byte == 2));
    }

    #[test]
    fn no_more_is_kept_than_may_be() {
        let buffers = Arc::new(BufferPool::default());
        let all: Vec<Bytes> = (0..5).map(|byte| filled(&buffers, POOL_BYTES_MAX / 4, byte)).collect();
        drop(all);
        assert_eq!(buffers.free.lock().bytes, POOL_BYTES_MAX);
        drop(filled(&buffers, 2 * POOL_BYTES_MAX, 6));
        assert_eq!(buffers.free.lock().bytes, POOL_BYTES_MAX);
        assert_eq!(filled(&buffers, 3, 9).as_ref(), [9, 9, 9]);
    }

    #[test]
    fn what_cannot_be_filled_is_kept_too() {
        let buffers = Arc::new(BufferPool::default());
        assert_eq!(buffers.fill_buffer(POOLED_BYTES_MIN, |_| Err("no bytes")), Err("no bytes"));
        assert_eq!(buffers.free.lock().bytes, POOLED_BYTES_MIN);
    }
}
