//! Estimates for equi-joins. They assume that the side with fewer distinct values draws them from the other side's.

use datafusion::logical_expr::{Join, JoinType};
use plan::estimate::{ColumnFacts, Relation};

use super::{Noted, noting};

/// Selectivity of a join condition other than equality of keys.
pub(crate) const FILTER: f64 = 1.0 / 3.0;

/// Keys of one side of a join.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keys<'a> {
    /// Rows of the side.
    pub(crate) rows: f64,
    /// Statistics of the key columns.
    pub(crate) facts: &'a [ColumnFacts],
}

/// Returns the selectivity of equality on one key column: the share of all pairs of rows that match.
pub(crate) fn key_selectivity(left: &ColumnFacts, right: &ColumnFacts) -> f64 {
    match_selectivity(&[left, right])
}

/// Returns the selectivity of equality of all sides' keys: the share of all combinations of rows, one of each side,
/// that match. Only values in the sides' common range match; there, the sides with fewer distinct values are assumed to
/// draw them from the largest side's.
pub(crate) fn match_selectivity(sides: &[&ColumnFacts]) -> f64 {
    let mut met = 1.0;
    let mut domains = Vec::with_capacity(sides.len());
    for facts in sides {
        let share = share_in_common(facts, sides);
        met *= share * (1.0 - facts.nulls);
        domains.push((facts.domain * share).max(1.0));
    }
    domains.sort_by(f64::total_cmp);
    met / domains.iter().skip(1).product::<f64>()
}

/// Returns the share of a column's values in the common range of `sides`.
pub(crate) fn share_in_common(facts: &ColumnFacts, sides: &[&ColumnFacts]) -> f64 {
    let low = sides.iter().filter_map(|facts| facts.min).reduce(f64::max);
    let high = sides.iter().filter_map(|facts| facts.max).reduce(f64::min);
    match (low, high, facts.min, facts.max) {
        (Some(low), Some(high), Some(min), Some(max)) if min < max => {
            ((high - low) / (max - min)).clamp(1.0 / facts.domain.max(1.0), 1.0)
        }
        _ => 1.0,
    }
}

/// Returns the selectivity of equality on several key columns. The columns of a key are correlated: a side has at most
/// as many combinations of values as it has rows.
pub(crate) fn composite_selectivity(left: Keys<'_>, right: Keys<'_>) -> f64 {
    let independent: f64 =
        left.facts.iter().zip(right.facts).map(|(left, right)| key_selectivity(left, right)).product();
    if left.facts.len() < 2 {
        return independent;
    }
    let combinations = |keys: Keys<'_>| {
        let product: f64 = keys.facts.iter().map(|facts| facts.domain.max(1.0)).product();
        product.min(most_rows(keys))
    };
    let (left_count, right_count) = (combinations(left), combinations(right));
    // The geometric mean is a compromise: the smaller side may hold all combinations that the larger one uses, or few.
    independent.max(1.0 / (left_count * right_count).sqrt().max(1.0))
}

/// Returns a lower bound of the side's rows before filters: the largest domain of its key columns.
fn most_rows(keys: Keys<'_>) -> f64 {
    keys.facts.iter().map(|facts| facts.domain).fold(keys.rows, f64::max).max(1.0)
}

/// Returns the share of rows that find a partner in `other` (selectivity of a semi-join): rows whose keys lie in the
/// common range, times the share of their domain that `other`'s domain covers, times the share of `other`'s domain that
/// its filters left.
pub(crate) fn existence_share(keys: &[ColumnFacts], other: &[ColumnFacts]) -> f64 {
    let share = |(key, other): (&ColumnFacts, &ColumnFacts)| {
        let sides = [key, other];
        let (in_common, other_in_common) = (share_in_common(key, &sides), share_in_common(other, &sides));
        let covered = (other.domain * other_in_common / (key.domain * in_common).max(1.0)).min(1.0);
        let kept = (other.distinct / other.domain.max(1.0)).min(1.0);
        (1.0 - key.nulls) * in_common * covered * kept
    };
    keys.iter().zip(other).map(share).fold(1.0, f64::min)
}

/// Returns the selectivity of an anti join if `share` of the rows find a partner; at least 0.1, because queries use
/// anti joins where rows remain.
pub(crate) fn absence_share(share: f64) -> f64 {
    (1.0 - share).max(0.1)
}

/// Estimates a join.
pub(super) fn relation(join: &Join, noted: &mut Noted) -> Relation {
    let left = noting(&join.left, noted);
    let right = noting(&join.right, noted);
    let left_keys: Vec<ColumnFacts> = join.on.iter().map(|(key, _)| left.facts(key, join.left.schema())).collect();
    let right_keys: Vec<ColumnFacts> = join.on.iter().map(|(_, key)| right.facts(key, join.right.schema())).collect();
    let pairs = composite_selectivity(
        Keys { rows: left.rows, facts: &left_keys },
        Keys { rows: right.rows, facts: &right_keys },
    );
    let filter = if join.filter.is_some() { FILTER } else { 1.0 };
    let matched = left.rows * right.rows * pairs * filter;
    let left_share = existence_share(&left_keys, &right_keys) * filter;
    let right_share = existence_share(&right_keys, &left_keys) * filter;
    let (left_rows, right_rows) = (left.rows, right.rows);
    match join.join_type {
        JoinType::Inner => both(left, right, matched),
        JoinType::Left => both(left, right, matched.max(left_rows)),
        JoinType::Right => both(left, right, matched.max(right_rows)),
        JoinType::Full => both(left, right, matched.max(left_rows).max(right_rows)),
        JoinType::LeftSemi => left.with_rows(left_rows * left_share),
        JoinType::RightSemi => right.with_rows(right_rows * right_share),
        JoinType::LeftAnti => left.with_rows(left_rows * absence_share(left_share)),
        JoinType::RightAnti => right.with_rows(right_rows * absence_share(right_share)),
        JoinType::LeftMark => left,
        JoinType::RightMark => right,
    }
}

/// Returns the columns of both sides, with `rows` rows.
fn both(left: Relation, right: Relation, rows: f64) -> Relation {
    let thinned = |side: Relation| {
        let kept = rows.min(side.rows);
        side.with_rows(kept).columns
    };
    let columns = [thinned(left), thinned(right)].concat();
    Relation { rows, columns }
}
