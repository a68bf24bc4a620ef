//! `pg_am`, `pg_operator`, `pg_opclass` and the other catalogs of access methods, operators and casts.

use std::sync::LazyLock;

use types::{Oid, SqlType};

use super::super::row_builder::{RowBuilder, row};
use super::super::row_source::{RowSource, SYSTEM_OWNER, schema_oid};
use super::super::table_definition::{TableDefinition, no_rows};
use super::definition_constructors::catalog;

/// Access methods: tables are Parquet shards, and keys that are not enforced have no index.
pub(crate) const SHARDS_ACCESS_METHOD: &str = "shards";
pub(crate) const SHARDS_ACCESS_METHOD_OID: u32 = 15_900;
pub(crate) const UNENFORCED_ACCESS_METHOD: &str = "unenforced";
pub(crate) const UNENFORCED_ACCESS_METHOD_OID: u32 = 15_901;
/// Access method of enforced keys and of indexes, under PostgreSQL's name.
pub(crate) const BTREE_ACCESS_METHOD: &str = "btree";
pub(crate) const BTREE_ACCESS_METHOD_OID: u32 = 403;

pub(super) const TABLES: &[TableDefinition] = &[
    catalog(
        2601,
        "pg_am",
        "Access methods: heap for tables, btree for indexes.",
        "oid oid, amname name, amhandler regproc = 0, amtype char",
        access_methods,
    ),
    catalog(
        2617,
        "pg_operator",
        "Operators.",
        "oid oid, oprname name, oprnamespace oid, oprowner oid, oprkind char = b, oprcanmerge bool = f, \
         oprcanhash bool = f, oprleft oid, oprright oid, oprresult oid, oprcom oid = 0, oprnegate oid = 0, \
         oprcode regproc = 0, oprrest regproc = 0, oprjoin regproc = 0",
        operators,
    ),
    catalog(
        2605,
        "pg_cast",
        "Casts between types.",
        "oid oid, castsource oid, casttarget oid, castfunc oid = 0, castcontext char, castmethod char = i",
        casts,
    ),
    catalog(
        2616,
        "pg_opclass",
        "Operator classes of indexes; always empty.",
        "oid oid, opcmethod oid, opcname name, opcnamespace oid, opcowner oid, opcfamily oid, opcintype oid, opcdefault bool, opckeytype oid",
        no_rows,
    ),
    catalog(
        2753,
        "pg_opfamily",
        "Operator families; always empty.",
        "oid oid, opfmethod oid, opfname name, opfnamespace oid, opfowner oid",
        no_rows,
    ),
    catalog(
        2602,
        "pg_amop",
        "Operators of operator families; always empty.",
        "oid oid, amopfamily oid, amoplefttype oid, amoprighttype oid, amopstrategy int2, amoppurpose char, amopopr oid, amopmethod oid, amopsortfamily oid",
        no_rows,
    ),
    catalog(
        2603,
        "pg_amproc",
        "Support functions of operator families; always empty.",
        "oid oid, amprocfamily oid, amproclefttype oid, amprocrighttype oid, amprocnum int2, amproc regproc",
        no_rows,
    ),
    catalog(
        2612,
        "pg_language",
        "Languages of functions.",
        "oid oid, lanname name, lanowner oid, lanispl bool = f, lanpltrusted bool = f, lanplcallfoid oid = 0, \
         laninline oid = 0, lanvalidator oid = 0, lanacl aclitem[]",
        languages,
    ),
];

/// OID of the language of built-in functions.
pub(crate) const INTERNAL_LANGUAGE_OID: u32 = 12;

fn access_methods(_: &RowSource<'_>, rows: &mut RowBuilder) {
    row!(rows, oid: SHARDS_ACCESS_METHOD_OID, amname: SHARDS_ACCESS_METHOD, amtype: "t");
    row!(rows, oid: UNENFORCED_ACCESS_METHOD_OID, amname: UNENFORCED_ACCESS_METHOD, amtype: "i");
    row!(rows, oid: BTREE_ACCESS_METHOD_OID, amname: BTREE_ACCESS_METHOD, amtype: "i");
}

/// First OIDs of operators and casts, which are numbered consecutively, below the OIDs of user objects.
const FIRST_OPERATOR_OID: u32 = 14_000;
const FIRST_CAST_OID: u32 = 14_600;

/// Row of `pg_operator`: an operator between two values of one type.
pub(crate) struct OperatorEntry {
    pub(crate) oid: Oid,
    pub(crate) name: &'static str,
    /// OID of the type of both operands.
    pub(crate) operand: u32,
    result: u32,
}

