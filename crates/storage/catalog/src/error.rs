//! Why a change is refused, and what can be wrong with stored records.

use std::fmt;

use types::{ColumnId, Oid};

use crate::Dependant;

/// Result of a catalog operation.
pub type Result<T> = std::result::Result<T, Error>;

/// What kind of thing a name or id stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    Database,
    Schema,
    Table,
    View,
    Sequence,
    /// A table or a view, where either would do.
    Relation,
    Role,
    /// A table's sample of rows.
    Sample,
    /// One shard of a table; the id beside it is the table's.
    Shard,
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Database => "database",
            Self::Schema => "schema",
            Self::Table => "table",
            Self::View => "view",
            Self::Sequence => "sequence",
            Self::Relation => "relation",
            Self::Role => "role",
            Self::Sample => "sample",
            Self::Shard => "shard",
        })
    }
}

/// A change that would break an invariant, or a record that does not read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name is taken; `kind` is what has it (a table's name can be taken by a view).
    #[error("{kind} \"{name}\" already exists")]
    DuplicateName { kind: ObjectKind, name: String },
    #[error("column \"{column}\" of table \"{table}\" occurs more than once")]
    DuplicateColumn { table: String, column: String },
    #[error("constraint \"{constraint}\" for table \"{table}\" already exists")]
    DuplicateConstraint { table: String, constraint: String },
    /// What the change names, or what it refers to, is not there.
    #[error("{kind} with id {oid} does not exist")]
    Missing { kind: ObjectKind, oid: Oid },
    #[error("relation \"{relation}\" has no column with id {column}")]
    MissingColumn { relation: String, column: ColumnId },
    /// Others need what would go away. [`crate::CatalogState::drop_plan`] makes the changes that take them along.
    #[error("cannot drop {kind} \"{name}\" because other objects depend on it")]
    Dependants { kind: ObjectKind, name: String, dependants: Vec<Dependant> },
    /// Others need the column as it is.
    #[error("cannot drop or retype column \"{column}\" of table \"{table}\" because other objects depend on it")]
    ColumnDependants { table: String, column: String, dependants: Vec<Dependant> },
    #[error("column \"{column}\" of table \"{table}\" is in the primary key and must be NOT NULL")]
    NullablePrimaryKey { table: String, column: String },
    #[error("multiple primary keys for table \"{table}\" are not allowed")]
    SecondPrimaryKey { table: String },
    /// A foreign key must name as many columns as it refers to, at least one.
    #[error("foreign key \"{constraint}\" of table \"{table}\" has {columns} columns and refers to {referenced}")]
    UnevenForeignKey { table: String, constraint: String, columns: usize, referenced: usize },
    /// Column ids are given by `next_column`, in order, once.
    #[error("column \"{column}\" of table \"{table}\" has id {id}, which is not below the next id {next}")]
    ColumnIdOutOfRange { table: String, column: String, id: ColumnId, next: i32 },
    #[error("tables can have at most {max} columns, \"{table}\" has {count}")]
    TooManyColumns { table: String, count: usize, max: usize },
    /// Rows that were to be put elsewhere are no longer where they were.
    #[error("the rows of the table with id {table} have moved")]
    Moved { table: Oid },
    /// A sequence must lie between its limits, move, and be in its table's schema.
    #[error("sequence \"{sequence}\" has impossible limits, increment, start or owner")]
    ImpossibleSequence { sequence: String },
    /// An identity column needs the sequence.
    #[error("sequence \"{sequence}\" is the identity of column \"{column}\" of table \"{table}\"")]
    IdentitySequence { sequence: String, table: String, column: String },
    /// A view would need itself.
    #[error("view \"{view}\" would depend on itself")]
    ViewCycle { view: String },
    #[error("cannot drop {kind} \"{name}\" because it is required by the database system")]
    Required { kind: ObjectKind, name: String },
    #[error("role \"{role}\" is the last superuser that can log in")]
    LastSuperuser { role: String },
    /// A stored record is not what was written.
    #[error("the stored {kind} with id {oid} is damaged: {reason}")]
    Damaged { kind: ObjectKind, oid: Oid, reason: String },
    /// A stored record is of a later format.
    #[error("the stored {kind} with id {oid} has format {found}, and this version reads up to format {supported}")]
    Format { kind: ObjectKind, oid: Oid, found: u8, supported: u8 },
    /// A key in the catalog's part of the store that no version wrote.
    #[error("the store has an unknown catalog key {key:02x?}")]
    UnknownKey { key: Vec<u8> },
    #[error("failed to read the stored catalog")]
    Store(#[from] kv::Error),
}
