//! The deleted rows of one shard.

use roaring::RoaringBitmap;

/// Places of deleted rows in their shard.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeletedRows {
    pub places: RoaringBitmap,
    /// How many records of the store hold them: each commit that deletes adds one, until they are folded into one again.
    pub(crate) records: u32,
}

/// Records of one shard before they are folded: a commit then writes them all, once in so many.
const RECORDS_MAX: u32 = 64;

impl DeletedRows {
    /// What the next commit that deletes rows of the shard writes: the number of its record, and whether that takes the place of
    /// all earlier ones.
    pub(crate) fn next_record(&self) -> (u32, bool) {
        if self.records < RECORDS_MAX { (self.records, false) } else { (0, true) }
    }

    /// With more rows deleted by one commit.
    pub(crate) fn add(&mut self, places: &RoaringBitmap) {
        let (record, _) = self.next_record();
        self.records = record + 1;
        self.places |= places;
    }
}
