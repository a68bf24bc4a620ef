//! `pg_attribute` and `pg_attrdef`: columns of all relations and their defaults.

use types::SqlType;

use super::super::row_builder::{RowBuilder, row};
use super::super::row_source::{RelationObject, RowSource};
use super::super::table_definition::TableDefinition;
use super::definition_constructors::catalog;
use super::pg_type;
use crate::sequence_default::display_default;

pub(super) const TABLES: &[TableDefinition] = &[
    catalog(
        1249,
        "pg_attribute",
        "Columns of tables, views, indexes and sequences.",
        "attrelid oid, attname name, atttypid oid, attstattarget int4 = -1, attlen int2, attnum int2, attndims int4 = 0, \
         attcacheoff int4 = -1, atttypmod int4, attbyval bool, attalign char, attstorage char, attcompression char = '', \
         attnotnull bool, atthasdef bool, atthasmissing bool = f, attidentity char = '', attgenerated char = '', \
         attisdropped bool = f, attislocal bool = t, attinhcount int4 = 0, attcollation oid, attacl aclitem[], \
         attoptions text[], attfdwoptions text[], attmissingval anyarray",
        attribute,
    ),
    catalog(
        2604,
        "pg_attrdef",
        "Defaults of columns.",
        "oid oid, adrelid oid, adnum int2, adbin pg_node_tree",
        attrdef,
    ),
];

fn attribute(source: &RowSource<'_>, rows: &mut RowBuilder) {
    let relations = match source.restriction.oid() {
        Some(oid) => source.relations.find_by_oid(oid).into_iter().collect(),
        None => source.relations.all(),
    };
    for relation in relations {
        for attribute in relation.attributes() {
            let sql_type = &attribute.sql_type;
            row!(rows, attrelid: relation.oid, attname: attribute.name, atttypid: sql_type.oid(),
                attlen: sql_type.typlen(), attnum: attribute.number,
                attndims: i32::from(matches!(sql_type, SqlType::Array(_))), atttypmod: sql_type.typmod(),
                attbyval: pg_type::is_passed_by_value(sql_type), attalign: pg_type::alignment(sql_type),
                attstorage: pg_type::storage(sql_type), attnotnull: attribute.not_null,
                attidentity: attribute.identity.map_or("", |identity| if identity.always { "a" } else { "d" }),
                atthasdef: attribute.default.is_some(), attcollation: pg_type::collation(sql_type));
        }
    }
}

fn attrdef(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for relation in source.relations.all().iter().filter(|relation| matches!(relation.object, RelationObject::Table(_)))
    {
        for attribute in relation.attributes() {
            if let Some(default) = attribute.default {
                // Defaults have no OIDs in Kiln: the table's OID is used.
                let default = display_default(source.relations, default);
                row!(rows, oid: relation.oid, adrelid: relation.oid, adnum: attribute.number, adbin: default.into_owned());
            }
        }
    }
}
