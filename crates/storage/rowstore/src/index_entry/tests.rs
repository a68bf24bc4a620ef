use std::collections::BTreeSet;

use types::RowId;

use super::{INLINE_BYTES_MAX, IndexEntry};

/// Keys around the maximum length of inline entries.
fn entries() -> Vec<(Vec<u8>, RowId, IndexEntry)> {
    let lengths =
        [0, 1, INLINE_BYTES_MAX - 9, INLINE_BYTES_MAX - 8, INLINE_BYTES_MAX - 7, INLINE_BYTES_MAX, 300, 1_000];
    let keys = lengths.iter().flat_map(|length| [0, 7, 0xff].map(|byte| vec![byte; *length]));
    keys.flat_map(|key| [0, 9, u64::MAX].map(|id| (key.clone(), RowId(id), IndexEntry::new(&key, RowId(id))))).collect()
}

#[test]
fn short_and_long_entries_give_back_key_and_row() {
    for (key, row, entry) in entries() {
        assert_eq!((entry.key(), entry.row_id()), (key.as_slice(), row));
        assert_eq!(entry.clone(), entry);
    }
}

#[test]
fn entries_order_as_their_bytes_do() {
    let mut entries: Vec<IndexEntry> = entries().into_iter().map(|(_, _, entry)| entry).collect();
    entries.sort();
    assert!(entries.windows(2).all(|pair| *pair[0] <= *pair[1]));
    let by_bytes: BTreeSet<&[u8]> = entries.iter().map(|entry| &**entry).collect();
    let by_entry: BTreeSet<&IndexEntry> = entries.iter().collect();
    assert_eq!(by_bytes.len(), by_entry.len());
}
