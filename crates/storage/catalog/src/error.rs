//! Errors of the catalog: refused changes and damaged records.

use std::fmt;

use types::{ColumnId, Oid};

use crate::Dependant;

/// Result of a catalog operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Kind of a catalog object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    Database,
    Schema,
    Table,
    View,
    Sequence,
    /// Either a table or a view.
    Relation,
    Role,
    /// Sample of a table's rows.
    Sample,
    /// Shard of a table; an id beside this kind is the table's.
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

/// Refused change, or unreadable record.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name in use; `kind` is the kind of the object that has it (a view may have a table's name).
    #[error("{kind} \"{name}\" already exists")]
    DuplicateName { kind: ObjectKind, name: String },
    #[error("column \"{column}\" of table \"{table}\" occurs more than once")]
    DuplicateColumn { table: String, column: String },
    #[error("constraint \"{constraint}\" for table \"{table}\" already exists")]
    DuplicateConstraint { table: String, constraint: String },
    /// An object that does not exist, but is named or referenced by the change.
    #[error("{kind} with id {oid} does not exist")]
    Missing { kind: ObjectKind, oid: Oid },
    #[error("relation \"{relation}\" has no column with id {column}")]
    MissingColumn { relation: String, column: ColumnId },
    /// Objects that depend on the one to be dropped. [`crate::CatalogState::drop_plan`] returns the changes that drop
    /// them too.
    #[error("cannot drop {kind} \"{name}\" because other objects depend on it")]
    Dependants { kind: ObjectKind, name: String, dependants: Vec<Dependant> },
    /// Objects that depend on the column or its type.
    #[error("cannot drop or retype column \"{column}\" of table \"{table}\" because other objects depend on it")]
    ColumnDependants { table: String, column: String, dependants: Vec<Dependant> },
    #[error("column \"{column}\" of table \"{table}\" is in the primary key and must be NOT NULL")]
    NullablePrimaryKey { table: String, column: String },
    #[error("multiple primary keys for table \"{table}\" are not allowed")]
    SecondPrimaryKey { table: String },
    /// A foreign key whose columns and referenced columns differ in number, or are none.
    #[error("foreign key \"{constraint}\" of table \"{table}\" has {columns} columns and refers to {referenced}")]
    UnevenForeignKey { table: String, constraint: String, columns: usize, referenced: usize },
    /// A column id that `next_column` has not assigned. It assigns ids in ascending order and never reuses one.
    #[error("column \"{column}\" of table \"{table}\" has id {id}, which is not below the next id {next}")]
    ColumnIdOutOfRange { table: String, column: String, id: ColumnId, next: i32 },
    #[error("tables can have at most {max} columns, \"{table}\" has {count}")]
    TooManyColumns { table: String, count: usize, max: usize },
    /// Rows that are no longer where a flush or compaction has read them.
    #[error("rows of the table with id {table} were moved by a concurrent flush or compaction")]
    RowsMoved { table: Oid },
    /// A sequence whose start values do not lie between its limits, or whose increment is zero.
    #[error("sequence \"{sequence}\" has invalid limits, increment, start or owner")]
    ImpossibleSequence { sequence: String },
    /// A sequence that an identity column needs.
    #[error("sequence \"{sequence}\" is the identity of column \"{column}\" of table \"{table}\"")]
    IdentitySequence { sequence: String, table: String, column: String },
    /// A view that would depend on itself.
    #[error("view \"{view}\" would depend on itself")]
    ViewCycle { view: String },
    #[error("cannot drop {kind} \"{name}\" because it is required by the database system")]
    RequiredObject { kind: ObjectKind, name: String },
    #[error("role \"{role}\" is the last superuser that can log in")]
    LastSuperuser { role: String },
    /// A stored record with invalid content.
    #[error("the stored {kind} with id {oid} is damaged: {reason}")]
    Damaged { kind: ObjectKind, oid: Oid, reason: String },
    /// A stored record in a later format.
    #[error("the stored {kind} with id {oid} has format {found}, and this version reads up to format {supported}")]
    NewerFormat { kind: ObjectKind, oid: Oid, found: u8, supported: u8 },
    /// A key in the catalog's space of the store that no version has written.
    #[error("the store has an unknown catalog key {key:02x?}")]
    UnknownKey { key: Vec<u8> },
    #[error("could not read the stored catalog")]
    Store(#[from] kv::Error),
}
