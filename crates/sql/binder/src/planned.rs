//! The plan of a statement: all that its execution needs, with nothing left to look up.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use arrow::datatypes::SchemaRef;
use catalog::{Change, Column, Table};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::datasource::source_as_provider;
use datafusion::execution::{SendableRecordBatchStream, SessionState};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_plan::ExecutionPlan;
use functions::error::from_datafusion;
use optimizer::IsWhole;
use optimizer::dependent::DependentSubqueries;
use optimizer::shared::{self, Optimized};
use plan::{ShardTable, StreamTable};
use session_context::Pin;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use types::stack::{PlanningStack, with_planning_stack};
use types::{ColumnId, Condition, LockMode, LockWait, Oid, SqlError, SqlResult, SqlType};

use crate::bind::{depends_on_digits, holds_for_digits, undivided};
use crate::phases::{Phase, Phases};
use crate::session_command::{SessionCommand, check_storage_columns};
use crate::step::Step;
use crate::write::CopyOptions;

/// A statement, planned against one snapshot.
#[derive(Debug, Clone)]
pub enum Planned {
    /// Rows for the client.
    Query(QueryPlan),
    /// Rows for a table.
    Write(WritePlan),
    /// Rows of a table that change, go or come.
    Modify(ModifyPlan),
    /// Changes of the catalog.
    Define(DefinePlan),
    CopyFrom(CopyFromPlan),
    CopyTo(CopyToPlan),
    Explain(ExplainPlan),
    /// What concerns the session or its transaction alone.
    Session(SessionCommand),
}

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

