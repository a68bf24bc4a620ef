//! The plan of a query, and its way through the optimizer.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use arrow::datatypes::SchemaRef;
use catalog::Table;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::datasource::source_as_provider;
use datafusion::execution::{SendableRecordBatchStream, SessionState};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;
use functions::error::from_datafusion;
use optimizer::dependent::DependentSubqueries;
use optimizer::shared::{self, Optimized};
use plan::{ShardTable, StreamTable};
use tokio_util::sync::CancellationToken;
use types::stack::{PlanningStack, with_planning_stack};
use types::{ColumnId, Condition, LockMode, LockWait, Oid, SqlError, SqlResult, SqlType};

use crate::phases::{Phase, Phases};
use crate::step::Step;

/// One column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputColumn {
    /// PostgreSQL's name for it; several columns of one result may share a name.
    pub name: String,
    pub sql_type: SqlType,
    /// The table it is a plain column of, if it is one.
    pub table: Option<Oid>,
    pub column: Option<ColumnId>,
}

/// A query, analysed: every expression has its final type.
#[derive(Debug, Clone)]
pub struct QueryPlan {
    pub plan: LogicalPlan,
    /// One per field of the plan's schema, in order.
    pub columns: Vec<OutputColumn>,
    /// Types of `$1`, `$2`, …
    pub parameters: Vec<SqlType>,
    /// Functions, settings and rules that the plan was made with and runs with.
    pub state: Arc<SessionState>,
    /// What SELECT … FOR UPDATE and its like lock. The columns that say which rows follow those of `columns` in the plan's output.
    pub locks: Vec<RowLocks>,
    /// LIMIT and OFFSET of a query with `locks`: the plan has none, because rows are locked before they are counted.
    pub locked_limit: LockedLimit,
    /// Whether something in it was read that means something else at another time: `'today'`.
    pub has_read_now: bool,
    /// What the optimizer makes of `plan`, where it is to be asked once.
    pub optimized: OptimizedOnce,
    /// What planning it takes.
    pub phases: Phases,
}

/// What the optimizer makes of a plan that is run again and again.
#[derive(Debug, Clone, Default)]
pub struct OptimizedOnce(Option<Arc<OnceLock<Optimized>>>);

/// Rows of one table that a query locks.
#[derive(Debug, Clone)]
pub struct RowLocks {
    pub table: Arc<Table>,
    pub mode: LockMode,
    pub wait: LockWait,
    /// Index of the table's `__row_id` in the plan's output; `__place` is the next. Both are NULL where a join has no row of the table.
    pub column: usize,
}

/// LIMIT and OFFSET beside a plan.
#[derive(Debug, Clone, Default)]
pub struct LockedLimit {
    pub(crate) offset: Option<Expr>,
    pub(crate) limit: Option<Expr>,
}

impl LockedLimit {
    /// The rows to leave out first, and how many to give then at most. Parameters must have their values.
    ///
    /// # Errors
    /// `2201X` and `2201W` for negative counts.
    pub fn counts(&self) -> SqlResult<(u64, Option<u64>)> {
        let offset = count(self.offset.as_ref(), "OFFSET", Condition::InvalidRowCountInOffset)?;
        let limit = count(self.limit.as_ref(), "LIMIT", Condition::InvalidRowCountInLimit)?;
        Ok((offset.unwrap_or(0), limit))
    }

    fn with_parameters(&self, values: &ParamValues) -> SqlResult<Self> {
        let given = |count: &Option<Expr>| -> SqlResult<Option<Expr>> {
            let Some(Expr::Placeholder(placeholder)) = count else { return Ok(count.clone()) };
            let value = values.get_placeholders_with_values(&placeholder.id).map_err(from_datafusion)?;
            Ok(Some(Expr::Literal(value.value, None)))
        };
        Ok(Self { offset: given(&self.offset)?, limit: given(&self.limit)? })
    }
}

