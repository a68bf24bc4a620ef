//! Checks of constraints that involve more than one row: unique keys and foreign keys.

use std::sync::Arc;

use catalog::Table;
use rowstore::Tuple;
use scan::KeyLookup;
use txn::Transaction;
use types::{ColumnId, RowId, SqlResult};

use super::{AttemptOutcome, LockWaits, foreign_keys, unique_keys};

/// Row to be written to a table, or a row that is replaced or deleted, with its keys.
#[derive(Debug, Clone)]
pub struct CheckedRow {
    /// Id of the row that it replaces.
    pub id: Option<RowId>,
    /// Values of the row.
    pub tuple: Tuple,
}

/// Checks the new rows against unique keys and foreign keys. `set` lists the columns in which they may differ from the
/// rows that they replace (`None`: all columns). References to replaced rows are checked after the write.
///
/// # Errors
/// `23505`, `23503`; errors of locks: `40P01`, `55P03`, `57014`.
pub async fn check_constraints(
    lookup: &KeyLookup,
    table: &Arc<Table>,
    new: &[CheckedRow],
    old: &[CheckedRow],
    set: Option<&[ColumnId]>,
    transaction: &Transaction,
    waits: &LockWaits,
) -> SqlResult<AttemptOutcome<()>> {
    unique_keys::check_unique(lookup, table, new, old, set, transaction, waits).await?;
    foreign_keys::check_references(lookup, table, new, set, transaction, waits).await?;
    Ok(AttemptOutcome::Done(()))
}

/// Returns true if the value of one of these columns may differ; otherwise the key needs no check.
pub(super) fn may_differ(columns: &[ColumnId], set: Option<&[ColumnId]>) -> bool {
    set.is_none_or(|set| columns.iter().any(|column| set.contains(column)))
}
