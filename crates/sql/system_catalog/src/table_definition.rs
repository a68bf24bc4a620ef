//! Declarations of system tables: name, columns and the function that computes the rows.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use cluster_model::{CLUSTER_OPTIONS, ClusterOption, OptionForm};
use types::{Oid, SqlType};

use super::row_builder::{Cell, RowBuilder};
use super::row_source::RowSource;

/// Declaration of a system table; everything but its rows is constant.
pub(super) struct TableDefinition {
    pub(super) schema: &'static str,
    pub(super) name: &'static str,
    /// One sentence that says what a row is, shown as the table's comment.
    pub(super) description: &'static str,
    /// PostgreSQL's OID if PostgreSQL has the table.
    pub(super) oid: u32,
    /// `r` for a catalog, `v` for a view, as in `pg_class.relkind`; empty for a set-returning function.
    pub(super) kind: &'static str,
    pub(super) columns: Columns,
    pub(super) rows: fn(&RowSource<'_>, &mut RowBuilder),
}

/// Declarations of a table's columns, each as `name type` or `name type = default`. A column that a row does not name
/// gets its default, else NULL.
pub(super) enum Columns {
    /// Declarations separated by commas, for tables whose columns PostgreSQL's manual describes.
    WithoutDescriptions(&'static str),
    /// Declarations, each with a sentence that is shown as the column's comment.
    WithDescriptions(&'static [ColumnDeclaration]),
    /// Declarations like [`Columns::WithDescriptions`], then the options of clusters that are not among them, then others.
    WithClusterOptions(&'static [ColumnDeclaration], &'static [ColumnDeclaration]),
}

/// Declaration of a column, and the sentence that is shown as its comment.
pub(super) type ColumnDeclaration = (&'static str, &'static str);

/// Adds no rows, for tables of features that Kiln does not have.
pub(super) fn no_rows(_: &RowSource<'_>, _: &mut RowBuilder) {}

/// Hidden column of every catalog that `*` does not include: the OID of the catalog itself.
pub const TABLEOID: &str = "tableoid";

/// System table with its parsed columns.
pub(super) struct ParsedTableDefinition {
    pub(super) definition: &'static TableDefinition,
    pub(super) columns: Vec<Column>,
    /// Columns, and `tableoid` for a catalog.
    pub(super) arrow_schema: SchemaRef,
}

/// Column of a system table.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) sql_type: SqlType,
    pub(super) default: Cell,
    /// Meaning of the column; `None` where PostgreSQL's manual has it.
    pub(super) description: Option<&'static str>,
}

impl ParsedTableDefinition {
    /// Returns the number of columns of the Arrow schema after the declared ones.
    pub(super) fn hidden_column_count(&self) -> usize {
        self.arrow_schema.fields().len() - self.columns.len()
    }

    fn new(definition: &'static TableDefinition) -> Self {
        let columns: Vec<Column> = match definition.columns {
            Columns::WithoutDescriptions(declarations) => {
                declarations.split(", ").map(|text| Column::parse(text, None)).collect()
            }
            Columns::WithDescriptions(columns) => parse_described_columns(columns).collect(),
            Columns::WithClusterOptions(before, after) => {
                let before: Vec<Column> = parse_described_columns(before).collect();
                let is_declared = |option: &&ClusterOption| before.iter().any(|column| column.name == option.name);
                let options = CLUSTER_OPTIONS.iter().filter(|option| !is_declared(option));
                let options: Vec<Column> = options.map(Column::for_cluster_option).collect();
                before.into_iter().chain(options).chain(parse_described_columns(after)).collect()
            }
        };
        let tableoid = (definition.kind == "r").then(|| SqlType::Oid.arrow_field(TABLEOID, true));
        let fields = columns.iter().map(|column| column.sql_type.arrow_field(column.name, true)).chain(tableoid);
        Self { definition, arrow_schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns }
    }
}

impl Column {
    fn parse(text: &'static str, description: Option<&'static str>) -> Self {
        let (declared, default) = match text.split_once(" = ") {
            Some((declared, default)) => (declared, Some(default)),
            None => (text, None),
        };
        let (name, type_name) = declared.trim().split_once(' ').expect("a column declaration is `name type`");
        let sql_type = declared_type(type_name);
        let default = default.map_or(Cell::Null, |text| parse_default(text, &sql_type));
        Self { name, sql_type, default, description }
    }

    fn for_cluster_option(option: &'static ClusterOption) -> Self {
        let sql_type = match option.form {
            OptionForm::Number { .. } | OptionForm::NumberOrNull { .. } => SqlType::Int4,
            OptionForm::Boolean => SqlType::Bool,
            OptionForm::Hardware | OptionForm::Profile => SqlType::Text,
        };
        Self { name: option.name, sql_type, default: Cell::Null, description: Some(option.description) }
    }
}

fn parse_described_columns(columns: &'static [ColumnDeclaration]) -> impl Iterator<Item = Column> {
    columns.iter().map(|(text, description)| Column::parse(text, Some(description)))
}

fn parse_default(text: &'static str, sql_type: &SqlType) -> Cell {
    match sql_type {
        SqlType::Bool => Cell::Bool(text == "t"),
        SqlType::Float4 | SqlType::Float8 => Cell::Float(text.parse().expect("a default parses as its column's type")),
        other if other.is_textual() || *other == SqlType::InternalChar => {
            Cell::Text(text.trim_matches('\'').to_owned())
        }
        _ => Cell::Int(text.parse().expect("a default parses as its column's type")),
    }
}

/// Returns the type that a column declaration names; pseudo-types that only PostgreSQL's internals can read become
/// text.
pub(super) fn declared_type(name: &str) -> SqlType {
    if let Some(element) = name.strip_suffix("[]") {
        return SqlType::Array(Box::new(declared_type(element)));
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

/// All system tables, by name and by OID.
pub(super) struct SystemTables {
    /// Tables by schema, then by name.
    by_name: HashMap<&'static str, HashMap<&'static str, Arc<ParsedTableDefinition>>>,
    /// Tables sorted by OID, so that listings are stable.
    by_oid: Vec<Arc<ParsedTableDefinition>>,
}

impl SystemTables {
    pub(super) fn from_definitions(definitions: impl Iterator<Item = &'static TableDefinition>) -> Self {
        let mut by_oid: Vec<_> =
            definitions.map(|definition| Arc::new(ParsedTableDefinition::new(definition))).collect();
        by_oid.sort_by_key(|relation| relation.definition.oid);
        let mut by_name: HashMap<_, HashMap<_, _>> = HashMap::new();
        for relation in &by_oid {
            let of_schema = by_name.entry(relation.definition.schema).or_default();
            of_schema.insert(relation.definition.name, Arc::clone(relation));
        }
        Self { by_name, by_oid }
    }

    /// Returns all tables, sorted by OID.
    pub(super) fn all(&self) -> &[Arc<ParsedTableDefinition>] {
        &self.by_oid
    }

    pub(super) fn find(&self, schema: &str, name: &str) -> Option<&Arc<ParsedTableDefinition>> {
        self.by_name.get(schema)?.get(name)
    }

    pub(super) fn find_by_oid(&self, oid: Oid) -> Option<&Arc<ParsedTableDefinition>> {
        let at = self.by_oid.binary_search_by_key(&oid.0, |relation| relation.definition.oid).ok()?;
        Some(&self.by_oid[at])
    }
}
