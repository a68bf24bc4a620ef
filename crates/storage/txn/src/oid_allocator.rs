//! Allocator of object ids. No id is allocated twice, not even after a crash.

use kv::{Batch, Space, TxKv};
use parking_lot::Mutex;
use types::Oid;

use crate::{Error, Result};

/// Ids reserved by one durable write; a restart skips at most as many.
const IDS_PER_RESERVATION: u32 = 1_024;

/// Allocator of object ids below a durable mark.
#[derive(Debug)]
pub(crate) struct OidAllocator {
    reserved: Mutex<ReservedRange>,
}

#[derive(Debug)]
struct ReservedRange {
    next: u32,
    /// The durable mark: after a restart allocation continues here.
    end: u32,
}

impl OidAllocator {
    /// Restores the allocator from the mark in the store.
    pub(crate) fn recover(kv: &dyn TxKv) -> Result<Self> {
        let mark = match kv.get(Space::Sequences, NEXT_OID_KEY)? {
            None => Oid::FIRST_USER.0,
            Some(bytes) => {
                let bytes = <[u8; 4]>::try_from(&bytes[..]).map_err(|_| Error::Damaged { what: "next object id" })?;
                u32::from_be_bytes(bytes)
            }
        };
        Ok(Self { reserved: Mutex::new(ReservedRange { next: mark, end: mark }) })
    }

    /// Allocates an id. One of 1,024 calls waits for a durable write; if that fails, the id is not reserved, and the
    /// error means that nothing can be committed with it.
    pub(crate) fn allocate(&self, kv: &dyn TxKv) -> (Oid, kv::Result<()>) {
        let mut range = self.reserved.lock();
        let oid = Oid(range.next);
        let mut reserved = Ok(());
        if range.next == range.end {
            let end = range
                .end
                .checked_add(IDS_PER_RESERVATION)
                .expect("invariant of Oids: fewer than 2^32 ids are reserved");
            let mut batch = Batch::new();
            batch.put(Space::Sequences, NEXT_OID_KEY, end.to_be_bytes().to_vec());
            reserved = kv.write(batch);
            range.end = end;
        }
        range.next += 1;
        (oid, reserved)
    }
}

const NEXT_OID_KEY: &[u8] = b"oid";
