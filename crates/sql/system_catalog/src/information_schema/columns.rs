//! Views of columns, and of the element types of arrays.

use types::SqlType;

use super::super::row_builder::{Cell, RowBuilder, row};
use super::super::row_source::{Attribute, Relation, RowSource};
use super::super::table_definition::TableDefinition;
use super::{view, yes_or_no};
use crate::sequence_default::display_default;

pub(super) const TABLES: &[TableDefinition] = &[
    view(
        13_295,
        "columns",
        "Columns of tables and views.",
        "table_catalog name, table_schema name, table_name name, column_name name, ordinal_position int4, \
         column_default varchar, is_nullable char3, data_type varchar, character_maximum_length int4, \
         character_octet_length int4, numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, \
         datetime_precision int4, interval_type varchar, interval_precision int4, character_set_catalog name, \
         character_set_schema name, character_set_name name, collation_catalog name, collation_schema name, \
         collation_name name, domain_catalog name, domain_schema name, domain_name name, udt_catalog name, \
         udt_schema name = pg_catalog, udt_name name, scope_catalog name, scope_schema name, scope_name name, \
         maximum_cardinality int4, dtd_identifier name, is_self_referencing char3 = NO, is_identity char3 = NO, \
         identity_generation varchar, identity_start varchar, identity_increment varchar, identity_maximum varchar, \
         identity_minimum varchar, identity_cycle char3 = NO, is_generated varchar = NEVER, \
         generation_expression varchar, is_updatable char3",
        columns,
    ),
    view(
        13_493,
        "element_types",
        "Element types of array columns.",
        "object_catalog name, object_schema name, object_name name, object_type varchar, collection_type_identifier name, \
         data_type varchar, character_maximum_length int4, character_octet_length int4, character_set_catalog name, \
         character_set_schema name, character_set_name name, collation_catalog name, collation_schema name, \
         collation_name name, numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, \
         datetime_precision int4, interval_type varchar, interval_precision int4, domain_default varchar, udt_catalog name, \
         udt_schema name = pg_catalog, udt_name name, scope_catalog name, scope_schema name, scope_name name, \
         maximum_cardinality int4, dtd_identifier name",
        element_types,
    ),
    view(
        13_290,
        "column_udt_usage",
        "Types of columns.",
        "udt_catalog name, udt_schema name = pg_catalog, udt_name name, table_catalog name, table_schema name, \
         table_name name, column_name name",
        column_udt_usage,
    ),
];

/// Visits each column of the relations that have columns in the standard's sense.
fn for_each_column(source: &RowSource<'_>, mut visit: impl FnMut(&Relation<'_>, &Attribute<'_>)) {
    for relation in source.relations.all().into_iter().filter(|relation| matches!(relation.kind(), "r" | "v")) {
        for attribute in relation.attributes() {
            visit(&relation, &attribute);
        }
    }
}

fn columns(source: &RowSource<'_>, rows: &mut RowBuilder) {
    let database = &source.context.database;
    for_each_column(source, |relation, attribute| {
        let described = TypeColumns::from_type(&attribute.sql_type);
        let default = attribute.default.map(|default| display_default(source.relations, default).into_owned());
        let identity = attribute.identity;
        let sequence = identity.and_then(|identity| source.state().sequence(identity.sequence));
        row!(rows, table_catalog: database, table_schema: source.schema_name(relation.schema),
            table_name: relation.name, column_name: attribute.name, ordinal_position: attribute.number,
            column_default: default, is_nullable: yes_or_no(!attribute.not_null),
            data_type: described.name, character_maximum_length: described.character_maximum_length,
            character_octet_length: described.character_octet_length, numeric_precision: described.precision,
            numeric_precision_radix: described.precision_radix, numeric_scale: described.scale,
            datetime_precision: described.datetime_precision, udt_catalog: database, udt_name: attribute.sql_type.typname(),
            dtd_identifier: attribute.number.to_string(), is_identity: yes_or_no(identity.is_some()),
            identity_generation: identity.map(|identity| if identity.always { "ALWAYS" } else { "BY DEFAULT" }),
            identity_start: sequence.map(|sequence| sequence.start.to_string()),
            identity_increment: sequence.map(|sequence| sequence.increment.to_string()),
            identity_maximum: sequence.map(|sequence| sequence.max.to_string()),
            identity_minimum: sequence.map(|sequence| sequence.min.to_string()),
            identity_cycle: yes_or_no(sequence.is_some_and(|sequence| sequence.cycle)),
            is_updatable: yes_or_no(relation.kind() == "r"));
    });
}

