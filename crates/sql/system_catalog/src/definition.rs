//! What a system table is: its name, its columns and the function that fills it.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use types::{Oid, SqlType};

use super::rows::{Cell, Rows};
use super::source::Source;

/// One system table, declared: everything but its rows is constant.
pub(super) struct Definition {
    pub(super) schema: &'static str,
    pub(super) name: &'static str,
    /// PostgreSQL's number where PostgreSQL has the table.
    pub(super) oid: u32,
    /// `r` for a catalog, `v` for a view, as in `pg_class.relkind`.
    pub(super) kind: &'static str,
    /// `name type` or `name type = default`, separated by commas; a column without a default is NULL where a row does not name it.
    pub(super) columns: &'static str,
    pub(super) rows: fn(&Source<'_>, &mut Rows),
}

/// Rows of a table that Kiln truly has nothing for.
pub(super) fn nothing(_: &Source<'_>, _: &mut Rows) {}

/// The column of every catalog that `*` does not give: the catalog's own number.
pub const TABLEOID: &str = "tableoid";

/// A system table ready to be scanned.
pub(super) struct SystemRelation {
    pub(super) definition: &'static Definition,
    pub(super) columns: Vec<Column>,
    /// The columns and, of a catalog, `tableoid`.
    pub(super) arrow: SchemaRef,
}

/// A column of a system table.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) sql_type: SqlType,
    pub(super) default: Cell,
}

impl SystemRelation {
    fn new(definition: &'static Definition) -> Self {
        let columns: Vec<Column> = definition.columns.split(", ").map(Column::parse).collect();
        let tableoid = (definition.kind == "r").then(|| SqlType::Oid.arrow_field(TABLEOID, true));
        let fields = columns.iter().map(|column| column.sql_type.arrow_field(column.name, true)).chain(tableoid);
        Self { definition, arrow: Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns }
    }
}

impl Column {
    fn parse(text: &'static str) -> Self {
        let (declared, default) = match text.split_once(" = ") {
            Some((declared, default)) => (declared, Some(default)),
            None => (text, None),
        };
        let (name, type_name) = declared.trim().split_once(' ').expect("a column is declared as `name type`");
        let sql_type = type_named(type_name);
        let default = default.map_or(Cell::Null, |text| default_cell(text, &sql_type));
        Self { name, sql_type, default }
    }
}

fn default_cell(text: &'static str, sql_type: &SqlType) -> Cell {
    match sql_type {
        SqlType::Bool => Cell::Bool(text == "t"),
        SqlType::Float4 | SqlType::Float8 => Cell::Float(text.parse().expect("a default fits its column's type")),
        other if other.is_textual() || *other == SqlType::InternalChar => {
            Cell::Text(text.trim_matches('\'').to_owned())
        }
        _ => Cell::Int(text.parse().expect("a default fits its column's type")),
    }
}

/// The type a column declaration names; the pseudo-types that only PostgreSQL's inside can read are text here.
pub(super) fn type_named(name: &str) -> SqlType {
    if let Some(element) = name.strip_suffix("[]") {
        return SqlType::Array(Box::new(type_named(element)));
    }
    match name {
        "char3" => SqlType::Varchar(Some(3)),
        "xid" => SqlType::Int8,
        "aclitem" | "pg_node_tree" | "anyarray" | "inet" | "pg_lsn" => SqlType::Text,
        _ => SqlType::scalars()
            .find(|sql_type| sql_type.typname() == name)
            .expect("a system table's column has one of Kiln's types"),
    }
}

/// System tables by their names and by their numbers.
pub(super) struct SystemTables {
    /// By the schema, then by the name.
    by_name: HashMap<&'static str, HashMap<&'static str, Arc<SystemRelation>>>,
    /// In the order of the numbers, so that listings are stable.
    by_oid: Vec<Arc<SystemRelation>>,
}

impl SystemTables {
    pub(super) fn of(definitions: impl Iterator<Item = &'static Definition>) -> Self {
        let mut by_oid: Vec<_> = definitions.map(|definition| Arc::new(SystemRelation::new(definition))).collect();
        by_oid.sort_by_key(|relation| relation.definition.oid);
        let mut by_name: HashMap<_, HashMap<_, _>> = HashMap::new();
        for relation in &by_oid {
            let of_schema = by_name.entry(relation.definition.schema).or_default();
            of_schema.insert(relation.definition.name, Arc::clone(relation));
        }
        Self { by_name, by_oid }
    }

    /// All of them, by their numbers.
    pub(super) fn all(&self) -> &[Arc<SystemRelation>] {
        &self.by_oid
    }

    pub(super) fn named(&self, schema: &str, name: &str) -> Option<&Arc<SystemRelation>> {
        self.by_name.get(schema)?.get(name)
    }

    pub(super) fn numbered(&self, oid: Oid) -> Option<&Arc<SystemRelation>> {
        let at = self.by_oid.binary_search_by_key(&oid.0, |relation| relation.definition.oid).ok()?;
        Some(&self.by_oid[at])
    }
}
