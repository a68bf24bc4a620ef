//! Selectivity of conditions, from column statistics.

use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{Between, InList, ScalarFunction};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use functions::{HasKey, LazyPurpose, as_lazy_condition, branch_condition};
use plan::estimate::{ColumnEstimate, RelationEstimate, position};

/// Default selectivity of `<`, `<=`, `>` and `>=`.
const RANGE_SELECTIVITY: f64 = 1.0 / 3.0;
/// Default selectivity of LIKE and regular expressions.
const PATTERN_SELECTIVITY: f64 = 0.1;
/// Default selectivity of other conditions.
const DEFAULT_SELECTIVITY: f64 = 0.25;

/// Returns the selectivity of `predicate`: the share of `relation`'s rows for which it is true.
pub(super) fn selectivity(predicate: &Expr, relation: &RelationEstimate, schema: &DFSchema) -> f64 {
    unclamped_selectivity(predicate, relation, schema).clamp(0.0, 1.0)
}

/// Returns `relation` with `selectivity` of its rows. Columns that the predicate restricts lose distinct values and get
/// narrower bounds.
pub(super) fn apply(
    mut relation: RelationEstimate,
    predicate: &Expr,
    schema: &DFSchema,
    selectivity: f64,
) -> RelationEstimate {
    let rows = relation.rows;
    let mut restricted = vec![false; relation.columns.len()];
    for conjunct in split_conjunction(predicate) {
        let columns = conjunct.column_refs();
        let mut columns = columns.iter();
        let (Some(column), None) = (columns.next(), columns.next()) else { continue };
        let Some(index) = schema.maybe_index_of_column(column) else { continue };
        if index < restricted.len() {
            let share = value_share(conjunct, &relation, schema, &relation.columns[index]);
            relation.columns[index].scale_distinct(share);
            if let Some((_, op, value)) = bound(conjunct) {
                match op {
                    Operator::Lt | Operator::LtEq => relation.columns[index].intersect_bounds(f64::NEG_INFINITY, value),
                    Operator::Gt | Operator::GtEq => relation.columns[index].intersect_bounds(value, f64::INFINITY),
                    _ => {}
                }
            }
            relation.columns[index].nulls = 0.0;
            restricted[index] = true;
        }
    }
    let kept = rows * selectivity;
    for (column, restricted) in relation.columns.iter_mut().zip(restricted) {
        if restricted {
            column.distinct = column.distinct.min(kept.max(1.0));
        } else {
            column.select_randomly(rows, kept);
        }
    }
    relation.rows = kept;
    relation
}

/// Returns the share of a column's distinct values (not rows) that a condition on this column leaves.
fn value_share(conjunct: &Expr, relation: &RelationEstimate, schema: &DFSchema, facts: &ColumnEstimate) -> f64 {
    let count = match conjunct {
        Expr::BinaryExpr(BinaryExpr { op: Operator::Eq, .. }) => Some(1.0),
        Expr::InList(InList { list, negated: false, .. }) => Some(list.len() as f64),
        Expr::ScalarFunction(call) => key_count(call),
        Expr::IsNotNull(_) => return 1.0,
        _ => None,
    };
    match count {
        Some(count) => (count / facts.distinct.max(1.0)).min(1.0),
        None => selectivity(conjunct, relation, schema),
    }
}

/// Returns the unclamped selectivity of `predicate`.
fn unclamped_selectivity(predicate: &Expr, relation: &RelationEstimate, schema: &DFSchema) -> f64 {
    let each = |expr: &Expr| selectivity(expr, relation, schema);
    match predicate {
        Expr::Alias(alias) => each(&alias.expr),
        Expr::Literal(ScalarValue::Boolean(value), _) => f64::from(u8::from(value.unwrap_or(false))),
        Expr::Not(inner) => 1.0 - each(inner),
        Expr::IsNull(inner) => relation.expression_estimate(inner, schema).nulls,
        Expr::IsNotNull(inner) => 1.0 - relation.expression_estimate(inner, schema).nulls,
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            conjunction_as_range(left, right, relation, schema).unwrap_or_else(|| each(left) * each(right))
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let (left, right) = (each(left), each(right));
            left + right - left * right
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (literal(left), literal(right)) {
            (None, Some(value)) => comparison_selectivity(&relation.expression_estimate(left, schema), *op, value),
            (Some(value), None) => match op.swap() {
                Some(op) => comparison_selectivity(&relation.expression_estimate(right, schema), op, value),
                None => DEFAULT_SELECTIVITY,
            },
            _ => match op {
                Operator::Eq => {
                    1.0 / relation
                        .expression_estimate(left, schema)
                        .distinct
                        .max(relation.expression_estimate(right, schema).distinct)
                        .max(1.0)
                }
                Operator::NotEq => 0.9,
                Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => RANGE_SELECTIVITY,
                _ => DEFAULT_SELECTIVITY,
            },
        },
        Expr::Between(Between { expr, negated, low, high }) => {
            let facts = relation.expression_estimate(expr, schema);
            let share = match (literal(low).and_then(position), literal(high).and_then(position)) {
                (Some(low), Some(high)) => range_selectivity(&facts, low, high),
                _ => RANGE_SELECTIVITY * RANGE_SELECTIVITY,
            };
            if *negated { 1.0 - share } else { share }
        }
        Expr::InList(InList { expr, list, negated }) => {
            let facts = relation.expression_estimate(expr, schema);
            let share: f64 = list
                .iter()
                .map(|item| {
                    literal(item).map_or_else(
                        || unknown_equality_selectivity(&facts),
                        |value| equality_selectivity(&facts, value),
                    )
                })
                .sum();
            if *negated { 1.0 - share.min(1.0) } else { share.min(1.0) }
        }
        Expr::ScalarFunction(_) if guarded_condition(predicate).is_some() => {
            guarded_condition(predicate).map_or(DEFAULT_SELECTIVITY, each)
        }
        Expr::ScalarFunction(call) => match (key_count(call), call.args.as_slice()) {
            (Some(keys), [column]) => (keys / relation.expression_estimate(column, schema).distinct.max(1.0)).min(1.0),
            _ => DEFAULT_SELECTIVITY,
        },
        Expr::Like(like) => {
            if like.negated {
                1.0 - PATTERN_SELECTIVITY
            } else {
                PATTERN_SELECTIVITY
            }
        }
        _ => DEFAULT_SELECTIVITY,
    }
}

