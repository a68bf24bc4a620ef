use std::sync::Arc;

use types::{ColumnId, CommitTs, Oid, RowId};

use super::Layer;
use crate::{IndexEntry, RowVersion, Tuple, Value};

const INDEX: Oid = Oid(7);

fn row(id: u64, key: u8) -> Arc<RowVersion> {
    Arc::new(RowVersion {
        commit_ts: CommitTs(1),
        tuple: Tuple::encode([(ColumnId(1), Value::Int(key.into()))]).unwrap(),
        index_entries: Arc::new([(INDEX, IndexEntry::new(&[key], RowId(id)))]),
    })
}

fn found(layer: &Layer, from: &[u8], to: &[u8]) -> Vec<u64> {
    layer.entries(INDEX, from, to).map(|entry| entry.row_id().0).collect()
}

#[test]
fn a_range_is_the_same_from_both_ends() {
    let mut layer = Layer::default();
    for id in 0..500_u64 {
        layer.put(RowId(id), row(id, u8::try_from(id / 2 % 250).unwrap()), false);
    }
    let bounds = [
        vec![],
        vec![0],
        vec![7],
        vec![7, 0xff],
        vec![8],
        vec![8, 0, 0, 0, 0, 0, 0, 0, 16],
        vec![249],
        vec![250],
        vec![0xff],
    ];
    for from in &bounds {
        for to in &bounds {
            let all = layer.entries(INDEX, &[], &[0xff]);
            let wanted: Vec<u64> =
                all.filter(|entry| from[..] <= entry[..] && entry[..] < to[..]).map(|entry| entry.row_id().0).collect();
            assert_eq!(found(&layer, from, to), wanted, "{from:?} to {to:?}");
            let mut backwards: Vec<u64> =
                layer.entries_backwards(INDEX, from, to).map(|entry| entry.row_id().0).collect();
            backwards.reverse();
            assert_eq!(backwards, wanted, "{from:?} to {to:?}, backwards");
        }
    }
    assert_eq!(layer.entries(Oid(77), &[], &[0xff]).count(), 0);
    assert_eq!(found(&layer, &[], &[0xff]).len(), 500);
}

#[test]
fn an_update_moves_the_rows_entry_and_a_removal_takes_it_away() {
    let mut layer = Layer::default();
    layer.put(RowId(1), row(1, 5), false);
    layer.put(RowId(2), row(2, 5), false);
    layer.put(RowId(3), row(3, 4), false);
    assert_eq!(found(&layer, &[5], &[6]), [1, 2]);
    layer.put(RowId(1), row(1, 4), true);
    assert_eq!(found(&layer, &[5], &[6]), [2]);
    assert_eq!(found(&layer, &[], &[0xff]), [1, 3, 2]);
    assert!(layer.hides(RowId(1)) && !layer.hides(RowId(2)));
    layer.remove(RowId(2), false);
    assert_eq!(found(&layer, &[], &[0xff]), [1, 3]);
    assert_eq!(layer.memory_bytes(), row(1, 4).memory_bytes() + row(3, 4).memory_bytes());
    let tuples = row(1, 4).tuple.as_bytes().len() + row(3, 4).tuple.as_bytes().len();
    assert_eq!(
        layer.stored_bytes_max(),
        tuples as u64 + 3 * super::STORED_BYTES_PER_ROW,
        "two rows, and one that is newer here"
    );
}

#[test]
fn a_range_that_ends_before_it_begins_is_empty() {
    let mut layer = Layer::default();
    layer.put(RowId(1), row(1, 5), false);
    assert!(found(&layer, &[6], &[5]).is_empty());
    assert!(found(&layer, &[5], &[5]).is_empty());
}

#[test]
fn a_clone_stays_as_it_was() {
    let mut layer = Layer::default();
    layer.put(RowId(1), row(1, 5), false);
    let before = layer.clone();
    layer.remove(RowId(1), true);
    assert!(before.get(RowId(1)).is_some() && !before.hides(RowId(1)));
    assert!(layer.get(RowId(1)).is_none() && layer.hides(RowId(1)));
}
