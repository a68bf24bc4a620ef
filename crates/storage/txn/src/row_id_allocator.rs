//! Allocator of row ids. No id is allocated twice, not even after a crash.

use kv::{Batch, Space, TxKv};
use parking_lot::Mutex;
use types::{Failpoint, RowId};

use crate::{Error, Result};

/// Ids reserved by one durable write beyond the requested ones; a restart skips at most as many.
const IDS_PER_RESERVATION: u64 = 1 << 20;

/// Allocator of row ids below a durable mark.
#[derive(Debug)]
pub(crate) struct RowIdAllocator {
    reserved: Mutex<ReservedRange>,
}

#[derive(Debug)]
struct ReservedRange {
    next: u64,
    /// The durable mark: after a restart allocation continues here.
    end: u64,
}

impl RowIdAllocator {
    /// Restores the allocator from the mark in the store.
    pub(crate) fn recover(kv: &dyn TxKv) -> Result<Self> {
        let mark = match kv.get(Space::Sequences, NEXT_ROW_ID_KEY)? {
            None => 1,
            Some(bytes) => {
                let bytes = <[u8; 8]>::try_from(&bytes[..]).map_err(|_| Error::Damaged { what: "next row id" })?;
                u64::from_be_bytes(bytes)
            }
        };
        Ok(Self { reserved: Mutex::new(ReservedRange { next: mark, end: mark }) })
    }

    /// Allocates `count` consecutive ids and returns the first. Occasionally waits for a durable write; if that fails,
    /// the ids are not reserved, and the error means that nothing can be committed with them.
    pub(crate) fn allocate(&self, count: u64, kv: &dyn TxKv) -> (RowId, kv::Result<()>) {
        let mut range = self.reserved.lock();
        let first = range.next;
        range.next = first.checked_add(count).expect("invariant of RowIds: fewer than 2^64 ids are allocated");
        let mut reserved = Ok(());
        if range.end < range.next {
            range.end = range.next + IDS_PER_RESERVATION;
            let mut batch = Batch::new();
            batch.put(Space::Sequences, NEXT_ROW_ID_KEY, range.end.to_be_bytes().to_vec());
            reserved = kv.write(batch);
            Failpoint::RowIdsReserved.pass();
        }
        (RowId(first), reserved)
    }
}

const NEXT_ROW_ID_KEY: &[u8] = b"row_id";
