use catalog::{Change, Column, Distribution, Role, Schema, Storage, TableOrder};
use shards::{RowGroupMeta, RowIds};
use types::{CachePolicy, ColumnId, ShardId, SqlType};
use uuid::Uuid;

use super::*;

const TABLE: Oid = Oid(20_000);

fn table() -> Table {
    let column = Column {
        id: ColumnId(1),
        name: "a".to_owned(),
        sql_type: SqlType::Int4,
        not_null: false,
        default: None,
        missing: None,
        comment: None,
        identity: None,
        sequences: Vec::new(),
    };
    Table {
        oid: TABLE,
        schema: Schema::PUBLIC,
        name: "t".to_owned(),
        owner: Role::BOOTSTRAP,
        columns: vec![column],
        constraints: Vec::new(),
        distribution: Distribution::Random,
        order: TableOrder::None,
        comment: None,
        next_column: 2,
        storage: Storage::default(),
        indexes: Vec::new(),
        options: Vec::new(),
        temporary: None,
        cache: CachePolicy::Normal,
        external: None,
    }
}

/// Returns a shard with this number of pieces.
fn shard(number: u128, pieces: u64) -> Arc<ShardMeta> {
    let rows = pieces * shards::FETCH_ROWS_MIN as u64;
    Arc::new(ShardMeta {
        id: ShardId(Uuid::from_u128(number)),
        object: format!("tables/20000/{number}.parquet"),
        rows,
        bytes: 1,
        tail_bytes: 1,
        tail_checksum: u64::MAX,
        columns: Vec::new(),
        row_groups: vec![RowGroupMeta { rows, bytes: 1 }],
        row_ids: RowIds::None,
        buckets: None,
    })
}

fn loaded(state: &CatalogState, numbers: &[u128]) -> CatalogState {
    let shards = numbers.iter().map(|number| shard(*number, 1)).collect();
    state.apply(&Change::AddShards { table: TABLE, shards, sample: None }).expect("the table exists")
}

#[test]
fn added_shards_are_announced_exactly_once() {
    let empty = CatalogState::new_warehouse().apply(&Change::PutTable(Arc::new(table()))).expect("create the table");
    let mut known = ShardLists::default();
    assert!(known.take_added(&empty).is_empty());
    let ids = |added: Vec<AddedShards>| -> Vec<u128> {
        added.iter().flat_map(|(_, shards)| shards).map(|shard| shard.id.0.as_u128()).collect()
    };
    let one = loaded(&empty, &[1, 2]);
    assert_eq!(ids(known.take_added(&one)), [2, 1]);
    assert_eq!(ids(known.take_added(&one)), [0; 0]);
    let two = loaded(&loaded(&one, &[3]), &[4]);
    assert_eq!(ids(known.take_added(&two)), [4, 3], "two commits are announced in one round");
    assert_eq!(ids(known.take_added(&CatalogState::new_warehouse())), [0; 0]);
    assert!(known.0.is_empty(), "dropped tables are removed");
}

#[test]
fn shards_are_announced_to_the_owners_of_their_pieces() {
    let placement = Placement::new(ClusterId(3), 0..4);
    let shards: Vec<Arc<ShardMeta>> =
        (0..200).map(|number| shard(number, 1 + u64::from(number % 3 == 0) * 4)).collect();
    let added = vec![(Arc::new(table()), shards.clone())];
    let told = group_by_owner(&placement, &added);
    assert_eq!(told.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3]);
    for (slot, lists) in told {
        let owns = |shard: &&Arc<ShardMeta>| {
            shard_parts(shard)
                .any(|piece| placement.owner(Part::new(piece.shard, piece.ownership_unit())) == Some(slot))
        };
        let expected = shards.iter().filter(owns).count();
        assert_eq!(lists.iter().map(NewShards::len).sum::<usize>(), expected, "slot {slot}");
        assert!(expected < 150, "most shards belong to other slots");
    }
    assert!(group_by_owner(&Placement::new(ClusterId(3), []), &added).is_empty());
}