fn element_types(source: &RowSource<'_>, rows: &mut RowBuilder) {
    let database = &source.context.database;
    for_each_column(source, |relation, attribute| {
        let SqlType::Array(element) = &attribute.sql_type else { return };
        row!(rows, object_catalog: database, object_schema: source.schema_name(relation.schema),
            object_name: relation.name, object_type: if relation.kind() == "v" { "VIEW" } else { "TABLE" },
            collection_type_identifier: attribute.number.to_string(), data_type: TypeColumns::from_type(element).name,
            udt_catalog: database, udt_name: element.typname(), dtd_identifier: format!("a{}", attribute.number));
    });
}

fn column_udt_usage(source: &RowSource<'_>, rows: &mut RowBuilder) {
    let database = &source.context.database;
    for_each_column(source, |relation, attribute| {
        row!(rows, udt_catalog: database, udt_name: attribute.sql_type.typname(), table_catalog: database,
            table_schema: source.schema_name(relation.schema), table_name: relation.name, column_name: attribute.name);
    });
}

/// Description of a type, in the columns that the standard has for it.
pub(super) struct TypeColumns {
    pub(super) name: String,
    pub(super) character_maximum_length: Cell,
    pub(super) character_octet_length: Cell,
    pub(super) precision: Cell,
    pub(super) precision_radix: Cell,
    pub(super) scale: Cell,
    pub(super) datetime_precision: Cell,
}

/// Maximum number of bytes of a character in UTF-8.
const CHARACTER_BYTES_MAX: i64 = 4;
/// Maximum number of bytes of a value in PostgreSQL.
const VALUE_BYTES_MAX: i64 = 1 << 30;

impl TypeColumns {
    #[deny(clippy::wildcard_enum_match_arm, reason = "a new type must not compile until its lengths are known")]
    pub(super) fn from_type(sql_type: &SqlType) -> Self {
        let mut described = TypeColumns {
            name: type_name(sql_type),
            character_maximum_length: Cell::Null,
            character_octet_length: Cell::Null,
            precision: Cell::Null,
            precision_radix: Cell::Null,
            scale: Cell::Null,
            datetime_precision: Cell::Null,
        };
        let mut number = |precision: i64, radix: i64, scale: Option<i64>| {
            described.precision = Cell::Int(precision);
            described.precision_radix = Cell::Int(radix);
            described.scale = scale.into();
        };
        match sql_type {
            SqlType::Int2 => number(16, 2, Some(0)),
            SqlType::Int4 => number(32, 2, Some(0)),
            SqlType::Int8 => number(64, 2, Some(0)),
            SqlType::Float4 => number(24, 2, None),
            SqlType::Float8 => number(53, 2, None),
            // An unconstrained numeric too: Kiln stores 38 digits, 10 of them after the decimal point.
            SqlType::Numeric { precision, scale } => number(i64::from(*precision), 10, Some(i64::from(*scale))),
            SqlType::Varchar(Some(length)) | SqlType::Char(Some(length)) => {
                described.character_maximum_length = Cell::from(*length);
                described.character_octet_length = Cell::Int(i64::from(*length) * CHARACTER_BYTES_MAX);
            }
            SqlType::Text | SqlType::Varchar(None) | SqlType::Char(None) => {
                described.character_octet_length = Cell::Int(VALUE_BYTES_MAX)
            }
            SqlType::Date => described.datetime_precision = Cell::Int(0),
            SqlType::Time | SqlType::Timestamp | SqlType::TimestampTz | SqlType::Interval => {
                described.datetime_precision = Cell::Int(6);
            }
            SqlType::Bool
            | SqlType::Bytea
            | SqlType::Uuid
            | SqlType::Json
            | SqlType::Jsonb
            | SqlType::Array(_)
            | SqlType::Oid
            | SqlType::Name
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
            | SqlType::Unknown => {}
        }
        described
    }
}

/// Returns the type's name without modifiers, for which the standard has separate columns.
fn type_name(sql_type: &SqlType) -> String {
    match sql_type {
        SqlType::Array(_) => "ARRAY".to_owned(),
        SqlType::Numeric { .. } => "numeric".to_owned(),
        SqlType::Varchar(_) => "character varying".to_owned(),
        SqlType::Char(_) => "character".to_owned(),
        other => other.to_string(),
    }
}
