use std::path::PathBuf;

use serde::de::DeserializeOwned;
use shards::ShardMeta;
use types::sample_values::all_types;

use super::*;
use crate::fixtures::{column, foreign_key, role, schema, shard, table, view};
use crate::{Column, Database, Role, Sample, Schema, ScramVerifier, Table, View};

/// Checks that records of every released format can be read. The golden files are never rewritten; a new format gets a
/// new file.
#[track_caller]
fn check_golden<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(kind: ObjectKind, object: &T) {
    check_revision(kind, object, "");
}

/// Checks a revision of a kind to which fields were added: records written before them can still be read.
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

/// Conformance of records: a column of every type comes back with its type.
#[test]
fn columns_of_all_types_come_back() {
    let columns = (1..).zip(all_types());
    let columns = columns.map(|(id, sql_type)| Column { sql_type, ..column(id, &format!("c{id}")) }).collect();
    let object = Table { columns, ..table(100, "t") };
    let bytes = encode(ObjectKind::Table, Oid(100), &object);
    assert_eq!(decode::<Table>(ObjectKind::Table, Oid(100), &bytes).unwrap(), object);
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
    let commented = Schema { comment: Some("of the schema".to_owned()), ..schema(100, "s") };
    check_revision::<Schema>(ObjectKind::Schema, &commented, ".2");
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
    table.temporary = Some(types::OnCommit::DeleteRows);
    check_revision::<Table>(ObjectKind::Table, &table, ".4");
    table.cache = types::CachePolicy::Pin;
    check_revision::<Table>(ObjectKind::Table, &table, ".5");
    check_revision::<Table>(ObjectKind::Table, &with_everything(table), ".6");
}

/// Sets every field to something other than its default. Fields are stored by name, and a renamed one would be read as
/// its default.
fn with_everything(mut table: Table) -> Table {
    let text = |text: &str| Some(text.to_owned());
    table.comment = text("of the table");
    table.distribution = crate::Distribution::On(vec![types::ColumnId(1)]);
    let column = types::ColumnId(2);
    table.order = crate::TableOrder::Sort(vec![crate::SortColumn { column, descending: true, nulls_first: true }]);
    table.external = Some(crate::External { location: "s3://bucket/*.parquet".to_owned() });
    table.next_column = 9;
    let first = &mut table.columns[0];
    (first.not_null, first.default, first.comment) = (true, text("nextval('s')"), text("of the column"));
    first.sequences = vec![Oid(55)];
    first.identity = Some(crate::Identity { always: true, sequence: Oid(56) });
    let constraint = &mut table.constraints[0];
    constraint.comment = text("of the constraint");
    constraint.kind = crate::ConstraintKind::ForeignKey {
        columns: vec![types::ColumnId(1)],
        references: Oid(99),
        referenced: vec![types::ColumnId(2)],
        on_update: crate::ReferentialAction::SetNull,
        on_delete: crate::ReferentialAction::SetDefault,
        delete_columns: vec![types::ColumnId(1)],
    };
    let others = [
        crate::ConstraintKind::PrimaryKey { columns: vec![types::ColumnId(1)] },
        crate::ConstraintKind::Unique { columns: vec![types::ColumnId(2)] },
        crate::ConstraintKind::Check { expression: "a < b".to_owned(), columns: vec![types::ColumnId(1), column] },
    ];
    for (oid, kind) in (60..).zip(others) {
        let name = format!("c{oid}");
        table.constraints.push(crate::Constraint { oid: Oid(oid), name, kind, enforced: true, comment: None });
    }
    table
}

#[test]
fn a_sequence_is_stored_as_ever() {
    let sequence = crate::Sequence {
        oid: Oid(100),
        schema: Schema::PUBLIC,
        name: "s".to_owned(),
        owner: Role::BOOTSTRAP,
        sql_type: types::SqlType::Int4,
        start: 5,
        increment: -2,
        min: -100,
        max: 200,
        cache: 7,
        cycle: true,
        owned_by: Some(crate::SequenceOwner { table: Oid(99), column: types::ColumnId(3) }),
        counter: Oid(101),
        begins: 6,
        comment: Some("numbers".to_owned()),
    };
    check_golden(ObjectKind::Sequence, &sequence);
}

#[test]
fn a_view_is_stored_as_ever() {
    let mut view = view(100, "v", &[99]);
    check_golden::<View>(ObjectKind::View, &view);
    view.comment = Some("of the view".to_owned());
    view.column_comments = [(types::ColumnId(1), "of the column".to_owned())].into();
    check_revision::<View>(ObjectKind::View, &view, ".2");
}

#[test]
fn a_role_is_stored_as_ever() {
    let scram = ScramVerifier { salt: vec![1, 2, 3], iterations: 4_096, stored_key: [4; 32], server_key: [5; 32] };
    let role = Role { scram: Some(scram), ..role(100, "r") };
    check_golden::<Role>(ObjectKind::Role, &role);
    let role = Role {
        superuser: true,
        login: !role.login,
        create_role: !role.create_role,
        create_db: !role.create_db,
        inherit: !role.inherit,
        connection_limit: 12,
        valid_until: Some(1_700_000_000_000_000),
        settings: [("search_path".to_owned(), "s".to_owned())].into(),
        comment: Some("of the role".to_owned()),
        ..role
    };
    check_revision::<Role>(ObjectKind::Role, &role, ".2");
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
    let mut runs = shards::BucketRunsBuilder::default();
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
    assert!(matches!(decode::<Sample>(ObjectKind::Sample, Oid(100), &bytes), Err(Error::NewerFormat { found: 2, .. })));
}
