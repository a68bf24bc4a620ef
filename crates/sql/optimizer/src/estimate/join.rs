//! Estimates for equi-joins. They assume that the side with fewer distinct values draws them from the other side's.

use datafusion::logical_expr::{Join, JoinType};
use plan::estimate::{ColumnEstimate, RelationEstimate};

use super::{NodeEstimates, estimate_recording};

/// Selectivity of a join condition other than equality of keys.
pub(crate) const FILTER_SELECTIVITY: f64 = 1.0 / 3.0;

/// Keys of one side of a join.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SideKeys<'a> {
    /// Rows of the side.
    pub(crate) rows: f64,
    /// Statistics of the key columns.
    pub(crate) key_estimates: &'a [ColumnEstimate],
}

/// Returns the selectivity of equality on one key column: the share of all pairs of rows that match.
pub(crate) fn key_selectivity(left: &ColumnEstimate, right: &ColumnEstimate) -> f64 {
    match_selectivity(&[left, right])
}

/// Returns the selectivity of equality of all sides' keys: the share of all combinations of rows, one of each side,
/// that match. Only values in the sides' common range match; there, the sides with fewer distinct values are assumed to
/// draw them from the largest side's.
pub(crate) fn match_selectivity(sides: &[&ColumnEstimate]) -> f64 {
    let mut met = 1.0;
    let mut domains = Vec::with_capacity(sides.len());
    for facts in sides {
        let share = common_range_share(facts, sides);
        met *= share * (1.0 - facts.nulls);
        domains.push((facts.domain * share).max(1.0));
    }
    domains.sort_by(f64::total_cmp);
    met / domains.iter().skip(1).product::<f64>()
}

/// Returns the share of a column's values in the common range of `sides`.
pub(crate) fn common_range_share(facts: &ColumnEstimate, sides: &[&ColumnEstimate]) -> f64 {
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
pub(crate) fn composite_selectivity(left: SideKeys<'_>, right: SideKeys<'_>) -> f64 {
    let independent: f64 =
        left.key_estimates.iter().zip(right.key_estimates).map(|(left, right)| key_selectivity(left, right)).product();
    if left.key_estimates.len() < 2 {
        return independent;
    }
    let combinations = |keys: SideKeys<'_>| {
        let product: f64 = keys.key_estimates.iter().map(|facts| facts.domain.max(1.0)).product();
        product.min(unfiltered_rows(keys))
    };
    let (left_count, right_count) = (combinations(left), combinations(right));
    // The geometric mean is a compromise: the smaller side may hold all combinations that the larger one uses, or few.
    independent.max(1.0 / (left_count * right_count).sqrt().max(1.0))
}

/// Returns a lower bound of the side's rows before filters: the largest domain of its key columns.
fn unfiltered_rows(keys: SideKeys<'_>) -> f64 {
    keys.key_estimates.iter().map(|facts| facts.domain).fold(keys.rows, f64::max).max(1.0)
}

/// Returns the share of rows that find a partner in `other` (selectivity of a semi-join): rows whose keys lie in the
/// common range, times the share of their domain that `other`'s domain covers, times the share of `other`'s domain that
/// its filters left.
pub(crate) fn semi_join_selectivity(keys: &[ColumnEstimate], other: &[ColumnEstimate]) -> f64 {
    let share = |(key, other): (&ColumnEstimate, &ColumnEstimate)| {
        let sides = [key, other];
        let (in_common, other_in_common) = (common_range_share(key, &sides), common_range_share(other, &sides));
        let covered = (other.domain * other_in_common / (key.domain * in_common).max(1.0)).min(1.0);
        let kept = (other.distinct / other.domain.max(1.0)).min(1.0);
        (1.0 - key.nulls) * in_common * covered * kept
    };
    keys.iter().zip(other).map(share).fold(1.0, f64::min)
}

/// Returns the selectivity of an anti join if `share` of the rows find a partner; at least 0.1, because queries use
/// anti joins where rows remain.
pub(crate) fn anti_join_selectivity(share: f64) -> f64 {
    (1.0 - share).max(0.1)
}

/// Estimates a join.
pub(super) fn estimate_join(join: &Join, noted: &mut NodeEstimates) -> RelationEstimate {
    let left = estimate_recording(&join.left, noted);
    let right = estimate_recording(&join.right, noted);
    let left_keys: Vec<ColumnEstimate> =
        join.on.iter().map(|(key, _)| left.expression_estimate(key, join.left.schema())).collect();
    let right_keys: Vec<ColumnEstimate> =
        join.on.iter().map(|(_, key)| right.expression_estimate(key, join.right.schema())).collect();
    let pairs = composite_selectivity(
        SideKeys { rows: left.rows, key_estimates: &left_keys },
        SideKeys { rows: right.rows, key_estimates: &right_keys },
    );
    let filter = if join.filter.is_some() { FILTER_SELECTIVITY } else { 1.0 };
    let matched = left.rows * right.rows * pairs * filter;
    let left_share = semi_join_selectivity(&left_keys, &right_keys) * filter;
    let right_share = semi_join_selectivity(&right_keys, &left_keys) * filter;
    let (left_rows, right_rows) = (left.rows, right.rows);
    match join.join_type {
        JoinType::Inner => joined_relation(left, right, matched),
        JoinType::Left => joined_relation(left, right, matched.max(left_rows)),
        JoinType::Right => joined_relation(left, right, matched.max(right_rows)),
        JoinType::Full => joined_relation(left, right, matched.max(left_rows).max(right_rows)),
        JoinType::LeftSemi => left.with_rows(left_rows * left_share),
        JoinType::RightSemi => right.with_rows(right_rows * right_share),
        JoinType::LeftAnti => left.with_rows(left_rows * anti_join_selectivity(left_share)),
        JoinType::RightAnti => right.with_rows(right_rows * anti_join_selectivity(right_share)),
        JoinType::LeftMark => left,
        JoinType::RightMark => right,
    }
}

/// Returns the columns of both sides, with `rows` rows.
fn joined_relation(left: RelationEstimate, right: RelationEstimate, rows: f64) -> RelationEstimate {
    let thinned = |side: RelationEstimate| {
        let kept = rows.min(side.rows);
        side.with_rows(kept).columns
    };
    let columns = [thinned(left), thinned(right)].concat();
    RelationEstimate { rows, columns }
}
