//! Delete bitmap of a shard.

use roaring::RoaringBitmap;

/// Delete bitmap of a shard: the positions of its deleted rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeleteBitmap {
    pub positions: RoaringBitmap,
    /// Number of records of the bitmap in the store. Each commit that deletes rows adds one; at times they are merged
    /// into one.
    pub(crate) records: u32,
}

/// Number of records of a shard at which they are merged: the commit then writes the whole bitmap.
const RECORDS_MAX: u32 = 64;

impl DeleteBitmap {
    /// Returns the number of the record that the next deletion writes, and whether it replaces all earlier ones.
    pub(crate) fn next_record(&self) -> (u32, bool) {
        if self.records < RECORDS_MAX { (self.records, false) } else { (0, true) }
    }

    /// Adds the rows that one commit deletes.
    pub(crate) fn add(&mut self, places: &RoaringBitmap) {
        let (record, _) = self.next_record();
        self.records = record + 1;
        self.positions |= places;
    }
}