fn count(expr: Option<&Expr>, clause: &str, negative: Condition) -> SqlResult<Option<u64>> {
    match expr {
        None | Some(Expr::Literal(ScalarValue::Int64(None) | ScalarValue::Null, _)) => Ok(None),
        Some(Expr::Literal(ScalarValue::Int64(Some(count)), _)) => match u64::try_from(*count) {
            Ok(count) => Ok(Some(count)),
            Err(_) => Err(SqlError::new(negative, format!("{clause} must not be negative"))),
        },
        Some(_) => Err(SqlError::unsupported(format_args!("a subquery in {clause} of a query that locks rows"))),
    }
}

/// Operators and parts of expressions in a plan that is optimized where it runs. Most queries of the benchmarks have fewer.
const SMALL_PARTS: usize = 500;

impl QueryPlan {
    /// The plan with values for all of its parameters, each of its parameter's Arrow type.
    ///
    /// # Errors
    /// `08P01` when their number is not that of the parameters.
    pub fn with_parameters(self, values: Vec<ScalarValue>) -> SqlResult<QueryPlan> {
        if values.len() != self.parameters.len() {
            return Err(SqlError::new(
                Condition::ProtocolViolation,
                format!("{} parameters were given for a statement that has {}", values.len(), self.parameters.len()),
            ));
        }
        if values.is_empty() {
            return Ok(self);
        }
        let values = ParamValues::from(values);
        let locked_limit = self.locked_limit.with_parameters(&values)?;
        let plan = with_planning_stack(|| self.plan.with_param_values(values)).map_err(from_datafusion)?;
        Ok(QueryPlan { plan, parameters: Vec::new(), locked_limit, optimized: OptimizedOnce::default(), ..self })
    }

    /// The same for one run, in which the leaf `input` has the rows of these streams.
    #[must_use]
    pub fn fed(&self, input: &StreamTable, streams: Vec<SendableRecordBatchStream>) -> QueryPlan {
        QueryPlan { state: Arc::new(input.fed(&self.state, streams)), ..self.clone() }
    }

    /// The same with another plan.
    pub(crate) fn with_plan(&self, plan: LogicalPlan) -> QueryPlan {
        QueryPlan { plan, optimized: OptimizedOnce::default(), ..self.clone() }
    }

    /// Whether both are optimized as one: the rules go over the plan of whichever runs first.
    #[must_use]
    pub fn is_optimized_with(&self, other: &QueryPlan) -> bool {
        let both = self.optimized.0.as_ref().zip(other.optimized.0.as_ref());
        both.is_some_and(|(own, others)| Arc::ptr_eq(own, others))
    }

    /// The same, whose plan is optimized when that is asked for first, for all copies of it.
    #[must_use]
    pub fn optimized_once(self) -> QueryPlan {
        if self.optimized.0.is_some() {
            return self;
        }
        QueryPlan { optimized: OptimizedOnce(Some(Arc::default())), ..self }
    }