/// How operators are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Division {
    /// Not at all: for programs, which divide rows among threads by themselves. Such plans are made sooner.
    None,
    /// For as many threads as the settings say.
    Threads,
}

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

    /// The operators that run the plan, and fail with `57014` soon after `stop` fires.
    ///
    /// # Errors
    /// Whatever constant folding meets (division by zero), what scans find wrong when they are planned, and bugs.
    pub async fn physical(&self, stop: &CancellationToken) -> SqlResult<Arc<dyn ExecutionPlan>> {
        self.operators(&self.optimized(stop).await?, Division::Threads, stop).await
    }

    /// The operators of one run of what [`QueryPlan::optimized`] gave.
    ///
    /// # Errors
    /// As [`QueryPlan::physical`].
    pub async fn operators(
        &self,
        optimized: &Optimized,
        division: Division,
        stop: &CancellationToken,
    ) -> SqlResult<Arc<dyn ExecutionPlan>> {
        let begun = self.phases.begin();
        let state = match division {
            Division::None => Cow::Owned(undivided(&self.state)),
            Division::Threads => Cow::Borrowed(self.state.as_ref()),
        };
        let operators = optimized.operators(&state, stop).instrument(Step::PlanOperators.span()).await;
        self.phases.end(Phase::Operators, begun);
        operators
    }

    /// Operators of [`Division::None`], programs among them, with as many partitions as the settings say; likewise those of shared rows, unless
    /// `is_whole` says that programs run all of them.
    ///
    /// # Errors
    /// `54001` for too many levels.
    pub fn partitioned(
        &self,
        operators: Arc<dyn ExecutionPlan>,
        is_whole: IsWhole<'_>,
        stop: &CancellationToken,
    ) -> SqlResult<Arc<dyn ExecutionPlan>> {
        let _step = Step::Partition.span().entered();
        let begun = self.phases.begin();
        let partitioned = with_planning_stack(|| optimizer::partitioned(operators, &self.state, is_whole, stop));
        self.phases.end(Phase::Operators, begun);
        partitioned.map_err(from_datafusion)
    }

    /// The tables that it reads.
    fn tables_read(&self) -> BTreeSet<Oid> {
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

    fn needs_worker(&self) -> bool {
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

/// Rows to be added to a table.
#[derive(Debug, Clone)]
pub struct WritePlan {
    pub table: Arc<Table>,
    /// To be staged before the rows are written: for CREATE TABLE AS, the table.
    pub before: Vec<Change>,
    /// All columns of the table in order, of exactly their types; defaults, NOT NULL and CHECK are inside. Those of RETURNING follow.
    /// `None` when there are no rows to write (WITH NO DATA).
    pub input: Option<QueryPlan>,
    /// First word of the command tag: `INSERT` or `SELECT`.
    pub tag: &'static str,
    pub notices: Vec<SqlError>,
    /// The columns that RETURNING gives; `None` without one.
    pub returning: Option<Vec<OutputColumn>>,
    /// ON CONFLICT.
    pub conflict: Option<Box<ConflictPlan>>,
}

/// What an INSERT does about rows whose key is taken.
#[derive(Debug, Clone)]
pub struct ConflictPlan {
    /// Keys whose violation is a conflict: ids of enforced primary and unique keys and of unique indexes, all of the table's if none is named.
    pub arbiters: Vec<Oid>,
    /// DO UPDATE; `None` is DO NOTHING.
    pub update: Option<ConflictUpdate>,
    /// For rows that refer to what DO UPDATE changes.
    pub references: ReferencePlans,
}

/// `ON CONFLICT … DO UPDATE`.
#[derive(Debug, Clone)]
pub struct ConflictUpdate {
    /// Reads `input`; its columns are those of [`ModifyPlan::input`] with [`Action::Update`]. Rows for which WHERE does not hold are absent.
    pub plan: QueryPlan,
    /// The leaf of `plan`: `__row_id`, `__place`, the columns of the row that is there, then those of the row that was to be inserted.
    pub input: Arc<StreamTable>,
    /// Columns whose old values `plan` gives, as [`ModifyPlan::old`].
    pub old: Vec<ColumnId>,
}

/// What becomes of rows that refer to a row whose key goes or changes: as [`ConflictUpdate`], where in the place of the row that was to be
/// inserted stands the row with its new key. Nothing where the rows are deleted, or must not be there.
#[derive(Debug, Clone)]
pub struct ReferencePlan {
    pub delete: Option<ConflictUpdate>,
    pub update: Option<ConflictUpdate>,
}

/// By the ids of foreign keys.
pub type ReferencePlans = Arc<BTreeMap<Oid, ReferencePlan>>;

/// UPDATE, DELETE, MERGE: rows of one table that change, go or come.
#[derive(Debug, Clone)]
pub struct ModifyPlan {
    pub table: Arc<Table>,
    /// In order: `__action` (an [`Action`], Arrow's Int8), `__row_id` and `__place` (both NULL for an insert), all columns of the table (new
    /// values, cast, with defaults, NOT NULL and CHECK asked; NULLs for a delete), the old values of `old`, the columns of RETURNING.
    pub input: QueryPlan,
    /// Columns whose old values are needed: those that an enforced foreign key refers to and that the statement may change.
    pub old: Vec<ColumnId>,
    /// For rows that refer to those.
    pub references: ReferencePlans,
    /// The columns that RETURNING gives; `None` without one.
    pub returning: Option<Vec<OutputColumn>>,
    /// First word of the command tag: `UPDATE`, `DELETE` or `MERGE`.
    pub tag: &'static str,
    pub notices: Vec<SqlError>,
}

/// What happens to a row of a [`ModifyPlan`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub enum Action {
    Nothing = 0,
    Insert = 1,
    Update = 2,
    Delete = 3,
}

impl Action {
    /// The action that a value of the column `__action` means.
    #[must_use]
    pub fn of(value: i8) -> Option<Self> {
        [Self::Nothing, Self::Insert, Self::Update, Self::Delete].into_iter().find(|action| *action as i8 == value)
    }
}

/// Changes of the catalog, all or nothing.
#[derive(Debug, Clone, Default)]
pub struct DefinePlan {
    /// To be staged in this order.
    pub changes: Vec<Change>,
    /// The whole command tag: `CREATE TABLE`.
    pub tag: String,
    pub notices: Vec<SqlError>,
    /// To be asked before the changes are staged: a constraint must hold for the rows that are there.
    pub checks: Vec<RowCheck>,
    /// Passwords to be turned into verifiers of the roles that `changes` puts.
    pub passwords: Vec<Password>,
    /// To be run once the changes are staged: rows that are there get values of their own in new columns.
    pub fill: Option<Box<ModifyPlan>>,
    /// What cannot run in a transaction block, by its name in the error.
    pub outside_block: Option<&'static str>,
    /// What keeps the rows of the past that `changes` copy.
    pub pins: Vec<Pin>,
    /// The table whose present rows `changes` copy.
    pub copied: Option<Oid>,
}

/// A query that must give no row.
#[derive(Debug, Clone)]
pub struct RowCheck {
    /// At most one row.
    pub query: QueryPlan,
    /// What to say if it gives one.
    pub violation: SqlError,
}

/// `PASSWORD 'text'` of CREATE ROLE or ALTER ROLE; `None` takes the password away.
#[derive(Clone, PartialEq, Eq)]
pub struct Password {
    pub role: Oid,
    pub text: Option<String>,
}

/// Passwords stay out of logs.
impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Password").field("role", &self.role).finish_non_exhaustive()
    }
}

