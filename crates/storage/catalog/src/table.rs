//! Table definitions: columns, constraints, indexes, storage, distribution and sort order.

use serde::{Deserialize, Serialize};
use types::{CachePolicy, ColumnId, Oid, OnCommit, SqlType};

/// Table definition. Its shards are separate, in [`crate::TableShards`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    pub oid: Oid,
    pub schema: Oid,
    pub name: String,
    pub owner: Oid,
    /// Columns in the order of declaration.
    pub columns: Vec<Column>,
    pub constraints: Vec<Constraint>,
    pub distribution: Distribution,
    pub order: TableOrder,
    pub comment: Option<String>,
    /// Id of the next column to be added; ids of dropped columns are never reused.
    pub next_column: i32,
    #[serde(default)]
    pub storage: Storage,
    #[serde(default)]
    pub indexes: Vec<Index>,
    /// Parameters of `WITH (…)` other than the storage, as `name=value`: PostgreSQL's parameters, which are shown and
    /// have no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Action at commit if the table is temporary; `None` for a permanent table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temporary: Option<OnCommit>,
    #[serde(default, skip_serializing_if = "CachePolicy::is_normal")]
    pub cache: CachePolicy,
    /// Location of the rows of an external table; `None` for a table whose rows Kiln stores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<External>,
}

/// Files of an external table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct External {
    /// File, folder or pattern, as a path on the server or a URL.
    pub location: String,
}

/// Storage of a table's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Storage {
    /// Fresh rows in the row store, which are flushed to shards.
    #[default]
    Hybrid,
    /// Shards only: every statement that adds rows writes a shard.
    Column,
    /// Row store only: rows are never flushed.
    Row,
}

/// Index made by CREATE INDEX. Enforced keys have indexes of their own, with the constraint's id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    pub oid: Oid,
    pub name: String,
    pub columns: Vec<ColumnId>,
    pub unique: bool,
    /// Sort options of each of `columns`; empty if none has any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<KeyOrder>,
    /// Columns of INCLUDE: they are shown, and the index is dropped with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub included: Vec<ColumnId>,
    /// Parameters of `WITH (…)`, as `name=value`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

/// Sort options of an index column in CREATE INDEX. They are shown and have no effect, since an index serves equality
/// and range lookups only.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KeyOrder {
    pub descending: bool,
    pub nulls_first: bool,
    /// Collation, if not the column's.
    pub collation: Option<String>,
    /// Operator class, if not the type's default.
    pub operators: Option<String>,
}

impl Index {
    /// Returns the key columns, then those of INCLUDE.
    #[must_use]
    pub fn all_columns(&self) -> Vec<ColumnId> {
        self.columns.iter().chain(&self.included).copied().collect()
    }
}

/// Column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    pub id: ColumnId,
    pub name: String,
    pub sql_type: SqlType,
    pub not_null: bool,
    /// SQL text of the DEFAULT expression.
    pub default: Option<String>,
    /// Value, in text form, that rows written before the column existed have in it; `None` is NULL.
    pub missing: Option<String>,
    pub comment: Option<String>,
    /// GENERATED … AS IDENTITY; such a column has no DEFAULT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// Sequences that the DEFAULT uses, which can therefore not be dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sequences: Vec<Oid>,
}

/// Source of an identity column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// True for GENERATED ALWAYS, false for BY DEFAULT.
    pub always: bool,
    pub sequence: Oid,
}

/// Constraint of a table, other than NOT NULL, which is part of the column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constraint {
    pub oid: Oid,
    pub name: String,
    pub kind: ConstraintKind,
    /// Whether the constraint is enforced; a CHECK always is.
    #[serde(default)]
    pub enforced: bool,
    #[serde(default)]
    pub comment: Option<String>,
}

