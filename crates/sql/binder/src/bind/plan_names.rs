//! Names that relations and columns have in plans of changes and that no user sees: each has a byte that no written name has, or a schema that has.

/// Relations of this schema, which no user's can be in, are plans that the statement has made.
pub(crate) const GIVEN: &str = "given\u{1}";
/// Tables of this database have the columns that say which row each row is.
pub(crate) const WITH_PLACES: &str = "places\u{1}";
/// The relations of [`GIVEN`]: rows that were made, and those that an INSERT met.
pub(crate) const MADE: &str = "made";
pub(crate) const MET: &str = "met";

/// A column that is NULL in rows without one of the target, and the relation that has it.
pub(crate) const ROW: &str = "row\u{1}";
/// A column that is NULL in rows without one of MERGE's source, and its relation.
pub(crate) const PRESENT: &str = "present\u{1}";

/// The relation that a query with values for several columns is within its statement.
pub(crate) const ASSIGNED: &str = "assigned\u{1}";

/// Names of columns of the rows that a change reads: after `__row_id` and `__place` the target's, the other relations', the values.
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

    /// The column of `merge_action`, of rows that MERGE made.
    pub(crate) const ACTION: &str = "action\u{1}";

    /// A column of the row that RETURNING gives where it does not say whether old or new.
    pub(crate) fn kept(at: usize) -> String {
        format!("kept\u{1}{at}")
    }
}
