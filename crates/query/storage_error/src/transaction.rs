//! Failures of transactions, as clients are told of them.

use types::{Condition, SqlError};

/// The error of a transaction's step. What only a concurrent transaction can have caused is 40001: run it again.
#[must_use]
pub fn from_transaction(error: txn::Error) -> SqlError {
    match error {
        txn::Error::Conflict(conflict) => {
            let message = match conflict.reason {
                txn::ConflictReason::ReadChanged => {
                    "could not serialize access due to read/write dependencies among transactions"
                }
                _ => "could not serialize access due to concurrent update",
            };
            SqlError::new(Condition::SerializationFailure, message)
                .with_detail(conflict.to_string())
                .with_hint("The transaction might succeed if retried.")
        }
        txn::Error::Catalog(error) => from_catalog(error),
        txn::Error::UnknownSavepoint { name } => {
            SqlError::new(Condition::InvalidSavepoint, format!("savepoint \"{name}\" does not exist"))
        }
        txn::Error::InDoubt(source) => SqlError::new(
            Condition::IoError,
            "failed to make the commit durable; whether it took effect is known after a restart",
        )
        .with_detail(source.to_string()),
        txn::Error::Poisoned => SqlError::new(Condition::CannotConnectNow, error.to_string())
            .with_hint("Restart the server; it recovers what was committed."),
        txn::Error::DiskFull { .. } => SqlError::new(Condition::DiskFull, error.to_string())
            .with_hint("Free space on the disk of the data folder."),
        txn::Error::RowTooBig { .. } => SqlError::new(Condition::ProgramLimitExceeded, error.to_string()),
        txn::Error::CommitTooBig { .. } => SqlError::new(Condition::ProgramLimitExceeded, error.to_string())
            .with_hint("Change fewer rows at a time, and commit in between."),
        txn::Error::DefinitionTooBig(ref source) => {
            SqlError::new(Condition::ProgramLimitExceeded, error.to_string()).with_detail(source.to_string())
        }
        txn::Error::Damaged { .. } => SqlError::new(Condition::DataCorrupted, error.to_string()),
        txn::Error::Store(source) => {
            let condition = if source.is_damage() { Condition::DataCorrupted } else { Condition::IoError };
            SqlError::new(condition, "failed to read the storage of the catalog and of unflushed rows")
                .with_detail(source.to_string())
        }
        txn::Error::TransactionEnded { .. }
        | txn::Error::StartCommitter(_)
        | txn::Error::OpenHistory(_)
        | txn::Error::ListObjects(_)
        | txn::Error::ClaimNotVerified(_)
        | txn::Error::ArchiveLog(_) => SqlError::internal(error.to_string()),
    }
}

/// The planner checks names and dependants before it makes a change, so what is left was caused by a race, or is a bug.
fn from_catalog(error: catalog::Error) -> SqlError {
    let condition = match &error {
        catalog::Error::DuplicateName { kind: catalog::ObjectKind::Schema, .. } => Condition::DuplicateSchema,
        catalog::Error::DuplicateName { kind: catalog::ObjectKind::Role, .. } => Condition::DuplicateObject,
        catalog::Error::DuplicateName { .. } => Condition::DuplicateTable,
        catalog::Error::DuplicateColumn { .. } => Condition::DuplicateColumn,
        catalog::Error::DuplicateConstraint { .. } => Condition::DuplicateObject,
        catalog::Error::Dependants { .. }
        | catalog::Error::ColumnDependants { .. }
        | catalog::Error::RequiredObject { .. } => Condition::DependentObjectsStillExist,
        catalog::Error::SecondPrimaryKey { .. }
        | catalog::Error::NullablePrimaryKey { .. }
        | catalog::Error::TooManyColumns { .. } => Condition::InvalidTableDefinition,
        catalog::Error::UnevenForeignKey { .. } => Condition::InvalidForeignKey,
        catalog::Error::ViewCycle { .. } => Condition::InvalidObjectDefinition,
        catalog::Error::ImpossibleSequence { .. } => Condition::InvalidParameterValue,
        catalog::Error::IdentitySequence { .. } => Condition::DependentObjectsStillExist,
        catalog::Error::LastSuperuser { .. } => Condition::ObjectInUse,
        catalog::Error::Damaged { .. } | catalog::Error::NewerFormat { .. } | catalog::Error::UnknownKey { .. } => {
            Condition::DataCorrupted
        }
        catalog::Error::RowsMoved { .. } => Condition::SerializationFailure,
        catalog::Error::Store(source) if source.is_damage() => Condition::DataCorrupted,
        catalog::Error::Store(_) => Condition::IoError,
        catalog::Error::Missing { .. }
        | catalog::Error::MissingColumn { .. }
        | catalog::Error::ColumnIdOutOfRange { .. } => Condition::InternalError,
    };
    SqlError::new(condition, error.to_string())
}
