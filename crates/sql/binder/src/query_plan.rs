//! Plan of a query, and its optimization.

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
use optimizer::common_subplans::{self, OptimizedPlan, WithQueryReference};
use optimizer::correlated_subqueries::CorrelatedSubqueryRule;
use plan::{ShardTable, StreamTable};
use tokio_util::sync::CancellationToken;
use types::stack_limit::{PlanningStackFuture, with_planning_stack};
use types::{ColumnId, Condition, LockMode, LockWait, Oid, SqlError, SqlResult, SqlType};

use crate::planning_timings::{PlanningPhase, PlanningTimings};
use crate::statement_step::Step;

/// Column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputColumn {
    /// Name as in PostgreSQL; several columns of a result may share a name.
    pub name: String,
    pub sql_type: SqlType,
    /// Table whose column this is unchanged, if any.
    pub table: Option<Oid>,
    pub column: Option<ColumnId>,
}

/// Analyzed query: every expression has its final type.
#[derive(Debug, Clone)]
pub struct QueryPlan {
    pub plan: LogicalPlan,
    /// Output columns, one per field of the plan's schema, in order.
    pub columns: Vec<OutputColumn>,
    /// Types of `$1`, `$2`, …
    pub parameters: Vec<SqlType>,
    /// Functions, settings and rules that the plan was built with and runs with.
    pub state: Arc<SessionState>,
    /// Row locks of SELECT … FOR UPDATE and the like. The columns that identify the rows follow those of `columns` in
    /// the plan's output.
    pub locks: Vec<RowLocks>,
    /// LIMIT and OFFSET of a query with `locks`; the plan has none, because rows are locked before they are counted.
    pub locked_limit: OuterLimit,
    /// True if the plan contains a value that depends on the time of planning, such as `'today'`.
    pub depends_on_time: bool,
    /// Cache of the optimized plan, if it is optimized only once.
    pub optimized: OptimizedPlanCache,
    /// Timings of planning.
    pub planning_timings: PlanningTimings,
}

/// Shared cache of the optimized form of a plan that runs repeatedly.
#[derive(Debug, Clone, Default)]
pub struct OptimizedPlanCache(Option<Arc<OnceLock<OptimizedPlan>>>);

/// Row locks of a query on one table.
#[derive(Debug, Clone)]
pub struct RowLocks {
    pub table: Arc<Table>,
    pub mode: LockMode,
    pub wait: LockWait,
    /// Index of the table's `__row_id` in the plan's output; `__place` follows. Both are NULL for join results
    /// without a row of the table.
    pub column: usize,
}

/// LIMIT and OFFSET that are applied outside of the plan.
#[derive(Debug, Clone, Default)]
pub struct OuterLimit {
    pub(crate) offset: Option<Expr>,
    pub(crate) limit: Option<Expr>,
}

