//! Internal names of relations and columns in plans of statements that change rows: each contains a byte that no
//! written name has, or is in a schema that does.

/// Schema of relations that are plans built by the statement.
pub(crate) const PROVIDED_SCHEMA: &str = "given\u{1}";
/// Catalog name of tables that also have the columns identifying each row.
pub(crate) const ROW_IDENTITY_CATALOG: &str = "places\u{1}";
/// Relations of [`PROVIDED_SCHEMA`]: new rows, and conflicting rows of ON CONFLICT.
pub(crate) const NEW_ROWS: &str = "made";
pub(crate) const CONFLICTING_ROWS: &str = "met";

/// Column that is NULL in joined rows without a target row, and its relation.
pub(crate) const TARGET_PRESENT: &str = "row\u{1}";
/// Column that is NULL in joined rows without a row of MERGE's source, and its relation.
pub(crate) const SOURCE_PRESENT: &str = "present\u{1}";

/// Alias of a subquery that assigns several columns.
pub(crate) const ASSIGNMENT_QUERY: &str = "assigned\u{1}";

/// Column names of the rows that a statement reads to change them: after `__row_id` and `__place` those of the
/// target, then the other relations, then the values.
pub(crate) mod reading {
    pub(crate) fn old(at: usize) -> String {
        format!("old\u{1}{at}")
    }

    pub(crate) fn other(at: usize) -> String {
        format!("other\u{1}{at}")
    }

    pub(crate) fn value(at: usize) -> String {
        format!("value\u{1}{at}")
    }

    /// Column of `merge_action()` in the rows made by MERGE.
    pub(crate) const ACTION: &str = "action\u{1}";

    /// Returns the name of a column of the row that RETURNING refers to without `old` or `new`.
    pub(crate) fn returning_row(at: usize) -> String {
        format!("kept\u{1}{at}")
    }
}
