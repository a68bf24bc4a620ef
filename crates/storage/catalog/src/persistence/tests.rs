use std::sync::Arc;

use super::*;
use crate::fixtures::*;

/// Returns a store with a new catalog and these changes, each in a commit of its own, and the resulting state.
fn stored(changes: &[Change]) -> (kv::sim::SimStore, CatalogState) {
    let kv = kv::sim::SimDisk::new(1).open().unwrap();
    let mut state = CatalogState::new_warehouse();
    let mut batch = Batch::new();
    write_all(&state, &mut batch);
    for (change, ts) in changes.iter().zip(2..) {
        write(&state, change, CommitTs(ts), &mut batch);
        state = state.apply(change).unwrap();
    }
    kv.write(batch).unwrap();
    (kv, state)
}

#[track_caller]
fn check(changes: &[Change]) {
    let (kv, state) = stored(changes);
    let (found, upgrade) = read(&kv).unwrap().unwrap();
    assert!(found == state && upgrade.is_empty(), "{found:?} instead of {state:?}");
}

fn with_sample(change: Change) -> Change {
    let Change::AddShards { table, shards, .. } = change else { panic!("only shards bring a sample") };
    let sample = Sample::new(1, 9, bytes::Bytes::from_static(b"ipc"));
    Change::AddShards { table, shards, sample: Some(Arc::new(sample)) }
}

#[test]
fn an_empty_store_has_no_catalog() {
    assert!(read(&kv::sim::SimDisk::new(1).open().unwrap()).unwrap().is_none());
}

#[test]
fn a_fresh_catalog_comes_back() {
    check(&[]);
}

#[test]
fn objects_come_back_whatever_their_ids_say_about_their_order() {
    let referring = Table { constraints: vec![foreign_key(7, "f", 200)], ..table(100, "t") };
    check(&[
        put_schema(schema(300, "s")),
        put_role(role(301, "r")),
        put_table(table(200, "u")),
        put_table(referring),
        put_view(view(150, "v", &[200])),
        put_view(view(120, "w", &[150])),
    ]);
}

#[test]
fn shards_come_back_in_the_order_of_their_commits() {
    check(&[
        put_table(table(100, "t")),
        with_sample(add_shards(100, vec![shard(100, 9, 0..5), shard(100, 3, 5..10)])),
        add_shards(100, vec![shard(100, 1, 10..15)]),
    ]);
}

#[test]
fn what_is_dropped_or_taken_away_does_not_come_back() {
    let load = |id| with_sample(add_shards(100, vec![shard(100, id, 0..5)]));
    check(&[put_table(table(100, "t")), load(1), Change::RemoveAllRows { table: Oid(100) }]);
    check(&[put_table(table(100, "t")), load(1), Change::RemoveAllRows { table: Oid(100) }, load(2)]);
    check(&[put_table(table(100, "t")), load(1), Change::DropTable(Oid(100))]);
    check(&[put_schema(schema(300, "s")), Change::DropSchema(Oid(300))]);
}

#[test]
fn a_damaged_record_is_named() {
    let (kv, _) = stored(&[put_table(table(100, "t"))]);
    let mut batch = Batch::new();
    batch.put(Space::Catalog, object_key(ObjectKind::Table, Oid(100)), vec![1; 40]);
    kv.write(batch).unwrap();
    assert!(matches!(read(&kv), Err(Error::Damaged { kind: ObjectKind::Table, oid: Oid(100), .. })));
}

#[test]
fn keys_that_no_version_wrote_are_refused() {
    for key in [&b"x"[..], &[3, 0, 0], &[3, 0, 0, 0, 1, 9], &[]] {
        let (kv, _) = stored(&[]);
        let mut batch = Batch::new();
        batch.put(Space::Catalog, key.to_vec(), vec![]);
        kv.write(batch).unwrap();
        assert!(read(&kv).is_err(), "{key:?}");
    }
}

#[test]
fn records_that_contradict_each_other_are_refused() {
    let (kv, _) = stored(&[put_table(table(100, "t"))]);
    let mut batch = Batch::new();
    put(&mut batch, ObjectKind::Table, Oid(101), &Arc::new(table(101, "t")));
    kv.write(batch).unwrap();
    assert!(read(&kv).is_err(), "two tables share a name");
}

#[test]
fn many_shards_come_back_in_their_order() {
    let shards = |numbers: std::ops::Range<u128>| {
        // Ids in another order than the shards.
        let id = |number: u128| (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        let shard = |number: u128| shard(100, id(number), number as i64 * 3..number as i64 * 3 + 2);
        add_shards(100, numbers.map(shard).collect())
    };
    check(&[put_table(table(100, "t")), shards(0..3_000), shards(3_000..9_000)]);
}
