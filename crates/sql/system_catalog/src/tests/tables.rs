use arrow::array::{Array, AsArray, RecordBatch};
use types::SqlType;

use super::fixture::{self, context};
use crate::row_builder::RowBuilder;
use crate::row_source::{RowRestriction, RowSource, VisibleRelations};
use crate::system_table_registry::SYSTEM_TABLES;

/// Returns all rows of a system table.
fn rows_of(schema: &str, name: &str) -> RecordBatch {
    let context = context();
    let relation = SYSTEM_TABLES.find(schema, name).unwrap_or_else(|| panic!("{schema}.{name} is declared"));
    let mut rows = RowBuilder::new(relation);
    (relation.definition.rows)(
        &RowSource::new(
            VisibleRelations { context: &context, system_tables: &SYSTEM_TABLES },
            RowRestriction::default(),
        ),
        &mut rows,
    );
    rows.finish().unwrap_or_else(|error| panic!("{schema}.{name}: {error}"))
}

/// Returns the values of text columns, row by row, for the rows that satisfy `filter`.
fn texts<const N: usize>(batch: &RecordBatch, columns: [&str; N]) -> Vec<[String; N]> {
    let shown = columns.map(|name| {
        let column = batch.column_by_name(name).unwrap_or_else(|| panic!("a column {name}"));
        arrow::compute::cast(column, &arrow::datatypes::DataType::Utf8View).expect("shown as text")
    });
    (0..batch.num_rows())
        .map(|row| {
            std::array::from_fn(|at| {
                let texts = shown[at].as_string_view();
                if texts.is_null(row) { "NULL".to_owned() } else { texts.value(row).to_owned() }
            })
        })
        .collect()
}

#[test]
fn every_table_fills_as_it_is_declared() {
    for relation in SYSTEM_TABLES.all().iter() {
        let batch = rows_of(relation.definition.schema, relation.definition.name);
        // The `tableoid` of a catalog is read, but not declared.
        let hidden = usize::from(relation.definition.kind == "r");
        assert_eq!(batch.num_columns(), relation.columns.len() + hidden);
    }
    let distinct: std::collections::BTreeSet<u32> =
        SYSTEM_TABLES.all().iter().map(|relation| relation.definition.oid).collect();
    assert_eq!(distinct.len(), SYSTEM_TABLES.all().len(), "two system tables share a number");
}

/// Conformance of `pg_type`: every scalar type has a row with its names and functions, and its array has one.
#[test]
fn every_type_has_its_row_and_that_of_its_array() {
    let batch = rows_of("pg_catalog", "pg_type");
    let rows =
        texts(&batch, ["oid", "typname", "typarray", "typelem", "typinput", "typoutput", "typreceive", "typsend"]);
    let row = |oid: u32| {
        let mut found = rows.iter().filter(|row| row[0] == oid.to_string());
        let row = found.next().unwrap_or_else(|| panic!("no row with OID {oid}"));
        assert!(found.next().is_none(), "two types with OID {oid}");
        row
    };
    for sql_type in SqlType::scalars() {
        let scalar = row(sql_type.oid());
        assert_eq!((&scalar[1], &scalar[2]), (&sql_type.typname(), &sql_type.array_oid().to_string()));
        assert!(scalar[4..].iter().all(|function| function != "0"), "{sql_type} has no function {scalar:?}");
        if sql_type.array_oid() != 0 {
            let array = row(sql_type.array_oid());
            assert_eq!((&array[1], &array[3]), (&format!("_{}", sql_type.typname()), &sql_type.oid().to_string()));
        }
    }
}

/// `sys.cluster` has a column for each option of clusters, from the table of the options.
#[test]
fn every_cluster_option_is_a_column_of_sys_cluster() {
    let relation = SYSTEM_TABLES.find("sys", "cluster").expect("it is declared");
    let names: Vec<&str> = relation.columns.iter().map(|column| column.name).collect();
    let shown: Vec<&str> =
        names.iter().copied().filter(|name| cluster_model::ClusterOption::named(name).is_some()).collect();
    let options: Vec<&str> = cluster_model::CLUSTER_OPTIONS.iter().map(|option| option.name).collect();
    assert_eq!(shown, options);
    assert_eq!(names[..5], ["name", "state", "node_count", "ready_workers", "hardware_instance"]);
}

