//! Ids for new objects, never given twice, across crashes too.

use kv::{Batch, Space, TxKv};
use parking_lot::Mutex;
use types::Oid;

use crate::{Error, Result};

/// Ids reserved at a time: one durable write pays for so many, and a restart loses at most so many.
const RANGE: u32 = 1_024;

/// Gives ids below a mark that is durable.
#[derive(Debug)]
pub(crate) struct Oids {
    range: Mutex<Range>,
}

#[derive(Debug)]
struct Range {
    next: u32,
    /// The durable mark: no id below it is given after a restart.
    end: u32,
}

impl Oids {
    /// Continues after the mark in the store.
    pub(crate) fn recover(kv: &dyn TxKv) -> Result<Self> {
        let mark = match kv.get(Space::Sequences, KEY)? {
            None => Oid::FIRST_USER.0,
            Some(bytes) => {
                let bytes = <[u8; 4]>::try_from(&bytes[..]).map_err(|_| Error::Damaged { what: "mark of ids" })?;
                u32::from_be_bytes(bytes)
            }
        };
        Ok(Self { range: Mutex::new(Range { next: mark, end: mark }) })
    }

    /// The next id. Once in 1,024 calls it waits for a durable write; if that fails, the id is one that was not reserved,
    /// and the error says that nothing with it can ever be committed.
    pub(crate) fn next(&self, kv: &dyn TxKv) -> (Oid, kv::Result<()>) {
        let mut range = self.range.lock();
        let oid = Oid(range.next);
        let mut reserved = Ok(());
        if range.next == range.end {
            let end = range.end.checked_add(RANGE).expect("four billion ids last for four million restarts");
            let mut batch = Batch::new();
            batch.put(Space::Sequences, KEY, end.to_be_bytes().to_vec());
            reserved = kv.write(batch);
            range.end = end;
        }
        range.next += 1;
        (oid, reserved)
    }
}

const KEY: &[u8] = b"oid";