/// Kind and columns of a constraint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConstraintKind {
    /// Used for estimates, whether or not it is enforced.
    PrimaryKey { columns: Vec<ColumnId> },
    /// Used for estimates, whether or not it is enforced.
    Unique { columns: Vec<ColumnId> },
    /// Used for estimates, whether or not it is enforced.
    ForeignKey {
        columns: Vec<ColumnId>,
        /// The referenced table.
        references: Oid,
        /// The referenced columns, one for each of `columns`.
        referenced: Vec<ColumnId>,
        on_update: ReferentialAction,
        on_delete: ReferentialAction,
        /// The columns that ON DELETE SET NULL or SET DEFAULT sets; empty means all.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        delete_columns: Vec<ColumnId>,
    },
    /// Enforced: the expression is false for no row.
    Check {
        /// SQL text of the expression.
        expression: String,
        /// Columns that the expression uses.
        columns: Vec<ColumnId>,
    },
}

impl ConstraintKind {
    /// Returns whether it is a primary or unique key.
    #[must_use]
    pub fn is_key(&self) -> bool {
        matches!(self, Self::PrimaryKey { .. } | Self::Unique { .. })
    }

    /// Returns the columns of the constrained table.
    #[must_use]
    pub fn columns(&self) -> &[ColumnId] {
        match self {
            Self::PrimaryKey { columns }
            | Self::Unique { columns }
            | Self::ForeignKey { columns, .. }
            | Self::Check { columns, .. } => columns,
        }
    }
}

/// Action on referencing rows when the referenced row changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum ReferentialAction {
    #[default]
    NoAction,
    Restrict,
    Cascade,
    SetNull,
    SetDefault,
}

/// Distribution of a table's rows over the workers of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Distribution {
    /// On any worker.
    #[default]
    Random,
    /// On every worker, if that avoids moving rows of other tables.
    Replicate,
    /// By hash bucket of these columns: equal values of all tables are on the same worker.
    On(Vec<ColumnId>),
}

/// Order of rows within each shard.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum TableOrder {
    /// Order of arrival: each shard is a contiguous range of its load's input.
    #[default]
    None,
    /// Sorted lexicographically by the columns.
    Sort(Vec<SortColumn>),
    /// Clustered by all columns, interleaved.
    Cluster(Vec<ColumnId>),
}

/// Column of a sort key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SortColumn {
    pub column: ColumnId,
    pub descending: bool,
    pub nulls_first: bool,
}

impl Table {
    /// Maximum number of columns, as in PostgreSQL.
    pub const COLUMN_COUNT_MAX: usize = 1_600;

    /// Returns the column with this id.
    #[must_use]
    pub fn column(&self, id: ColumnId) -> Option<&Column> {
        self.columns.iter().find(|column| column.id == id)
    }

    /// Returns the name of an index or key of the table; empty if there is none with this id.
    #[must_use]
    pub fn index_name(&self, index: Oid) -> &str {
        let constraint = self.constraints.iter().find(|constraint| constraint.oid == index);
        let named = self.indexes.iter().find(|named| named.oid == index).map(|named| named.name.as_str());
        constraint.map(|constraint| constraint.name.as_str()).or(named).unwrap_or("")
    }

    /// Returns the column with this name, with its position.
    #[must_use]
    pub fn column_by_name(&self, name: &str) -> Option<(usize, &Column)> {
        self.columns.iter().enumerate().find(|(_, column)| column.name == name)
    }

    /// Returns the columns of the primary key, if one is declared.
    #[must_use]
    pub fn primary_key(&self) -> Option<&[ColumnId]> {
        self.constraints.iter().find_map(|constraint| match &constraint.kind {
            ConstraintKind::PrimaryKey { columns } => Some(columns.as_slice()),
            _ => None,
        })
    }

    /// Returns the columns of [`TableOrder`], in its order.
    #[must_use]
    pub fn order_columns(&self) -> Vec<ColumnId> {
        match &self.order {
            TableOrder::None => Vec::new(),
            TableOrder::Sort(columns) => columns.iter().map(|sort| sort.column).collect(),
            TableOrder::Cluster(columns) => columns.clone(),
        }
    }
}
