//! Failures of the storage, as clients are told of them.
//!
//! Knows no statement: what a failure means does not depend on who reads or writes.

use std::error::Error;
use std::io;

use types::{Condition, SqlError, with_causes};

mod transaction;

pub use transaction::from_transaction;

/// The error of a shard. What is wrong with the file is `XX001`, what is wrong with the storage `58030`.
#[must_use]
pub fn from_shards(error: shards::Error) -> SqlError {
    match error {
        shards::Error::Objects(error) => from_objects(error),
        shards::Error::Damaged { .. } | shards::Error::NotReadable { .. } | shards::Error::Decode { .. } => {
            SqlError::new(Condition::DataCorrupted, with_causes(&error))
        }
        shards::Error::NoColumn { ref column, .. } => {
            SqlError::new(Condition::UndefinedColumn, error.to_string()).with_column(column)
        }
        shards::Error::ColumnType { ref column, .. } => {
            SqlError::new(Condition::DatatypeMismatch, error.to_string()).with_column(column)
        }
        shards::Error::OutOfRange { ref column, .. } => {
            SqlError::new(Condition::NumericValueOutOfRange, error.to_string()).with_column(column)
        }
        shards::Error::Null { ref column, .. } => {
            SqlError::new(Condition::NotNullViolation, error.to_string()).with_column(column)
        }
        shards::Error::Changed { .. } => changed(&error),
        shards::Error::File { ref source, .. } => {
            let condition = match source.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Condition::UndefinedFile,
                io::ErrorKind::PermissionDenied => Condition::InsufficientPrivilege,
                _ => Condition::IoError,
            };
            SqlError::new(condition, with_causes(&error))
        }
        other => SqlError::internal(with_causes(&other)),
    }
}

/// `55000`: a file of others was replaced while it was read.
fn changed(error: &dyn Error) -> SqlError {
    SqlError::new(Condition::ObjectNotInPrerequisiteState, error.to_string())
        .with_hint("Run the query again: it reads the files that are there then.")
}

/// The error of the storage.
#[must_use]
pub fn from_objects(error: objects::Error) -> SqlError {
    if matches!(error, objects::Error::Changed { .. }) {
        return changed(&error);
    }
    let condition = match &error {
        full if full.is_disk_full() => Condition::DiskFull,
        objects::Error::NotFound { .. } => Condition::UndefinedFile,
        objects::Error::AccessDenied { .. } => Condition::InsufficientPrivilege,
        objects::Error::InvalidUrl { .. } | objects::Error::InvalidName { .. } => Condition::InvalidParameterValue,
        objects::Error::Truncated { .. } | objects::Error::RangeBeyondEnd { .. } => Condition::DataCorrupted,
        _ => Condition::IoError,
    };
    SqlError::new(condition, with_causes(&error))
}

/// The error of a transaction's step while rows are written.
#[must_use]
pub fn from_txn(error: txn::Error) -> SqlError {
    let condition = match &error {
        txn::Error::Conflict(_) => Condition::SerializationFailure,
        txn::Error::Catalog(catalog::Error::DuplicateName { .. }) => Condition::DuplicateTable,
        txn::Error::Poisoned => Condition::CannotConnectNow,
        txn::Error::DiskFull { .. } => Condition::DiskFull,
        txn::Error::RowTooBig { .. } | txn::Error::CommitTooBig { .. } | txn::Error::DefinitionTooBig(_) => {
            Condition::ProgramLimitExceeded
        }
        txn::Error::Store(source) if source.is_damage() => Condition::DataCorrupted,
        txn::Error::Catalog(catalog::Error::Store(source)) if source.is_damage() => Condition::DataCorrupted,
        txn::Error::InDoubt(_) | txn::Error::Store(_) => Condition::IoError,
        txn::Error::Damaged { .. } => Condition::DataCorrupted,
        _ => Condition::InternalError,
    };
    let hint = match &error {
        txn::Error::RowTooBig { .. } => "A table whose storage is column takes larger rows.",
        txn::Error::CommitTooBig { .. } => "Change fewer rows at a time, and commit in between.",
        _ => return SqlError::new(condition, with_causes(&error)),
    };
    SqlError::new(condition, with_causes(&error)).with_hint(hint)
}

/// The error of stored rows: they are damaged, or a value is larger than rows can be.
#[must_use]
pub fn from_rowstore(error: rowstore::Error) -> SqlError {
    let condition = match &error {
        rowstore::Error::Damaged(_) | rowstore::Error::UnknownFormat(_) => Condition::DataCorrupted,
        rowstore::Error::TooLarge { .. } | rowstore::Error::ArrayOverflow(_) => Condition::ProgramLimitExceeded,
        _ => Condition::InternalError,
    };
    SqlError::new(condition, error.to_string())
}

/// The error of what the catalog says about a table's rows.
#[must_use]
pub fn from_catalog(error: catalog::Error) -> SqlError {
    from_txn(txn::Error::Catalog(error))
}