/// `COPY table FROM`.
#[derive(Debug, Clone)]
pub struct CopyFromPlan {
    pub table: Arc<Table>,
    /// The columns that a record fills, in the record's order.
    pub columns: Vec<Column>,
    pub source: CopySource,
    pub options: CopyOptions,
    /// Reads `input`, adds defaults, checks constraints.
    pub write: WritePlan,
    /// The leaf of `write`: fed with batches of `columns`, each of its column's Arrow type.
    pub input: Arc<StreamTable>,
}

/// Where COPY FROM reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopySource {
    Stdin,
    /// A path on the server; may contain `*`.
    File(String),
    /// `s3://…`, `gs://…`, `az://…`, `file://…`
    Url(String),
}

/// `COPY … TO`.
#[derive(Debug, Clone)]
pub struct CopyToPlan {
    pub query: QueryPlan,
    pub target: CopyTarget,
    pub options: CopyOptions,
}

/// Where COPY TO writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyTarget {
    Stdout,
    File(String),
    Url(String),
}

/// `EXPLAIN`.
#[derive(Debug, Clone)]
pub struct ExplainPlan {
    /// A query, a write or a COPY.
    pub inner: Box<Planned>,
    /// Run it and report what happened.
    pub analyze: bool,
    /// Every expression of every operator.
    pub verbose: bool,
    /// Estimates of rows and costs.
    pub costs: bool,
    /// Times per operator, with ANALYZE.
    pub timing: bool,
    /// Planning and execution time at the end.
    pub summary: bool,
    pub format: ExplainFormat,
}

impl ExplainPlan {
    /// What planning the query in it takes.
    #[must_use]
    pub fn phases(&self) -> Option<&Phases> {
        self.inner.phases()
    }
}

/// What EXPLAIN prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExplainFormat {
    #[default]
    Text,
    Json,
}

impl Planned {
    /// The columns of the rows that the statement answers with; `None` if it answers with none.
    #[must_use]
    pub fn columns(&self) -> Option<Vec<OutputColumn>> {
        match self {
            Planned::Query(query) => Some(query.columns.clone()),
            Planned::Explain(explain) => Some(vec![explain.column()]),
            Planned::Session(SessionCommand::CheckStorage) => Some(check_storage_columns()),
            Planned::Session(SessionCommand::Show(query)) => Some(query.columns.clone()),
            Planned::Write(write) => write.returning.clone(),
            Planned::Modify(modify) => modify.returning.clone(),
            _ => None,
        }
    }

    /// The tables whose rows the statement reads, itself or by its subqueries and views.
    #[must_use]
    pub fn tables_read(&self) -> BTreeSet<Oid> {
        match self {
            Planned::Query(query) => query.tables_read(),
            Planned::Write(write) => {
                let update = write.conflict.as_ref().and_then(|conflict| conflict.update.as_ref());
                let plans = write.input.iter().chain(update.map(|update| &update.plan));
                plans.flat_map(QueryPlan::tables_read).collect()
            }
            Planned::Modify(modify) => modify.input.tables_read(),
            Planned::CopyTo(copy) => copy.query.tables_read(),
            Planned::Define(define) => define.copied.into_iter().collect(),
            Planned::Explain(explain) => explain.inner.tables_read(),
            Planned::Session(SessionCommand::Declare { query, .. }) => query.tables_read(),
            Planned::Session(_) | Planned::CopyFrom(_) => BTreeSet::new(),
        }
    }

    /// Whether a worker has to run it. What reads system tables alone, or nothing, runs beside the session.
    #[must_use]
    pub fn needs_worker(&self) -> bool {
        match self {
            Planned::Query(query) => query.needs_worker(),
            Planned::Write(write) => write.input.is_some(),
            Planned::Modify(_) | Planned::CopyFrom(_) => true,
            Planned::CopyTo(copy) => copy.query.needs_worker(),
            Planned::Define(define) => !define.checks.is_empty() || define.fill.is_some(),
            Planned::Explain(explain) => explain.analyze && explain.inner.needs_worker(),
            Planned::Session(SessionCommand::Declare { query, .. }) => query.needs_worker(),
            Planned::Session(_) => false,
        }
    }

