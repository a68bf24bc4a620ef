use std::sync::Arc;

use bytes::Bytes;
use types::{ColumnId, CommitTs, Oid, RowId};

use super::Layer;
use crate::{Row, Tuple, Value, row_of};

const INDEX: Oid = Oid(7);

fn row(id: u64, key: u8) -> Arc<Row> {
    let mut entry = vec![key];
    entry.extend(id.to_be_bytes());
    Arc::new(Row {
        ts: CommitTs(1),
        tuple: Tuple::encode([(ColumnId(1), Value::Int(key.into()))]).unwrap(),
        keys: Box::new([(INDEX, Bytes::from(entry))]),
    })
}

fn found(layer: &Layer, from: &[u8], to: &[u8]) -> Vec<u64> {
    layer.entries(INDEX, from, to).map(|entry| row_of(entry).0).collect()
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
