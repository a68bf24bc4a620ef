//! `pg_type`, `pg_collation`, `pg_range` and `pg_enum`: types and collations.

#![deny(clippy::wildcard_enum_match_arm, reason = "a new type must not compile until it has a row in pg_type")]

use types::{SqlType, TypeGroup};

use super::super::row_builder::{RowBuilder, row};
use super::super::row_source::{RowSource, SYSTEM_OWNER, schema_oid};
use super::super::table_definition::{TableDefinition, no_rows};
use super::definition_constructors::catalog;
use super::type_io_functions::{self, type_io_functions};

pub(super) const TABLES: &[TableDefinition] = &[
    catalog(
        1247,
        "pg_type",
        "Types.",
        "oid oid, typname name, typnamespace oid, typowner oid, typlen int2, typbyval bool, typtype char = b, \
         typcategory char, typispreferred bool = f, typisdefined bool = t, typdelim char = ',', typrelid oid = 0, \
         typsubscript regproc = 0, typelem oid = 0, typarray oid = 0, typinput regproc = 0, typoutput regproc = 0, \
         typreceive regproc = 0, typsend regproc = 0, typmodin regproc = 0, typmodout regproc = 0, \
         typanalyze regproc = 0, typalign char, typstorage char, typnotnull bool = f, typbasetype oid = 0, \
         typtypmod int4 = -1, typndims int4 = 0, typcollation oid = 0, typdefaultbin pg_node_tree, typdefault text, \
         typacl aclitem[]",
        types,
    ),
    catalog(
        3456,
        "pg_collation",
        "Collations.",
        "oid oid, collname name, collnamespace oid, collowner oid, collprovider char, collisdeterministic bool = t, \
         collencoding int4 = -1, collcollate text, collctype text, colliculocale text, collversion text",
        collations,
    ),
    catalog(
        3541,
        "pg_range",
        "Range types; always empty.",
        "rngtypid oid, rngsubtype oid, rngmultitypid oid, rngcollation oid, rngsubopc oid, rngcanonical regproc, rngsubdiff regproc",
        no_rows,
    ),
    catalog(
        3501,
        "pg_enum",
        "Values of enum types; always empty.",
        "oid oid, enumtypid oid, enumsortorder float4, enumlabel name",
        no_rows,
    ),
];

/// OIDs of the default collation and of the collation C, which give the same order in Kiln: that of the bytes.
pub(crate) const DEFAULT_COLLATION_OID: u32 = 100;
const C_COLLATION_OID: u32 = 950;

/// Pseudo-types in signatures of functions: OID and name.
pub(crate) const PSEUDO_TYPES: &[(u32, &str)] = &[
    (2249, "record"),
    (2275, "cstring"),
    (2276, "any"),
    (2277, "anyarray"),
    (2278, "void"),
    (2279, "trigger"),
    (2281, "internal"),
    (2283, "anyelement"),
    (2776, "anynonarray"),
    (5077, "anycompatible"),
    (5078, "anycompatiblearray"),
];

fn types(source: &RowSource<'_>, rows: &mut RowBuilder) {
    let schema = schema_oid(source.state(), super::definition_constructors::SCHEMA);
    let arrays = type_io_functions(type_io_functions::ARRAY_TYPE_NAME);
    for sql_type in SqlType::scalars() {
        let pseudo = sql_type == SqlType::Unknown;
        let functions = type_io_functions(&sql_type.typname());
        row!(rows, oid: sql_type.oid(), typname: sql_type.typname(), typnamespace: schema, typowner: SYSTEM_OWNER,
            typlen: sql_type.typlen(), typbyval: is_passed_by_value(&sql_type), typtype: if pseudo { "p" } else { "b" },
            typcategory: category(&sql_type), typispreferred: is_preferred(&sql_type),
            typelem: subscript_element_oid(&sql_type), typarray: sql_type.array_oid(), typinput: functions.input,
            typoutput: functions.output, typreceive: functions.receive, typsend: functions.send, typalign: alignment(&sql_type),
            typstorage: storage(&sql_type), typcollation: collation(&sql_type));
        if sql_type.array_oid() != 0 {
            let array = SqlType::Array(Box::new(sql_type.clone()));
            row!(rows, oid: array.oid(), typname: array.typname(), typnamespace: schema, typowner: SYSTEM_OWNER,
                typlen: -1, typbyval: false, typcategory: "A", typelem: sql_type.oid(), typinput: arrays.input,
                typoutput: arrays.output, typreceive: arrays.receive, typsend: arrays.send, typalign: alignment(&array), typstorage: "x",
                typcollation: collation(&sql_type));
        }
    }
    for (oid, name) in PSEUDO_TYPES {
        let own = type_io_functions(name);
        row!(rows, oid: *oid, typname: *name, typnamespace: schema, typowner: SYSTEM_OWNER, typlen: 4,
            typbyval: true, typtype: "p", typcategory: "P", typinput: own.input,
            typoutput: own.output, typreceive: own.receive, typsend: own.send, typalign: "i", typstorage: "p");
    }
}

/// Collations: OID, name, provider and locale.
const COLLATIONS: [(u32, &str, &str, Option<&str>); 4] = [
    (DEFAULT_COLLATION_OID, "default", "d", None),
    (C_COLLATION_OID, "C", "c", Some("C")),
    (951, "POSIX", "c", Some("POSIX")),
    (12_341, "ucs_basic", "c", Some("C")),
];

/// Returns the OID of a collation.
pub(super) fn collation_oid(name: &str) -> u32 {
    COLLATIONS.iter().find(|known| known.1 == name).map_or(DEFAULT_COLLATION_OID, |known| known.0)
}

