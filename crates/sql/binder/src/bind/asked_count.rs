//! Counts of LIMIT and OFFSET that subqueries give, which are asked for before the plan is optimized.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, Limit, LogicalPlan, LogicalPlanBuilder};
use functions::error::from_datafusion;
use types::{Condition, SqlError, SqlResult};

use crate::QueryPlan;

/// The LIMIT of a plan that is shown where a subquery gives it. With any OFFSET on top it is still a number.
pub const LIMIT_UNKNOWN: i64 = i64::MAX / 2;

impl QueryPlan {
    /// Whether subqueries give counts of LIMIT or OFFSET, which [`QueryPlan::with_counts`] puts into the plan before it is optimized.
    #[must_use]
    pub fn asks_counts(&self) -> bool {
        asked(&self.plan).is_ok_and(|count| count.is_some())
    }

    /// The plan for one run, with the count in the place of each subquery that gives one. `answer` runs a query of one row and column, as
    /// [`count_of`] reads it.
    ///
    /// # Errors
    /// Those of `answer`; `2201W` and `2201X` for negative counts.
    pub async fn with_counts<F>(&self, answer: impl Fn(QueryPlan) -> F) -> SqlResult<QueryPlan>
    where
        F: Future<Output = SqlResult<Option<i64>>>,
    {
        let one_row = |count: Expr| {
            let plan = LogicalPlanBuilder::empty(true).project([count.alias("count")])?.build()?;
            Ok(self.with_plan(plan))
        };
        let counted = ask(self.plan.clone(), |count, _| {
            let answered = one_row(count).map(&answer);
            async move { answered.map_err(from_datafusion)?.await }
        });
        Ok(self.with_plan(counted.await?))
    }

    /// The plan to be shown, in which such a LIMIT is [`LIMIT_UNKNOWN`]: nothing runs for it.
    ///
    /// # Errors
    /// None that well-formed plans meet.
    pub async fn with_unknown_counts(&self) -> SqlResult<QueryPlan> {
        let unknown = |_, is_offset| std::future::ready(Ok(Some(if is_offset { 0 } else { LIMIT_UNKNOWN })));
        Ok(self.with_plan(ask(self.plan.clone(), unknown).await?))
    }
}

/// The plan with every count that a subquery gives as the number that `answer` finds it to be; it is told whether that is an OFFSET.
async fn ask<F>(mut plan: LogicalPlan, answer: impl Fn(Expr, bool) -> F) -> SqlResult<LogicalPlan>
where
    F: Future<Output = SqlResult<Option<i64>>>,
{
    while let Some((count, is_offset)) = asked(&plan)? {
        let value = answer(count.clone(), is_offset).await?;
        let (clause, negative) = if is_offset {
            ("OFFSET", Condition::InvalidRowCountInOffset)
        } else {
            ("LIMIT", Condition::InvalidRowCountInLimit)
        };
        let value = literal(value, clause, negative)?.map(Box::new);
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

/// The count in the one row of the one column that a subquery gave; `None` is NULL.
///
/// # Errors
/// `XX000` for other rows.
pub fn count_of(rows: &[RecordBatch]) -> SqlResult<Option<i64>> {
    let value = rows.iter().find(|batch| batch.num_rows() == 1).map(|batch| batch.column(0));
    let value = value.ok_or_else(|| SqlError::internal("a count is one row"))?;
    let value = value.as_primitive::<Int64Type>();
    Ok((!value.is_null(0)).then(|| value.value(0)))
}

/// A count that is to be asked for, and whether it is an OFFSET.
fn asked(plan: &LogicalPlan) -> SqlResult<Option<(Expr, bool)>> {
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

/// A count as the plan has it; NULL is no count at all.
pub(super) fn literal(count: Option<i64>, clause: &str, negative: Condition) -> SqlResult<Option<Expr>> {
    match count {
        None => Ok(None),
        Some(count @ 0..) => Ok(Some(Expr::Literal(ScalarValue::Int64(Some(count)), None))),
        Some(_) => Err(SqlError::new(negative, format!("{clause} must not be negative"))),
    }
}