/// Comparison, arithmetic and text operators.
pub(crate) static OPERATORS: LazyLock<Vec<OperatorEntry>> = LazyLock::new(|| {
    let mut found = Vec::new();
    let mut add = |names: &[&'static str], operand: &SqlType, result: &SqlType| {
        for name in names {
            let oid = Oid(FIRST_OPERATOR_OID + u32::try_from(found.len()).expect("the number of operators fits u32"));
            found.push(OperatorEntry { oid, name, operand: operand.oid(), result: result.oid() });
        }
    };
    for sql_type in SqlType::scalars().filter(|sql_type| !matches!(sql_type, SqlType::Json | SqlType::Unknown)) {
        add(&["=", "<>", "<", "<=", ">", ">="], &sql_type, &SqlType::Bool);
        if sql_type.is_numeric() && sql_type != SqlType::Oid {
            add(&["+", "-", "*", "/"], &sql_type, &sql_type);
        }
    }
    add(&["||"], &SqlType::Text, &SqlType::Text);
    add(&["~", "~*", "!~", "!~*", "~~", "!~~", "~~*", "!~~*"], &SqlType::Text, &SqlType::Bool);
    found
});

fn operators(source: &RowSource<'_>, rows: &mut RowBuilder) {
    let schema = schema_oid(source.state(), super::definition_constructors::SCHEMA);
    for operator in OPERATORS.iter() {
        row!(rows, oid: operator.oid, oprname: operator.name, oprnamespace: schema, oprowner: SYSTEM_OWNER,
            oprcanmerge: operator.name == "=", oprcanhash: operator.name == "=", oprleft: operator.operand,
            oprright: operator.operand, oprresult: operator.result);
    }
}

/// Numeric types from narrow to wide: casts to a wider type are implicit, casts to a narrower one happen on assignment.
const NUMERIC_TYPES_BY_WIDTH: [SqlType; 6] =
    [SqlType::Int2, SqlType::Int4, SqlType::Int8, SqlType::BARE_NUMERIC, SqlType::Float4, SqlType::Float8];

fn casts(_: &RowSource<'_>, rows: &mut RowBuilder) {
    let mut number = FIRST_CAST_OID;
    let mut add = |rows: &mut RowBuilder, from: &SqlType, to: &SqlType, context: &'static str| {
        row!(rows, oid: Oid(number), castsource: from.oid(), casttarget: to.oid(), castcontext: context);
        number += 1;
    };
    for (at, from) in NUMERIC_TYPES_BY_WIDTH.iter().enumerate() {
        for (to_at, to) in NUMERIC_TYPES_BY_WIDTH.iter().enumerate().filter(|(to_at, _)| *to_at != at) {
            add(rows, from, to, if to_at > at { "i" } else { "a" });
        }
    }
    for (from, to, context) in [
        (SqlType::Varchar(None), SqlType::Text, "i"),
        (SqlType::Char(None), SqlType::Text, "i"),
        (SqlType::Name, SqlType::Text, "i"),
        (SqlType::Text, SqlType::Varchar(None), "i"),
        (SqlType::Text, SqlType::Char(None), "i"),
        (SqlType::Date, SqlType::Timestamp, "i"),
        (SqlType::Date, SqlType::TimestampTz, "i"),
        (SqlType::Timestamp, SqlType::TimestampTz, "i"),
        (SqlType::Timestamp, SqlType::Date, "a"),
        (SqlType::TimestampTz, SqlType::Timestamp, "a"),
        (SqlType::TimestampTz, SqlType::Date, "a"),
        (SqlType::Timestamp, SqlType::Time, "a"),
        (SqlType::Json, SqlType::Jsonb, "a"),
        (SqlType::Jsonb, SqlType::Json, "a"),
        (SqlType::Bool, SqlType::Int4, "e"),
        (SqlType::Int4, SqlType::Bool, "e"),
        (SqlType::Int4, SqlType::Oid, "i"),
        (SqlType::Int8, SqlType::Oid, "i"),
        (SqlType::Oid, SqlType::Regclass, "i"),
        (SqlType::Regclass, SqlType::Oid, "i"),
    ] {
        add(rows, &from, &to, context);
    }
}

fn languages(_: &RowSource<'_>, rows: &mut RowBuilder) {
    row!(rows, oid: INTERNAL_LANGUAGE_OID, lanname: "internal", lanowner: SYSTEM_OWNER);
}
