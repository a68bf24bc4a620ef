//! Names of the columns that a plan adds to those of a table whose rows a statement changes.

use catalog::Table;
use plan::unique_name;

/// Names for the columns that the plan of a statement adds to its target table's: no column of the table has one.
///
/// The rows that the statement reads are the row's identity ([`plan::ROW_ID`] and [`plan::ROW_POSITION`]), then the old
/// values of the target, the columns of other relations, and the values to compute.
#[derive(Debug, Clone)]
pub(crate) struct ModificationColumns {
    /// Prefix that no column of the table begins with.
    prefix: String,
}

impl ModificationColumns {
    /// Chooses the names for a table.
    pub(crate) fn for_table(table: &Table) -> Self {
        let is_taken = |prefix: &str| table.columns.iter().any(|column| column.name.starts_with(prefix));
        Self { prefix: unique_name("__change", is_taken) }
    }

    /// Returns the name of the old value of the column at this position.
    pub(crate) fn old(&self, position: usize) -> String {
        format!("{}_old_{position}", self.prefix)
    }

    /// Returns the name of a column of another relation than the target.
    pub(crate) fn other(&self, number: usize) -> String {
        format!("{}_other_{number}", self.prefix)
    }

    /// Returns the name of a value that the statement computes.
    pub(crate) fn value(&self, number: usize) -> String {
        format!("{}_value_{number}", self.prefix)
    }

    /// Returns the name of a column of the row that MERGE's RETURNING refers to without `old` or `new`.
    pub(crate) fn returning_row(&self, position: usize) -> String {
        format!("{}_returning_row_{position}", self.prefix)
    }

    /// Returns the name of an output of RETURNING.
    pub(crate) fn returning(&self, number: usize) -> String {
        format!("{}_returning_{number}", self.prefix)
    }

    /// Returns the name of the column with the action for a row.
    pub(crate) fn action(&self) -> String {
        format!("{}_action", self.prefix)
    }

    /// Returns the name of MERGE's column with the action for a row as a 32-bit integer.
    pub(crate) fn merge_action_number(&self) -> String {
        format!("{}_action_number", self.prefix)
    }

    /// Returns the name of MERGE's column with the result of `merge_action()`.
    pub(crate) fn merge_action(&self) -> String {
        format!("{}_action_word", self.prefix)
    }
}