    /// Whether all rules together take a few milliseconds for it at most: it has few parts, or they have been over it.
    #[must_use]
    pub fn is_small(&self) -> bool {
        let OptimizedOnce(known) = &self.optimized;
        if known.as_ref().is_some_and(|known| known.get().is_some()) {
            return true;
        }
        let mut parts = 0;
        let walked = self.plan.apply_with_subqueries(|node| {
            parts += 1;
            node.apply_expressions(|expr| {
                expr.apply(|_| {
                    parts += 1;
                    Ok(if parts <= SMALL_PARTS { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
                })
            })?;
            Ok(if parts <= SMALL_PARTS { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
        });
        walked.is_ok() && parts <= SMALL_PARTS
    }

    /// The plan after the optimizer's rules, as it was found before or is found now; correlated subqueries in it end when `stop` fires. The
    /// analyzer's rules have run already.
    ///
    /// # Errors
    /// Whatever constant folding meets (division by zero), and bugs.
    pub async fn optimized(&self, stop: &CancellationToken) -> SqlResult<Optimized> {
        PlanningStack::new(self.optimize(stop)).await
    }

    async fn optimize(&self, stop: &CancellationToken) -> SqlResult<Optimized> {
        let OptimizedOnce(known) = &self.optimized;
        if let Some(known) = known.as_ref().and_then(|known| known.get()) {
            return Ok(known.clone());
        }
        let _step = Step::Optimize.span().entered();
        let begun = self.phases.begin();
        // Not among the analyzer's rules: parameters must have their values before plans go out of sight into functions.
        let dependent = DependentSubqueries::new(Arc::clone(&self.state), stop.clone());
        let lower = |plan| dependent.analyze(plan, self.state.config_options());
        let optimized = shared::optimize(self.plan.clone(), &self.state, &lower).map_err(from_datafusion)?;
        self.phases.end(Phase::Rules, begun);
        match known {
            // Plans out of sight would heed this stop for ever.
            Some(known) if !optimized.hides_plans().map_err(from_datafusion)? => {
                // Another run may have been first.
                let _ = known.set(optimized.clone());
                Ok(optimized)
            }
            _ => Ok(optimized),
        }
    }

    /// As [`QueryPlan::optimized`], without anything that several parts share: each computes for itself what it reads. `None` where that is not
    /// what the query asks for.
    ///
    /// # Errors
    /// As [`QueryPlan::optimized`].
    pub async fn optimized_apart(&self, stop: &CancellationToken) -> SqlResult<Option<Optimized>> {
        // Most share nothing, wherever they run.
        if !shared::reads_a_table_twice(&self.plan).map_err(from_datafusion)? {
            let optimized = self.optimized(stop).await?;
            if !optimized.has_shared_rows() {
                return Ok(Some(optimized));
            }
        }
        PlanningStack::new(self.optimize_apart(stop)).await
    }

    async fn optimize_apart(&self, stop: &CancellationToken) -> SqlResult<Option<Optimized>> {
        let _step = Step::Optimize.span().entered();
        let begun = self.phases.begin();
        let dependent = DependentSubqueries::new(Arc::clone(&self.state), stop.clone());
        let lower = |plan| dependent.analyze(plan, self.state.config_options());
        let optimized = shared::optimize_apart(self.plan.clone(), &self.state, &lower).map_err(from_datafusion);
        self.phases.end(Phase::Rules, begun);
        optimized
    }

    /// The tables that it reads.
    pub(crate) fn tables_read(&self) -> BTreeSet<Oid> {
        let mut tables = BTreeSet::new();
        let walked = self.plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node
                && let Ok(provider) = source_as_provider(&scan.source)
                && let Some(table) = provider.downcast_ref::<ShardTable>()
                && table.pin.is_none()
            {
                tables.insert(table.table.oid);
            }
            Ok(TreeNodeRecursion::Continue)
        });
        walked.expect("nothing fails on the way");
        tables
    }

    pub(crate) fn needs_worker(&self) -> bool {
        let (mut reads_rows, mut makes_rows, mut reads_system) = (false, false, false);
        let walked = self.plan.apply_with_subqueries(|node| {
            match node {
                LogicalPlan::TableScan(scan) => {
                    let provider = source_as_provider(&scan.source);
                    let is_system = provider.is_ok_and(|provider| system_catalog::is_system_table(provider.as_ref()));
                    reads_system |= is_system;
                    reads_rows |= !is_system;
                }
                LogicalPlan::Extension(_) | LogicalPlan::Unnest(_) | LogicalPlan::RecursiveQuery(_) => {
                    makes_rows = true
                }
                _ => {}
            }
            Ok(if reads_rows { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        });
        walked.expect("nothing fails on the way");
        reads_rows || (makes_rows && !reads_system)
    }

    /// The Arrow schema of the rows.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(self.plan.schema().inner())
    }
}