fn collations(source: &RowSource<'_>, rows: &mut RowBuilder) {
    let schema = schema_oid(source.state(), super::definition_constructors::SCHEMA);
    for (oid, name, provider, locale) in COLLATIONS {
        row!(rows, oid: oid, collname: name, collnamespace: schema, collowner: SYSTEM_OWNER, collprovider: provider,
            collcollate: locale, collctype: locale);
    }
}

/// Whether PostgreSQL passes values of the type by value.
pub(super) fn is_passed_by_value(sql_type: &SqlType) -> bool {
    (1..=8).contains(&sql_type.typlen())
}

/// Returns `typalign`: c, s, i or d for 1, 2, 4 or 8 bytes.
pub(super) fn alignment(sql_type: &SqlType) -> &'static str {
    match sql_type {
        SqlType::Bool | SqlType::InternalChar | SqlType::Name | SqlType::Uuid | SqlType::Unknown => "c",
        SqlType::Int2 => "s",
        SqlType::Int8
        | SqlType::Float8
        | SqlType::Time
        | SqlType::Timestamp
        | SqlType::TimestampTz
        | SqlType::Interval => "d",
        SqlType::Array(element) if alignment(element) == "d" => "d",
        SqlType::Array(_)
        | SqlType::Int4
        | SqlType::Numeric { .. }
        | SqlType::Float4
        | SqlType::Text
        | SqlType::Varchar(_)
        | SqlType::Char(_)
        | SqlType::Date
        | SqlType::Bytea
        | SqlType::Json
        | SqlType::Jsonb
        | SqlType::Oid
        | SqlType::Regclass
        | SqlType::Regtype
        | SqlType::Regproc
        | SqlType::Regnamespace
        | SqlType::Regrole
        | SqlType::Regprocedure
        | SqlType::Regoperator
        | SqlType::Int2Vector
        | SqlType::OidVector => "i",
    }
}

/// Returns `typstorage`: plain (`p`), extended (`x`) for types of variable length, main (`m`) for numeric.
pub(super) fn storage(sql_type: &SqlType) -> &'static str {
    match sql_type.group() {
        TypeGroup::Numeric => "m",
        TypeGroup::Vector => "p",
        TypeGroup::Array | TypeGroup::Bytea | TypeGroup::Json => "x",
        TypeGroup::Text if sql_type.typlen() == -1 => "x",
        TypeGroup::Text
        | TypeGroup::Boolean
        | TypeGroup::Integer
        | TypeGroup::Float
        | TypeGroup::InternalChar
        | TypeGroup::Date
        | TypeGroup::Time
        | TypeGroup::Timestamp
        | TypeGroup::Interval
        | TypeGroup::Uuid
        | TypeGroup::Oid
        | TypeGroup::RegType
        | TypeGroup::Unknown => "p",
    }
}

/// Returns `typcollation` or `attcollation`; 0 for types whose order does not depend on a collation.
pub(super) fn collation(sql_type: &SqlType) -> u32 {
    match sql_type {
        SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) => DEFAULT_COLLATION_OID,
        SqlType::Name => C_COLLATION_OID,
        SqlType::Array(element) => collation(element),
        SqlType::Bool
        | SqlType::Int2
        | SqlType::Int4
        | SqlType::Int8
        | SqlType::Numeric { .. }
        | SqlType::Float4
        | SqlType::Float8
        | SqlType::Date
        | SqlType::Time
        | SqlType::Timestamp
        | SqlType::TimestampTz
        | SqlType::Interval
        | SqlType::Bytea
        | SqlType::Uuid
        | SqlType::Json
        | SqlType::Jsonb
        | SqlType::Oid
        | SqlType::InternalChar
        | SqlType::Regclass
        | SqlType::Regtype
        | SqlType::Regproc
        | SqlType::Regnamespace
        | SqlType::Regrole
        | SqlType::Regprocedure
        | SqlType::Regoperator
        | SqlType::Int2Vector
        | SqlType::OidVector
        | SqlType::Unknown => 0,
    }
}

fn category(sql_type: &SqlType) -> &'static str {
    match sql_type {
        SqlType::Bool => "B",
        SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) | SqlType::Name => "S",
        SqlType::Date | SqlType::Time | SqlType::Timestamp | SqlType::TimestampTz => "D",
        SqlType::Interval => "T",
        SqlType::Array(_) | SqlType::Int2Vector | SqlType::OidVector => "A",
        SqlType::InternalChar => "Z",
        SqlType::Unknown => "X",
        SqlType::Bytea | SqlType::Uuid | SqlType::Json | SqlType::Jsonb => "U",
        SqlType::Int2
        | SqlType::Int4
        | SqlType::Int8
        | SqlType::Numeric { .. }
        | SqlType::Float4
        | SqlType::Float8
        | SqlType::Oid
        | SqlType::Regclass
        | SqlType::Regtype
        | SqlType::Regproc
        | SqlType::Regnamespace
        | SqlType::Regrole
        | SqlType::Regprocedure
        | SqlType::Regoperator => "N",
    }
}

fn is_preferred(sql_type: &SqlType) -> bool {
    matches!(
        sql_type,
        SqlType::Bool | SqlType::Text | SqlType::Float8 | SqlType::Oid | SqlType::TimestampTz | SqlType::Interval
    )
}

fn subscript_element_oid(sql_type: &SqlType) -> u32 {
    // PostgreSQL's `name` has subscripts, although its text has no form of an array.
    let element = if *sql_type == SqlType::Name { Some(SqlType::InternalChar) } else { sql_type.element() };
    element.map_or(0, |element| element.oid())
}
