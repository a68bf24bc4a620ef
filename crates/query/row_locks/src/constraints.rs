//! The constraints that more than one row decides: keys and references.

use std::sync::Arc;

use catalog::Table;
use rowstore::Tuple;
use scan::KeyLookup;
use txn::Transaction;
use types::{ColumnId, RowId, SqlResult};

use super::{Attempt, Waits, foreign, unique};

/// A row that is put into a table, or the keys of one that was there.
#[derive(Debug, Clone)]
pub struct NewRow {
    /// Of the row that it replaces.
    pub id: Option<RowId>,
    /// Its values.
    pub tuple: Tuple,
}

/// Whether the rows may be put into the table in the place of those they replace, of which they differ in the columns `set` at most
/// (`None`: in all). What refers to these is asked once they are written.
///
/// # Errors
/// `23505`, `23503`.
pub async fn check(
    lookup: &KeyLookup,
    table: &Arc<Table>,
    new: &[NewRow],
    old: &[NewRow],
    set: Option<&[ColumnId]>,
    transaction: &Transaction,
    waits: &Waits,
) -> SqlResult<Attempt<()>> {
    unique::check(lookup, table, new, old, set, transaction, waits).await?;
    foreign::check_references(lookup, table, new, set, transaction, waits).await?;
    Ok(Attempt::Done(()))
}

/// Whether the values of one of these columns may differ: what holds of a key stays so where none does.
pub(super) fn may_differ(columns: &[ColumnId], set: Option<&[ColumnId]>) -> bool {
    set.is_none_or(|set| columns.iter().any(|column| set.contains(column)))
}