#[test]
fn attributes_carry_numbers_types_and_modifiers() {
    let batch = rows_of("pg_catalog", "pg_attribute");
    let found: Vec<_> =
        texts(&batch, ["attrelid", "attname", "attnum", "atttypid", "atttypmod", "attnotnull", "atthasdef"])
            .into_iter()
            .filter(|row| row[0] == fixture::CUSTOMERS.to_string())
            .map(|row| row[1..].join(" "))
            .collect();
    assert_eq!(
        found,
        [
            "id 1 20 -1 true false",
            "name 2 1043 44 true false",
            "email 3 25 -1 false false",
            "balance 4 1700 786438 false true",
            "born 5 1082 -1 false false",
            "active 6 16 -1 false true",
            "tags 7 1009 -1 false false",
            "payload 8 3802 -1 false false",
        ]
    );
}

#[test]
fn every_column_type_has_a_row_in_pg_type() {
    let types: std::collections::BTreeSet<String> =
        texts(&rows_of("pg_catalog", "pg_type"), ["oid"]).into_iter().map(|[oid]| oid).collect();
    for [relation, name, oid] in texts(&rows_of("pg_catalog", "pg_attribute"), ["attrelid", "attname", "atttypid"]) {
        assert!(types.contains(&oid), "column {relation}.{name} has type {oid}");
    }
}

#[test]
fn declared_keys_are_indexes_that_say_they_are_not_enforced() {
    let constraints =
        texts(&rows_of("pg_catalog", "pg_constraint"), ["conname", "contype", "conindid", "confrelid", "confdeltype"]);
    assert!(constraints.contains(&["customers_pkey", "p", "16394", "0", " "].map(str::to_owned)));
    assert!(constraints.contains(&["orders_customer_fkey", "f", "16394", "16386", "c"].map(str::to_owned)));
    let indexes = texts(&rows_of("pg_catalog", "pg_indexes"), ["tablename", "indexdef"]);
    let definition = "CREATE UNIQUE INDEX orders_pkey ON public.orders USING unenforced (id)";
    assert!(indexes.contains(&["orders", definition].map(str::to_owned)), "{indexes:?}");
}

#[test]
fn information_schema_names_types_as_the_standard_does() {
    let columns =
        ["table_name", "column_name", "data_type", "udt_name", "character_maximum_length", "numeric_precision"];
    let found = texts(&rows_of("information_schema", "columns"), columns);
    for row in [
        ["customers", "name", "character varying", "varchar", "40", "NULL"],
        ["customers", "balance", "numeric", "numeric", "NULL", "12"],
        ["customers", "tags", "ARRAY", "_text", "NULL", "NULL"],
        ["orders", "placed", "timestamp with time zone", "timestamptz", "NULL", "NULL"],
        ["orders", "note", "character", "bpchar", "10", "NULL"],
    ] {
        assert!(found.contains(&row.map(str::to_owned)), "{row:?}");
    }
}

#[test]
fn types_are_found_by_every_name_sql_has_for_them() {
    for (text, expected) in [
        ("int", SqlType::Int4),
        ("pg_catalog.int4", SqlType::Int4),
        ("character varying(20)", SqlType::Varchar(None)),
        ("timestamp with time zone", SqlType::TimestampTz),
        ("text[]", SqlType::Array(Box::new(SqlType::Text))),
        ("_text", SqlType::Array(Box::new(SqlType::Text))),
        ("\"char\"", SqlType::InternalChar),
    ] {
        assert_eq!(crate::format_type::type_oid(text), Some(expected.oid()), "{text}");
    }
    assert_eq!(crate::format_type::type_oid("no_such_type"), None);
    assert_eq!(crate::format_type::format_type(1042, -1).as_deref(), Some("character"));
}
