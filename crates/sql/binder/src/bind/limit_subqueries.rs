//! LIMIT and OFFSET given by subqueries, which are evaluated before the plan is optimized.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, Limit, LogicalPlan, LogicalPlanBuilder};
use functions::error::from_datafusion;
use types::{Condition, SqlError, SqlResult};

use crate::QueryPlan;

/// LIMIT that EXPLAIN assumes for a subquery. The sum with any OFFSET does not overflow.
pub const UNKNOWN_LIMIT: i64 = i64::MAX / 2;

impl QueryPlan {
    /// Returns whether subqueries give LIMIT or OFFSET, which [`QueryPlan::with_evaluated_counts`] evaluates before the plan is
    /// optimized.
    #[must_use]
    pub fn has_subquery_counts(&self) -> bool {
        find_subquery_count(&self.plan).is_ok_and(|count| count.is_some())
    }

    /// Returns the plan for one run, with the count in place of each subquery that gives one. `answer` runs a query
    /// of one row and column, as [`read_count`] reads it.
    ///
    /// # Errors
    /// Those of `answer`; SQLSTATE 2201W and 2201X for negative counts.
    pub async fn with_evaluated_counts<F>(&self, answer: impl Fn(QueryPlan) -> F) -> SqlResult<QueryPlan>
    where
        F: Future<Output = SqlResult<Option<i64>>>,
    {
        let one_row = |count: Expr| {
            let plan = LogicalPlanBuilder::empty(true).project([count.alias("count")])?.build()?;
            Ok(self.with_plan(plan))
        };
        let counted = replace_subquery_counts(self.plan.clone(), |count, _| {
            let answered = one_row(count).map(&answer);
            async move { answered.map_err(from_datafusion)?.await }
        });
        Ok(self.with_plan(counted.await?))
    }

    /// Returns the plan for EXPLAIN, with [`UNKNOWN_LIMIT`] for such a LIMIT; no subquery is run.
    ///
    /// # Errors
    /// None for well-formed plans.
    pub async fn with_unknown_counts(&self) -> SqlResult<QueryPlan> {
        let unknown = |_, is_offset| std::future::ready(Ok(Some(if is_offset { 0 } else { UNKNOWN_LIMIT })));
        Ok(self.with_plan(replace_subquery_counts(self.plan.clone(), unknown).await?))
    }
}

/// Replaces every count given by a subquery by the result of `answer`, whose second argument is true for OFFSET.
async fn replace_subquery_counts<F>(mut plan: LogicalPlan, answer: impl Fn(Expr, bool) -> F) -> SqlResult<LogicalPlan>
where
    F: Future<Output = SqlResult<Option<i64>>>,
{
    while let Some((count, is_offset)) = find_subquery_count(&plan)? {
        let value = answer(count.clone(), is_offset).await?;
        let (clause, negative) = if is_offset {
            ("OFFSET", Condition::InvalidRowCountInOffset)
        } else {
            ("LIMIT", Condition::InvalidRowCountInLimit)
        };
        let value = count_literal(value, clause, negative)?.map(Box::new);
        let answered = plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::Limit(Limit { skip, fetch, input }) => {
                let put =
                    |place: Option<Box<Expr>>| if place.as_deref() == Some(&count) { value.clone() } else { place };
                let (skip, fetch) = if is_offset { (put(skip), fetch) } else { (skip, put(fetch)) };
                Ok(Transformed::yes(LogicalPlan::Limit(Limit { skip, fetch, input })))
            }
            other => Ok(Transformed::no(other)),
        });
        plan = answered.map_err(from_datafusion)?.data;
    }
    Ok(plan)
}

/// Reads the count from the only row and column of a subquery's result; `None` is NULL.
///
/// # Errors
/// SQLSTATE XX000 for any other number of rows.
pub fn read_count(rows: &[RecordBatch]) -> SqlResult<Option<i64>> {
    let value = rows.iter().find(|batch| batch.num_rows() == 1).map(|batch| batch.column(0));
    let value = value.ok_or_else(|| SqlError::internal("a LIMIT or OFFSET subquery did not return one row"))?;
    let value = value.as_primitive::<Int64Type>();
    Ok((!value.is_null(0)).then(|| value.value(0)))
}

/// Finds a count given by a subquery; the flag is true for OFFSET.
fn find_subquery_count(plan: &LogicalPlan) -> SqlResult<Option<(Expr, bool)>> {
    let mut found = None;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Limit(limit) = node {
            for (count, is_offset) in [(&limit.skip, true), (&limit.fetch, false)] {
                if let Some(count) = count
                    && !matches!(count.as_ref(), Expr::Literal(..) | Expr::Placeholder(_))
                {
                    found = Some((count.as_ref().clone(), is_offset));
                    return Ok(TreeNodeRecursion::Stop);
                }
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .map_err(from_datafusion)?;
    Ok(found)
}

/// Builds the literal of a count; NULL means no limit.
pub(super) fn count_literal(count: Option<i64>, clause: &str, negative: Condition) -> SqlResult<Option<Expr>> {
    match count {
        None => Ok(None),
        Some(count @ 0..) => Ok(Some(Expr::Literal(ScalarValue::Int64(Some(count)), None))),
        Some(_) => Err(SqlError::new(negative, format!("{clause} must not be negative"))),
    }
}
