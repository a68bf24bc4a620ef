//! Selectivity of conditions, from column statistics.

use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{Between, InList, ScalarFunction};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use functions::HasKey;
use plan::estimate::{ColumnFacts, Relation, position};

/// Default selectivity of `<`, `<=`, `>` and `>=`.
const RANGE: f64 = 1.0 / 3.0;
/// Default selectivity of LIKE and regular expressions.
const PATTERN: f64 = 0.1;
/// Default selectivity of other conditions.
const OTHER: f64 = 0.25;

/// Returns the selectivity of `predicate`: the share of `relation`'s rows for which it is true.
pub(super) fn selectivity(predicate: &Expr, relation: &Relation, schema: &DFSchema) -> f64 {
    conditions(predicate, relation, schema).clamp(0.0, 1.0)
}

/// Returns `relation` with `selectivity` of its rows. Columns that the predicate restricts lose distinct values and get
/// narrower bounds.
pub(super) fn apply(mut relation: Relation, predicate: &Expr, schema: &DFSchema, selectivity: f64) -> Relation {
    let rows = relation.rows;
    let mut restricted = vec![false; relation.columns.len()];
    for conjunct in split_conjunction(predicate) {
        let columns = conjunct.column_refs();
        let mut columns = columns.iter();
        let (Some(column), None) = (columns.next(), columns.next()) else { continue };
        let Some(index) = schema.maybe_index_of_column(column) else { continue };
        if index < restricted.len() {
            let share = value_share(conjunct, &relation, schema, &relation.columns[index]);
            relation.columns[index].narrow(share);
            if let Some((_, op, value)) = bound(conjunct) {
                match op {
                    Operator::Lt | Operator::LtEq => relation.columns[index].limit(f64::NEG_INFINITY, value),
                    Operator::Gt | Operator::GtEq => relation.columns[index].limit(value, f64::INFINITY),
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
            column.thin(rows, kept);
        }
    }
    relation.rows = kept;
    relation
}

/// Returns the share of a column's distinct values (not rows) that a condition on this column leaves.
fn value_share(conjunct: &Expr, relation: &Relation, schema: &DFSchema, facts: &ColumnFacts) -> f64 {
    let count = match conjunct {
        Expr::BinaryExpr(BinaryExpr { op: Operator::Eq, .. }) => Some(1.0),
        Expr::InList(InList { list, negated: false, .. }) => Some(list.len() as f64),
        Expr::ScalarFunction(call) => keys(call),
        Expr::IsNotNull(_) => return 1.0,
        _ => None,
    };
    match count {
        Some(count) => (count / facts.distinct.max(1.0)).min(1.0),
        None => selectivity(conjunct, relation, schema),
    }
}

/// Returns the unclamped selectivity of `predicate`.
fn conditions(predicate: &Expr, relation: &Relation, schema: &DFSchema) -> f64 {
    let each = |expr: &Expr| selectivity(expr, relation, schema);
    match predicate {
        Expr::Alias(alias) => each(&alias.expr),
        Expr::Literal(ScalarValue::Boolean(value), _) => f64::from(u8::from(value.unwrap_or(false))),
        Expr::Not(inner) => 1.0 - each(inner),
        Expr::IsNull(inner) => relation.facts(inner, schema).nulls,
        Expr::IsNotNull(inner) => 1.0 - relation.facts(inner, schema).nulls,
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            range(left, right, relation, schema).unwrap_or_else(|| each(left) * each(right))
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let (left, right) = (each(left), each(right));
            left + right - left * right
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (literal(left), literal(right)) {
            (None, Some(value)) => compare(&relation.facts(left, schema), *op, value),
            (Some(value), None) => match op.swap() {
                Some(op) => compare(&relation.facts(right, schema), op, value),
                None => OTHER,
            },
            _ => match op {
                Operator::Eq => {
                    1.0 / relation.facts(left, schema).distinct.max(relation.facts(right, schema).distinct).max(1.0)
                }
                Operator::NotEq => 0.9,
                Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => RANGE,
                _ => OTHER,
            },
        },
        Expr::Between(Between { expr, negated, low, high }) => {
            let facts = relation.facts(expr, schema);
            let share = match (literal(low).and_then(position), literal(high).and_then(position)) {
                (Some(low), Some(high)) => span(&facts, low, high),
                _ => RANGE * RANGE,
            };
            if *negated { 1.0 - share } else { share }
        }
        Expr::InList(InList { expr, list, negated }) => {
            let facts = relation.facts(expr, schema);
            let share: f64 = list
                .iter()
                .map(|item| literal(item).map_or_else(|| equal_to_any(&facts), |value| equal(&facts, value)))
                .sum();
            if *negated { 1.0 - share.min(1.0) } else { share.min(1.0) }
        }
        Expr::ScalarFunction(call) => match (keys(call), call.args.as_slice()) {
            (Some(keys), [column]) => (keys / relation.facts(column, schema).distinct.max(1.0)).min(1.0),
            _ => OTHER,
        },
        Expr::Like(like) => {
            if like.negated {
                1.0 - PATTERN
            } else {
                PATTERN
            }
        }
        _ => OTHER,
    }
}

/// Returns the number of keys of a [`HasKey`] call; `None` for other functions.
fn keys(call: &ScalarFunction) -> Option<f64> {
    call.func.inner().downcast_ref::<HasKey>().map(|has_key| has_key.keys().count() as f64)
}

/// Returns the selectivity of `a >= low AND a <= high` as one range; `None` for other conditions.
fn range(left: &Expr, right: &Expr, relation: &Relation, schema: &DFSchema) -> Option<f64> {
    let (below, above) = (bound(left)?, bound(right)?);
    if below.0 != above.0 {
        return None;
    }
    let (low, high) = match (below.1, above.1) {
        (Operator::Gt | Operator::GtEq, Operator::Lt | Operator::LtEq) => (below.2, above.2),
        (Operator::Lt | Operator::LtEq, Operator::Gt | Operator::GtEq) => (above.2, below.2),
        _ => return None,
    };
    Some(span(&relation.facts(below.0, schema), low, high))
}

/// Returns the operands of a comparison with a literal; the literal as a position on its type's axis.
fn bound(expr: &Expr) -> Option<(&Expr, Operator, f64)> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else { return None };
    Some((left, *op, position(literal(right)?)?))
}

/// Returns the selectivity of a comparison with a literal.
fn compare(facts: &ColumnFacts, op: Operator, value: &ScalarValue) -> f64 {
    if value.is_null() {
        return 0.0;
    }
    match op {
        Operator::Eq => equal(facts, value),
        Operator::NotEq => 1.0 - facts.nulls - equal(facts, value),
        Operator::Lt | Operator::LtEq => position(value).map_or(RANGE, |value| span(facts, f64::NEG_INFINITY, value)),
        Operator::Gt | Operator::GtEq => position(value).map_or(RANGE, |value| span(facts, value, f64::INFINITY)),
        Operator::LikeMatch | Operator::ILikeMatch | Operator::RegexMatch => PATTERN,
        Operator::NotLikeMatch | Operator::NotILikeMatch | Operator::RegexNotMatch => 1.0 - PATTERN,
        _ => OTHER,
    }
}

/// Returns the selectivity of equality with one value.
fn equal(facts: &ColumnFacts, value: &ScalarValue) -> f64 {
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
fn equal_to_any(facts: &ColumnFacts) -> f64 {
    (1.0 - facts.nulls) / facts.distinct.max(1.0)
}

/// Returns the selectivity of a range, assuming that values are spread evenly between the column's bounds.
fn span(facts: &ColumnFacts, low: f64, high: f64) -> f64 {
    let (Some(min), Some(max)) = (facts.min, facts.max) else {
        return if low.is_finite() && high.is_finite() { RANGE * RANGE } else { RANGE };
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
