//! Values for identity columns: stored, replaced or rejected, according to GENERATED and OVERRIDING.

use catalog::{Column, Table};
use syntax::statement::Overriding;
use types::{Condition, SqlError, SqlResult};

/// Position of no column: a value for it is ignored.
const IGNORED_POSITION: usize = usize::MAX;

/// Returns whether a value for the column is ignored in favour of the column's generated one. A value is not the word
/// DEFAULT.
///
/// # Errors
/// SQLSTATE 428C9 if no value is allowed.
pub(super) fn is_ignored(column: &Column, overriding: Option<Overriding>) -> SqlResult<bool> {
    match (column.identity, overriding) {
        (None, _) | (Some(_), Some(Overriding::System)) => Ok(false),
        (Some(_), Some(Overriding::User)) => Ok(true),
        (Some(identity), None) if identity.always => Err(always_generated_error(&column.name)),
        (Some(_), None) => Ok(false),
    }
}

/// Returns the positions that the columns of a query fill, with ignored ones marked.
///
/// # Errors
/// Those of [`is_ignored`].
pub(super) fn filled_positions(
    table: &Table,
    positions: Vec<usize>,
    overriding: Option<Overriding>,
) -> SqlResult<Vec<usize>> {
    let kept = |position: usize| {
        let is_ignored = is_ignored(&table.columns[position], overriding)?;
        Ok(if is_ignored { IGNORED_POSITION } else { position })
    };
    positions.into_iter().map(kept).collect()
}

/// Rejects an UPDATE of a GENERATED ALWAYS column.
///
/// # Errors
/// SQLSTATE 428C9.
pub(super) fn refuse_update(column: &Column) -> SqlResult<()> {
    if column.identity.is_none_or(|identity| !identity.always) {
        return Ok(());
    }
    let name = &column.name;
    let message = format!("column \"{name}\" can only be updated to DEFAULT");
    Err(SqlError::new(Condition::GeneratedAlways, message)
        .with_detail(format!("Column \"{name}\" is an identity column defined as GENERATED ALWAYS.")))
}

fn always_generated_error(column: &str) -> SqlError {
    let message = format!("cannot insert a non-DEFAULT value into column \"{column}\"");
    SqlError::new(Condition::GeneratedAlways, message)
        .with_detail(format!("Column \"{column}\" is an identity column defined as GENERATED ALWAYS."))
        .with_hint("Use OVERRIDING SYSTEM VALUE to override.")
}