impl OuterLimit {
    /// Returns the number of rows to skip, and the limit. Parameters must have values.
    ///
    /// # Errors
    /// SQLSTATE 2201X and 2201W for negative counts.
    pub fn counts(&self) -> SqlResult<(u64, Option<u64>)> {
        let offset = literal_count(self.offset.as_ref(), "OFFSET", Condition::InvalidRowCountInOffset)?;
        let limit = literal_count(self.limit.as_ref(), "LIMIT", Condition::InvalidRowCountInLimit)?;
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

fn literal_count(expr: Option<&Expr>, clause: &str, negative: Condition) -> SqlResult<Option<u64>> {
    match expr {
        None | Some(Expr::Literal(ScalarValue::Int64(None) | ScalarValue::Null, _)) => Ok(None),
        Some(Expr::Literal(ScalarValue::Int64(Some(count)), _)) => match u64::try_from(*count) {
            Ok(count) => Ok(Some(count)),
            Err(_) => Err(SqlError::new(negative, format!("{clause} must not be negative"))),
        },
        Some(_) => Err(SqlError::unsupported(format_args!("a subquery in {clause} of a query that locks rows"))),
    }
}

/// Limit on the operators and expression nodes of a small plan. Most benchmark queries have fewer.
const SMALL_PLAN_NODES: usize = 500;

impl QueryPlan {
    /// Binds values to all parameters, each of its parameter's Arrow type.
    ///
    /// # Errors
    /// SQLSTATE 08P01 for a wrong number of values.
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
        Ok(QueryPlan { plan, parameters: Vec::new(), locked_limit, optimized: OptimizedPlanCache::default(), ..self })
    }

    /// Returns the plan for one run in which the leaf `input` reads these streams.
    #[must_use]
    pub fn with_input_streams(&self, input: &StreamTable, streams: Vec<SendableRecordBatchStream>) -> QueryPlan {
        QueryPlan { state: Arc::new(input.with_streams(&self.state, streams)), ..self.clone() }
    }

    /// Returns a copy with another logical plan.
    pub(crate) fn with_plan(&self, plan: LogicalPlan) -> QueryPlan {
        QueryPlan { plan, optimized: OptimizedPlanCache::default(), ..self.clone() }
    }

    /// Returns whether both share one cache of their optimized plan: whichever runs first is optimized.
    #[must_use]
    pub fn shares_optimized_plan(&self, other: &QueryPlan) -> bool {
        let both = self.optimized.0.as_ref().zip(other.optimized.0.as_ref());
        both.is_some_and(|(own, others)| Arc::ptr_eq(own, others))
    }

    /// Returns the plan with a cache, so that it is optimized on first use, once for all copies.
    #[must_use]
    pub fn with_optimized_plan_cache(self) -> QueryPlan {
        if self.optimized.0.is_some() {
            return self;
        }
        QueryPlan { optimized: OptimizedPlanCache(Some(Arc::default())), ..self }
    }

    /// Returns whether optimization takes a few milliseconds at most: the plan has few nodes, or is optimized
    /// already.
    #[must_use]
    pub fn is_small(&self) -> bool {
        let OptimizedPlanCache(known) = &self.optimized;
        if known.as_ref().is_some_and(|known| known.get().is_some()) {
            return true;
        }
        let mut parts = 0;
        let walked = self.plan.apply_with_subqueries(|node| {
            parts += 1;
            node.apply_expressions(|expr| {
                expr.apply(|_| {
                    parts += 1;
                    Ok(if parts <= SMALL_PLAN_NODES { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
                })
            })?;
            Ok(if parts <= SMALL_PLAN_NODES { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
        });
        walked.is_ok() && parts <= SMALL_PLAN_NODES
    }

    /// Returns the optimized plan, from the cache if there is one. Correlated subqueries in it end when `stop` fires.
    /// The analyzer's rules have run before.
    ///
    /// # Errors
    /// Errors of constant folding (such as division by zero), and internal errors.
    pub async fn optimized(&self, stop: &CancellationToken) -> SqlResult<OptimizedPlan> {
        PlanningStackFuture::new(self.optimize(stop)).await
    }

    async fn optimize(&self, stop: &CancellationToken) -> SqlResult<OptimizedPlan> {
        let OptimizedPlanCache(known) = &self.optimized;
        if let Some(known) = known.as_ref().and_then(|known| known.get()) {
            return Ok(known.clone());
        }
        let _step = Step::Optimize.span().entered();
        let begun = self.planning_timings.start();
        // Not an analyzer rule, because parameters must have values before subplans are hidden inside of functions.
        let dependent = CorrelatedSubqueryRule::new(Arc::clone(&self.state), stop.clone());
        let lower = |plan| dependent.analyze(plan, self.state.config_options());
        let optimized = common_subplans::optimize(self.plan.clone(), &self.state, &lower).map_err(from_datafusion)?;
        self.planning_timings.end(PlanningPhase::Optimization, begun);
        match known {
            // A cached plan with hidden subplans would depend on this run's stop signal.
            Some(known) if !optimized.has_correlated_calls().map_err(from_datafusion)? => {
                // Another run may have filled the cache first.
                let _ = known.set(optimized.clone());
                Ok(optimized)
            }
            _ => Ok(optimized),
        }
    }

    /// Returns the plan optimized without shared rows: each part computes for itself what it reads. `None` if a WITH
    /// query has to be computed once (MATERIALIZED). See [`QueryPlan::optimized`].
    ///
    /// # Errors
    /// Those of [`QueryPlan::optimized`].
    pub async fn optimized_without_sharing(&self, stop: &CancellationToken) -> SqlResult<Option<OptimizedPlan>> {
        // Most plans share nothing.
        if !common_subplans::reads_a_table_twice(&self.plan).map_err(from_datafusion)? {
            let optimized = self.optimized(stop).await?;
            if !optimized.has_shared_tables() {
                return Ok(Some(optimized));
            }
        }
        PlanningStackFuture::new(self.optimize_without_sharing(stop)).await
    }

    async fn optimize_without_sharing(&self, stop: &CancellationToken) -> SqlResult<Option<OptimizedPlan>> {
        let _step = Step::Optimize.span().entered();
        let begun = self.planning_timings.start();
        let dependent = CorrelatedSubqueryRule::new(Arc::clone(&self.state), stop.clone());
        let lower = |plan| dependent.analyze(plan, self.state.config_options());
        let optimized =
            common_subplans::optimize_without_sharing(self.plan.clone(), &self.state, &lower).map_err(from_datafusion);
        self.planning_timings.end(PlanningPhase::Optimization, begun);
        optimized
    }

    /// Returns the tables that the query reads.
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
                LogicalPlan::Extension(_) => makes_rows |= WithQueryReference::from_plan(node).is_none(),
                LogicalPlan::Unnest(_) | LogicalPlan::RecursiveQuery(_) => makes_rows = true,
                _ => {}
            }
            Ok(if reads_rows { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        });
        walked.expect("nothing fails on the way");
        reads_rows || (makes_rows && !reads_system)
    }

    /// Returns the Arrow schema of the rows.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(self.plan.schema().inner())
    }
}
