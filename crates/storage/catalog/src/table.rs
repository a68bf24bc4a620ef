//! Tables as declared: columns, constraints, where rows live and how shards are sorted.

use serde::{Deserialize, Serialize};
use types::{CachePolicy, ColumnId, Oid, OnCommit, SqlType};

/// A table. Its shards are beside it, in [`crate::TableShards`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    pub oid: Oid,
    pub schema: Oid,
    pub name: String,
    pub owner: Oid,
    /// In the order of declaration.
    pub columns: Vec<Column>,
    pub constraints: Vec<Constraint>,
    pub distribution: Distribution,
    pub order: TableOrder,
    pub comment: Option<String>,
    /// The id that the next added column gets; ids of dropped columns stay unused.
    pub next_column: i32,
    #[serde(default)]
    pub storage: Storage,
    #[serde(default)]
    pub indexes: Vec<Index>,
    /// `WITH (…)` beside the storage, as `name=value`: of PostgreSQL's own parameters, which are shown and change nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Of a temporary table what becomes of it when a transaction commits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temporary: Option<OnCommit>,
    #[serde(default, skip_serializing_if = "CachePolicy::is_normal")]
    pub cache: CachePolicy,
    /// Of a table whose rows lie in files that others write, and only there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<External>,
}

/// Files of others that a table is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct External {
    /// A file, a folder or a pattern: a path of the server or a URL.
    pub location: String,
}

/// Which of its two stores a table uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Storage {
    /// Fresh rows as rows; they settle into shards.
    #[default]
    Hybrid,
    /// Shards alone: every statement that adds rows writes one.
    Column,
    /// Rows alone, which never settle.
    Row,
}

/// An index that CREATE INDEX made; keys that are enforced have one of their own, with the constraint's id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    pub oid: Oid,
    pub name: String,
    pub columns: Vec<ColumnId>,
    pub unique: bool,
    /// What was said of each of `columns`; empty where nothing was said of any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<KeyOrder>,
    /// INCLUDE: shown, and what the index goes with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub included: Vec<ColumnId>,
    /// `WITH (…)`, as `name=value`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

/// How CREATE INDEX orders a column. An index is looked into by equality and ranges, for which none of it counts: it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KeyOrder {
    pub descending: bool,
    pub nulls_first: bool,
    /// A collation other than the column's.
    pub collation: Option<String>,
    /// An operator class other than the type's own.
    pub operators: Option<String>,
}

impl Index {
    /// The columns of its key, then those of INCLUDE.
    #[must_use]
    pub fn all_columns(&self) -> Vec<ColumnId> {
        self.columns.iter().chain(&self.included).copied().collect()
    }
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    pub id: ColumnId,
    pub name: String,
    pub sql_type: SqlType,
    pub not_null: bool,
    /// SQL text of the DEFAULT.
    pub default: Option<String>,
    /// Text form of the value that shards written before the column existed answer; `None` is NULL.
    pub missing: Option<String>,
    pub comment: Option<String>,
    /// GENERATED … AS IDENTITY; there is no DEFAULT then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// The sequences that the DEFAULT takes numbers from: they cannot be dropped while it does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sequences: Vec<Oid>,
}

/// Where the values of an identity column come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// GENERATED ALWAYS; else BY DEFAULT.
    pub always: bool,
    pub sequence: Oid,
}

/// A constraint of a table; NOT NULL lies on the column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constraint {
    pub oid: Oid,
    pub name: String,
    pub kind: ConstraintKind,
    /// Whether rows are held to it; a CHECK always is.
    #[serde(default)]
    pub enforced: bool,
    #[serde(default)]
    pub comment: Option<String>,
}

/// What a constraint says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConstraintKind {
    /// Informs estimates, enforced or not.
    PrimaryKey { columns: Vec<ColumnId> },
    /// Informs estimates, enforced or not.
    Unique { columns: Vec<ColumnId> },
    /// Informs estimates, enforced or not.
    ForeignKey {
        columns: Vec<ColumnId>,
        /// The table referred to.
        references: Oid,
        /// Its columns, one for each of `columns`.
        referenced: Vec<ColumnId>,
        on_update: ReferentialAction,
        on_delete: ReferentialAction,
        /// Those of `columns` that ON DELETE SET NULL or SET DEFAULT sets; none named: all of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        delete_columns: Vec<ColumnId>,
    },
    /// Enforced: no row for which the expression is false.
    Check {
        /// SQL text.
        expression: String,
        /// The columns that the expression uses.
        columns: Vec<ColumnId>,
    },
}

impl ConstraintKind {
    /// Whether it is a primary or unique key.
    #[must_use]
    pub fn is_key(&self) -> bool {
        matches!(self, Self::PrimaryKey { .. } | Self::Unique { .. })
    }

    /// The columns of the constrained table that the constraint is about.
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

/// What happens to referring rows when the row referred to changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum ReferentialAction {
    #[default]
    NoAction,
    Restrict,
    Cascade,
    SetNull,
    SetDefault,
}

/// Which worker of a cluster has which rows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Distribution {
    /// Any worker.
    #[default]
    Random,
    /// Every worker, where that spares moving rows of others.
    Replicate,
    /// The worker that owns the bucket of these columns' values, so that equal values of all tables are on one.
    On(Vec<ColumnId>),
}

/// How the rows within each shard are ordered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum TableOrder {
    /// As they came: each shard a contiguous range of its load's input.
    #[default]
    None,
    /// By the columns, one after the other.
    Sort(Vec<SortColumn>),
    /// By all columns interleaved.
    Cluster(Vec<ColumnId>),
}

/// One column of a SORT key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SortColumn {
    pub column: ColumnId,
    pub descending: bool,
    pub nulls_first: bool,
}

impl Table {
    /// The most columns a table can have, as in PostgreSQL.
    pub const COLUMN_COUNT_MAX: usize = 1_600;

    /// The column with this id.
    #[must_use]
    pub fn column(&self, id: ColumnId) -> Option<&Column> {
        self.columns.iter().find(|column| column.id == id)
    }

    /// The name of an index or a key of the table; empty where it has none of this id.
    #[must_use]
    pub fn index_name(&self, index: Oid) -> &str {
        let constraint = self.constraints.iter().find(|constraint| constraint.oid == index);
        let named = self.indexes.iter().find(|named| named.oid == index).map(|named| named.name.as_str());
        constraint.map(|constraint| constraint.name.as_str()).or(named).unwrap_or("")
    }

    /// The column with this name and its position.
    #[must_use]
    pub fn column_by_name(&self, name: &str) -> Option<(usize, &Column)> {
        self.columns.iter().enumerate().find(|(_, column)| column.name == name)
    }

    /// The columns of the declared primary key.
    #[must_use]
    pub fn primary_key(&self) -> Option<&[ColumnId]> {
        self.constraints.iter().find_map(|constraint| match &constraint.kind {
            ConstraintKind::PrimaryKey { columns } => Some(columns.as_slice()),
            _ => None,
        })
    }

    /// The columns that [`TableOrder`] names, in its order.
    #[must_use]
    pub fn order_columns(&self) -> Vec<ColumnId> {
        match &self.order {
            TableOrder::None => Vec::new(),
            TableOrder::Sort(columns) => columns.iter().map(|sort| sort.column).collect(),
            TableOrder::Cluster(columns) => columns.clone(),
        }
    }
}
