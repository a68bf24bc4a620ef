//! Ids for new rows, never given twice, across crashes too.

use kv::{Batch, Space, TxKv};
use parking_lot::Mutex;
use types::{Failpoint, RowId};

use crate::{Error, Result};

/// Ids reserved at a time beyond what is asked for: one durable write pays for so many, and a restart loses at most so many.
const RANGE: u64 = 1 << 20;

/// Gives ids below a mark that is durable.
#[derive(Debug)]
pub(crate) struct RowIds {
    range: Mutex<Range>,
}

#[derive(Debug)]
struct Range {
    next: u64,
    /// The durable mark: no id below it is given after a restart.
    end: u64,
}

impl RowIds {
    /// Continues after the mark in the store.
    pub(crate) fn recover(kv: &dyn TxKv) -> Result<Self> {
        let mark = match kv.get(Space::Sequences, KEY)? {
            None => 1,
            Some(bytes) => {
                let bytes = <[u8; 8]>::try_from(&bytes[..]).map_err(|_| Error::Damaged { what: "mark of row ids" })?;
                u64::from_be_bytes(bytes)
            }
        };
        Ok(Self { range: Mutex::new(Range { next: mark, end: mark }) })
    }

    /// The first of `count` ids that follow each other. Now and then it waits for a durable write; if that fails, the ids are ones
    /// that were not reserved, and the error says that nothing with them can ever be committed.
    pub(crate) fn next(&self, count: u64, kv: &dyn TxKv) -> (RowId, kv::Result<()>) {
        let mut range = self.range.lock();
        let first = range.next;
        range.next = first.checked_add(count).expect("2^64 ids last for a million years");
        let mut reserved = Ok(());
        if range.end < range.next {
            range.end = range.next + RANGE;
            let mut batch = Batch::new();
            batch.put(Space::Sequences, KEY, range.end.to_be_bytes().to_vec());
            reserved = kv.write(batch);
            Failpoint::RowIdsReserved.pass();
        }
        (RowId(first), reserved)
    }
}

const KEY: &[u8] = b"row_id";