/// Returns the right side of AND or OR that is evaluated only where the left side does not decide.
fn guarded_condition(expr: &Expr) -> Option<&Expr> {
    match as_lazy_condition(expr)? {
        (LazyPurpose::Guard, case) => branch_condition(&case.when_then_expr.first()?.1),
        (LazyPurpose::Branches, _) => None,
    }
}

/// Returns the number of keys of a [`HasKey`] call; `None` for other functions.
fn key_count(call: &ScalarFunction) -> Option<f64> {
    call.func.inner().downcast_ref::<HasKey>().map(|has_key| has_key.keys().input_key_count() as f64)
}

/// Returns the selectivity of `a >= low AND a <= high` as one range; `None` for other conditions.
fn conjunction_as_range(left: &Expr, right: &Expr, relation: &RelationEstimate, schema: &DFSchema) -> Option<f64> {
    let (below, above) = (bound(left)?, bound(right)?);
    if below.0 != above.0 {
        return None;
    }
    let (low, high) = match (below.1, above.1) {
        (Operator::Gt | Operator::GtEq, Operator::Lt | Operator::LtEq) => (below.2, above.2),
        (Operator::Lt | Operator::LtEq, Operator::Gt | Operator::GtEq) => (above.2, below.2),
        _ => return None,
    };
    Some(range_selectivity(&relation.expression_estimate(below.0, schema), low, high))
}

/// Returns the operands of a comparison with a literal; the literal as a position on its type's axis.
fn bound(expr: &Expr) -> Option<(&Expr, Operator, f64)> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else { return None };
    Some((left, *op, position(literal(right)?)?))
}

/// Returns the selectivity of a comparison with a literal.
fn comparison_selectivity(facts: &ColumnEstimate, op: Operator, value: &ScalarValue) -> f64 {
    if value.is_null() {
        return 0.0;
    }
    match op {
        Operator::Eq => equality_selectivity(facts, value),
        Operator::NotEq => 1.0 - facts.nulls - equality_selectivity(facts, value),
        Operator::Lt | Operator::LtEq => {
            position(value).map_or(RANGE_SELECTIVITY, |value| range_selectivity(facts, f64::NEG_INFINITY, value))
        }
        Operator::Gt | Operator::GtEq => {
            position(value).map_or(RANGE_SELECTIVITY, |value| range_selectivity(facts, value, f64::INFINITY))
        }
        Operator::LikeMatch | Operator::ILikeMatch | Operator::RegexMatch => PATTERN_SELECTIVITY,
        Operator::NotLikeMatch | Operator::NotILikeMatch | Operator::RegexNotMatch => 1.0 - PATTERN_SELECTIVITY,
        _ => DEFAULT_SELECTIVITY,
    }
}

/// Returns the selectivity of equality with one value.
fn equality_selectivity(facts: &ColumnEstimate, value: &ScalarValue) -> f64 {
    if let Some((_, share)) = facts.frequent.iter().find(|(frequent, _)| frequent == value) {
        return *share;
    }
    if let (Some(value), Some(min), Some(max)) = (position(value), facts.min, facts.max)
        && (value < min || max < value)
    {
        return 0.0;
    }
    let listed: f64 = facts.frequent.iter().map(|(_, share)| share).sum();
    let others = (facts.distinct - facts.frequent.len() as f64).max(1.0);
    ((1.0 - facts.nulls - listed).max(0.0) / others).min(1.0 / facts.distinct.max(1.0))
}

/// Returns the selectivity of equality with an unknown value.
fn unknown_equality_selectivity(facts: &ColumnEstimate) -> f64 {
    (1.0 - facts.nulls) / facts.distinct.max(1.0)
}

/// Returns the selectivity of a range, assuming that values are spread evenly between the column's bounds.
fn range_selectivity(facts: &ColumnEstimate, low: f64, high: f64) -> f64 {
    let (Some(min), Some(max)) = (facts.min, facts.max) else {
        return if low.is_finite() && high.is_finite() {
            RANGE_SELECTIVITY * RANGE_SELECTIVITY
        } else {
            RANGE_SELECTIVITY
        };
    };
    let share = if min < max {
        // The range includes both ends: an overlapping one selects the share of one value at least.
        if high < min || max < low || high < low {
            0.0
        } else {
            ((high.min(max) - low.max(min)) / (max - min)).max(1.0 / facts.distinct.max(1.0))
        }
    } else {
        f64::from(u8::from(low <= min && max <= high))
    };
    share.clamp(0.0, 1.0) * (1.0 - facts.nulls)
}

fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        Expr::Alias(alias) => literal(&alias.expr),
        _ => None,
    }
}
