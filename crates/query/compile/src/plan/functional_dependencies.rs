//! Functional dependencies between columns: finds group keys that need not be hashed.

use std::collections::HashSet;

/// A column of an input: number of the input, position of the column.
pub(super) type SourceColumn = (usize, usize);

/// Equalities between columns of inputs.
#[derive(Debug, Default)]
pub(super) struct Dependencies {
    /// Pairs of columns that inner joins make equal.
    equal: Vec<(SourceColumn, SourceColumn)>,
}

impl Dependencies {
    /// Records that two columns are equal.
    pub(super) fn add_equal(&mut self, one: SourceColumn, other: SourceColumn) {
        self.equal.push((one, other));
    }

    /// Removes the facts about inputs from this number on.
    pub(super) fn truncate(&mut self, inputs: usize) {
        self.equal.retain(|(one, other)| one.0.max(other.0) < inputs);
    }

    /// Returns which keys functionally depend on the other keys. `is_unique` returns whether each value of a column
    /// occurs in one row only. Keys for which `is_costly` holds are dropped first.
    pub(super) fn redundant(
        &self,
        keys: &[Option<SourceColumn>],
        is_unique: impl Fn(SourceColumn) -> bool,
        is_costly: impl Fn(usize) -> bool,
    ) -> Vec<bool> {
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_by_key(|key| !is_costly(*key));
        let mut redundant = vec![false; keys.len()];
        for key in order {
            let Some(column) = keys[key] else { continue };
            let others = (0..keys.len()).filter(|other| *other != key && !redundant[*other]);
            let known: HashSet<SourceColumn> = others.filter_map(|other| keys[other]).collect();
            redundant[key] = self.determines(known, column, &is_unique);
        }
        redundant
    }

    /// Returns whether the `known` columns determine `wanted`: a unique column determines all columns of its input, and
    /// equal columns determine each other.
    fn determines(
        &self,
        mut known: HashSet<SourceColumn>,
        wanted: SourceColumn,
        is_unique: &impl Fn(SourceColumn) -> bool,
    ) -> bool {
        loop {
            let rows: HashSet<usize> =
                known.iter().copied().filter(|column| is_unique(*column)).map(|(input, _)| input).collect();
            let is_known = |known: &HashSet<SourceColumn>, column| known.contains(column) || rows.contains(&column.0);
            if is_known(&known, &wanted) {
                return true;
            }
            let before = known.len();
            for (one, other) in &self.equal {
                if is_known(&known, one) {
                    known.insert(*other);
                }
                if is_known(&known, other) {
                    known.insert(*one);
                }
            }
            if before == known.len() {
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IS_UNIQUE: fn(SourceColumn) -> bool = |column| matches!(column, (0 | 1, 0));

    /// Customers, orders, lines. Column 0 is the key of customers and orders; orders reference customers by column 1,
    /// lines reference orders by column 0.
    fn sold() -> Dependencies {
        let mut known = Dependencies::default();
        known.add_equal((1, 1), (0, 0));
        known.add_equal((2, 0), (1, 0));
        known
    }

    #[test]
    fn a_key_that_a_unique_one_determines_is_redundant() {
        let redundant = |keys: &[SourceColumn]| {
            let keys: Vec<_> = keys.iter().copied().map(Some).collect();
            let is_name = |key: usize| keys[key].is_some_and(|(_, column)| 5 < column);
            sold().redundant(&keys, IS_UNIQUE, is_name)
        };
        assert_eq!(redundant(&[(0, 0), (0, 9), (0, 3)]), [false, true, true], "columns of a customer");
        assert_eq!(redundant(&[(0, 9), (0, 0), (1, 0), (1, 4)]), [true, true, false, true], "of the order's customer");
        assert_eq!(redundant(&[(2, 0), (1, 4), (0, 9)]), [false, true, true], "by an order's line");
        assert_eq!(redundant(&[(0, 9), (0, 3)]), [false, false], "names are not unique");
        assert_eq!(redundant(&[(1, 1), (1, 4)]), [false, false], "a customer has several orders");
        assert_eq!(redundant(&[(0, 0), (1, 1)]), [true, false], "one of two that are equal stays");
        assert_eq!(redundant(&[(0, 0), (2, 5)]), [false, false]);
    }

    #[test]
    fn what_is_computed_tells_nothing() {
        assert_eq!(sold().redundant(&[None, Some((0, 9))], IS_UNIQUE, |_| true), [false, false]);
    }
}
