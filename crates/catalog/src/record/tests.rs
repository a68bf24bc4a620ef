use std::path::PathBuf;

use super::*;
use crate::fixtures::{foreign_key, role, schema, shard, table, view};
use crate::{Database, Role, Sample, Schema, ScramVerifier, Table, View};
use serde::de::DeserializeOwned;
use shards::ShardMeta;

/// Bytes of every format ever released must read: the file is never rewritten, a new format gets a new file.
#[track_caller]
fn check_golden<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(kind: ObjectKind, object: &T) {
    check_revision(kind, object, "");
}

/// Of a kind that fields were added to: what was written before them reads too.
#[track_caller]
fn check_old<T: DeserializeOwned + PartialEq + std::fmt::Debug>(kind: ObjectKind, object: &T) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{kind}.v{FORMAT}.bin"));
    let golden = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(decode::<T>(kind, Oid(100), &golden).unwrap(), *object, "{} reads", path.display());
}

#[track_caller]
fn check_revision<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
    kind: ObjectKind,
    object: &T,
    revision: &str,
) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{kind}.v{FORMAT}{revision}.bin"));
    let bytes = encode(kind, Oid(100), object);
    if std::env::var_os("KILN_WRITE_GOLDEN").is_some() && !path.exists() {
        std::fs::write(&path, &bytes).unwrap();
    }
    let golden = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(decode::<T>(kind, Oid(100), &golden).unwrap(), *object, "{} reads", path.display());
    assert!(golden == bytes, "{} is what is written now", path.display());
}

fn sample() -> Sample {
    Sample::new(2, 40, Bytes::from_static(&[0, 1, 255]))
}

#[test]
fn a_database_is_stored_as_ever() {
    let settings = [("search_path".to_owned(), "s".to_owned())].into();
    let comment = Some("all".to_owned());
    let database = Database { oid: Oid(100), name: "kiln".to_owned(), owner: Role::BOOTSTRAP, settings, comment };
    check_golden(ObjectKind::Database, &database);
}

#[test]
fn a_schema_is_stored_as_ever() {
    check_golden::<Schema>(ObjectKind::Schema, &schema(100, "s"));
}

#[test]
fn a_table_is_stored_as_ever() {
    let mut table = table(100, "t");
    table.constraints.push(foreign_key(7, "f", 100));
    table.columns[1].missing = Some("7".to_owned());
    table.columns[1].sql_type = types::SqlType::Array(Box::new(types::SqlType::Numeric { precision: 12, scale: 2 }));
    check_old::<Table>(ObjectKind::Table, &table);
    table.storage = crate::Storage::Row;
    table.constraints[0].enforced = true;
    let columns = vec![types::ColumnId(1)];
    table.indexes.push(crate::Index {
        oid: Oid(8),
        name: "i".to_owned(),
        columns,
        unique: true,
        orders: Vec::new(),
        included: Vec::new(),
        options: Vec::new(),
    });
    check_revision::<Table>(ObjectKind::Table, &table, ".2");
    table.options = vec!["fillfactor=70".to_owned()];
    let index = &mut table.indexes[0];
    (index.options, index.included) = (table.options.clone(), vec![types::ColumnId(2)]);
    let (collation, operators) = (Some("C".to_owned()), Some("text_pattern_ops".to_owned()));
    index.orders = vec![crate::KeyOrder { descending: true, nulls_first: true, collation, operators }];
    check_revision::<Table>(ObjectKind::Table, &table, ".3");
    table.temporary = Some(crate::OnCommit::DeleteRows);
    check_revision::<Table>(ObjectKind::Table, &table, ".4");
    table.cache = types::CachePolicy::Pin;
    check_revision::<Table>(ObjectKind::Table, &table, ".5");
}

#[test]
fn a_view_is_stored_as_ever() {
    check_golden::<View>(ObjectKind::View, &view(100, "v", &[99]));
}

#[test]
fn a_role_is_stored_as_ever() {
    let scram = ScramVerifier { salt: vec![1, 2, 3], iterations: 4_096, stored_key: [4; 32], server_key: [5; 32] };
    check_golden::<Role>(ObjectKind::Role, &Role { scram: Some(scram), ..role(100, "r") });
}

#[test]
fn a_sample_is_stored_as_ever() {
    check_golden(ObjectKind::Sample, &sample());
}

#[test]
fn a_shard_is_stored_as_ever() {
    let shard = shard(100, 0x1234_5678, 5..9);
    check_old(ObjectKind::Shard, &ShardMeta { row_ids: shards::RowIds::None, ..ShardMeta::clone(&shard) });
    check_revision::<ShardMeta>(ObjectKind::Shard, &shard, ".2");
    let keys = shards::BucketKeys::new([(types::ColumnId(1), &types::SqlType::Int8)]).expect("numbers have a hash");
    let mut runs = shards::BucketRuns::default();
    runs.add(&[3, 3, 63, 0]);
    let shard = ShardMeta { buckets: runs.finish(&keys), ..ShardMeta::clone(&shard) };
    check_revision::<ShardMeta>(ObjectKind::Shard, &shard, ".3");
}

#[test]
fn every_damaged_byte_is_noticed_and_named() {
    let bytes = encode(ObjectKind::Table, Oid(100), &table(100, "t"));
    for index in 0..bytes.len() {
        let mut damaged = bytes.to_vec();
        damaged[index] ^= 0x40;
        let error = decode::<Table>(ObjectKind::Table, Oid(100), &damaged).expect_err("no byte is idle").to_string();
        assert!(error.starts_with("the stored table with id 100 "), "{error}");
    }
    for length in 0..bytes.len() {
        decode::<Table>(ObjectKind::Table, Oid(100), &bytes[..length]).expect_err("no byte is missing");
    }
}

#[test]
fn a_record_under_another_key_is_damage() {
    let bytes = encode(ObjectKind::Sample, Oid(100), &sample());
    assert!(decode::<Sample>(ObjectKind::Sample, Oid(100), &bytes).is_ok());
    assert!(matches!(decode::<Sample>(ObjectKind::Sample, Oid(101), &bytes), Err(Error::Damaged { .. })));
}

#[test]
fn a_later_format_is_told_from_damage() {
    let mut bytes = encode(ObjectKind::Sample, Oid(100), &sample()).to_vec();
    bytes[0] = FORMAT + 1;
    assert!(matches!(decode::<Sample>(ObjectKind::Sample, Oid(100), &bytes), Err(Error::Format { found: 2, .. })));
}