    /// Whether the digits of numeric parameters, which have no values yet, decide what the plan is: such a plan is made for each digits.
    #[must_use]
    pub fn depends_on_digits(&self) -> bool {
        self.row_plans().into_iter().any(|query| depends_on_digits(&query.plan))
    }

    /// Whether the plan, which was made for the digits of numeric parameters, holds for all values of these digits.
    #[must_use]
    pub fn holds_for_digits(&self) -> bool {
        self.row_plans().into_iter().all(|query| holds_for_digits(&query.plan))
    }

    /// Whether something in it was read that means something else at another time: `'today'`.
    #[must_use]
    pub fn has_read_now(&self) -> bool {
        self.row_plans().into_iter().any(|query| query.has_read_now)
    }

    /// The plans of the rows that a query gives, or that are written or changed.
    fn row_plans(&self) -> Vec<&QueryPlan> {
        match self {
            Planned::Query(query) => vec![query],
            Planned::Write(write) => {
                let update = write.conflict.as_ref().and_then(|conflict| conflict.update.as_ref());
                write.input.iter().chain(update.map(|update| &update.plan)).collect()
            }
            Planned::Modify(modify) => vec![&modify.input],
            _ => Vec::new(),
        }
    }

    /// What planning its query takes, where it has one.
    #[must_use]
    pub fn phases(&self) -> Option<&Phases> {
        match self {
            Planned::Query(query) => Some(&query.phases),
            Planned::CopyTo(copy) => Some(&copy.query.phases),
            Planned::Write(write) => write.input.as_ref().map(|input| &input.phases),
            Planned::Modify(modify) => Some(&modify.input.phases),
            Planned::Session(SessionCommand::Declare { query, .. }) => Some(&query.phases),
            _ => None,
        }
    }

    /// The types of `$1`, `$2`, …
    #[must_use]
    pub fn parameters(&self) -> Vec<SqlType> {
        match self {
            Planned::Query(query) => query.parameters.clone(),
            Planned::Write(write) => write.input.as_ref().map_or_else(Vec::new, |input| input.parameters.clone()),
            Planned::Modify(modify) => modify.input.parameters.clone(),
            Planned::CopyTo(copy) => copy.query.parameters.clone(),
            Planned::Explain(explain) => explain.inner.parameters(),
            Planned::Session(SessionCommand::Declare { query, .. }) => query.parameters.clone(),
            Planned::Session(_) | Planned::Define(_) | Planned::CopyFrom(_) => Vec::new(),
        }
    }

    /// The statement with values for all of its parameters, each of its parameter's Arrow type.
    ///
    /// # Errors
    /// As [`QueryPlan::with_parameters`].
    pub fn with_parameters(self, values: Vec<ScalarValue>) -> SqlResult<Planned> {
        Ok(match self {
            Planned::Query(query) => Planned::Query(query.with_parameters(values)?),
            Planned::Write(mut write) => {
                if let Some(update) = write.conflict.as_mut().and_then(|conflict| conflict.update.as_mut()) {
                    update.plan = update.plan.clone().with_parameters(values.clone())?;
                }
                write.input = write.input.map(|input| input.with_parameters(values)).transpose()?;
                Planned::Write(write)
            }
            Planned::Modify(mut modify) => {
                modify.input = modify.input.with_parameters(values)?;
                Planned::Modify(modify)
            }
            Planned::CopyTo(mut copy) => {
                copy.query = copy.query.with_parameters(values)?;
                Planned::CopyTo(copy)
            }
            Planned::Explain(mut explain) => {
                explain.inner = Box::new(explain.inner.with_parameters(values)?);
                Planned::Explain(explain)
            }
            Planned::Session(SessionCommand::Declare { name, query, hold, scroll, binary }) => {
                let query = Box::new(query.with_parameters(values)?);
                Planned::Session(SessionCommand::Declare { name, query, hold, scroll, binary })
            }
            other => other,
        })
    }
}

impl ExplainPlan {
    /// The one column of the answer.
    #[must_use]
    pub fn column(&self) -> OutputColumn {
        let sql_type = match self.format {
            ExplainFormat::Text => SqlType::Text,
            ExplainFormat::Json => SqlType::Json,
        };
        OutputColumn { name: "QUERY PLAN".to_owned(), sql_type, table: None, column: None }
    }
}
