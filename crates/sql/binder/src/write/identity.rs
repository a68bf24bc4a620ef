//! Values for identity columns: stored, replaced or refused, as GENERATED and OVERRIDING say.

use catalog::{Column, Table};
use syntax::statement::Overriding;
use types::{Condition, SqlError, SqlResult};

/// No position of any table: what fills it is ignored.
const IGNORED: usize = usize::MAX;

/// Whether a value given for the column gives way to the column's own. A value is not the word DEFAULT.
///
/// # Errors
/// `428C9` for one that may not be given.
pub(super) fn is_ignored(column: &Column, overriding: Option<Overriding>) -> SqlResult<bool> {
    match (column.identity, overriding) {
        (None, _) | (Some(_), Some(Overriding::System)) => Ok(false),
        (Some(_), Some(Overriding::User)) => Ok(true),
        (Some(identity), None) if identity.always => Err(refused(&column.name)),
        (Some(_), None) => Ok(false),
    }
}

/// The positions that the columns of a query fill, without those that are ignored.
///
/// # Errors
/// As [`is_ignored`].
pub(super) fn filled(table: &Table, positions: Vec<usize>, overriding: Option<Overriding>) -> SqlResult<Vec<usize>> {
    let kept = |position: usize| {
        let is_ignored = is_ignored(&table.columns[position], overriding)?;
        Ok(if is_ignored { IGNORED } else { position })
    };
    positions.into_iter().map(kept).collect()
}

/// `428C9` for a column that has its own values always.
pub(super) fn refuse_update(column: &Column) -> SqlResult<()> {
    if column.identity.is_none_or(|identity| !identity.always) {
        return Ok(());
    }
    let name = &column.name;
    let message = format!("column \"{name}\" can only be updated to DEFAULT");
    Err(SqlError::new(Condition::GeneratedAlways, message)
        .with_detail(format!("Column \"{name}\" is an identity column defined as GENERATED ALWAYS.")))
}

fn refused(column: &str) -> SqlError {
    let message = format!("cannot insert a non-DEFAULT value into column \"{column}\"");
    SqlError::new(Condition::GeneratedAlways, message)
        .with_detail(format!("Column \"{column}\" is an identity column defined as GENERATED ALWAYS."))
        .with_hint("Use OVERRIDING SYSTEM VALUE to override.")
}
