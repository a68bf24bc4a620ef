//! Plans as chains: one source of rows, and a list of steps that each consume the output of the one before.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use catalog::Table;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchemaRef, JoinType, NullEquality, Result as DfResult, ScalarValue};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan, SortExpr};
use functions::error::from_datafusion;
use functions::{self, Settled};
use plan::{ShardTable, StreamTable};
use session_context::Session;
use types::SqlResult;

/// Maximum number of values in VALUES: as many as a statement can have parameters.
const CELLS_MAX: usize = 65_535;
/// Maximum number of joined tables.
const TABLES_MAX: usize = 6;

/// Plan without subqueries whose joins, if any, are inner joins of tables. Parameters are columns, see
/// [`parameter_column`].
#[derive(Debug, Clone)]
pub(super) struct Chain {
    pub(super) source: Source,
    pub(super) steps: Vec<Step>,
    pub(super) settled: Settled,
    /// Expressions that each statement evaluates once, before it begins, such as `now()`; they are parameters that
    /// precede the statement's own.
    pub(super) moments: Vec<Expr>,
    /// True if the plan belongs to an UPDATE, which may be applied to stored rows.
    pub(super) is_patch: bool,
    /// True if the rows are to be locked: the last two columns identify them.
    pub(super) is_locking: bool,
}

/// Source of a chain's rows.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// Rows of a table in column order, followed, if `places`, by the two columns that identify each row.
    Table { table: Arc<Table>, places: bool },
    /// Cross product of tables, their columns in order; the first step has the join conditions.
    Joined { tables: Vec<Arc<Table>> },
    /// VALUES.
    Rows { rows: Vec<Vec<Expr>>, schema: DFSchemaRef },
    /// UNNEST of arrays that depend on no table.
    Unnested { arrays: Vec<Expr>, schema: DFSchemaRef },
    /// One row without columns.
    OneRow,
    /// Rows that the caller passes to the run.
    Given { schema: DFSchemaRef },
}

/// Step with the schema that its expressions refer to.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) effect: Effect,
    pub(super) input: DFSchemaRef,
}

/// Operation of a step.
#[derive(Debug, Clone)]
pub(super) enum Effect {
    Filter(Expr),
    Project(Vec<Expr>),
    /// Aggregates over all rows, as one row.
    Aggregate(Vec<Expr>),
    Sort(Vec<SortExpr>),
    /// OFFSET and LIMIT.
    Cut {
        skip: Option<Expr>,
        fetch: Option<Expr>,
    },
}

impl Chain {
    /// Converts a plan; `None` if it is not a chain.
    pub(super) fn of(plan: &LogicalPlan) -> Option<Self> {
        let mut chain = Self {
            source: Source::of(leaf(plan))?,
            steps: Vec::new(),
            settled: Settled::WhenPlanned,
            moments: Vec::new(),
            is_patch: false,
            is_locking: false,
        };
        chain.add(plan)?;
        let of_source: Vec<Expr> = match &chain.source {
            Source::Rows { rows, .. } => rows.iter().flatten().cloned().collect(),
            Source::Unnested { arrays, .. } => arrays.clone(),
            _ => Vec::new(),
        };
        chain.admit(&of_source)?;
        Some(chain)
    }

    /// Replaces expressions that have one value per statement, such as `now()`, by parameters that precede the
    /// statement's own.
    pub(super) fn with_moments(mut self) -> DfResult<Self> {
        if self.settled == Settled::WhenPlanned {
            return Ok(self);
        }
        let moments = RefCell::new(std::mem::take(&mut self.moments));
        let left = Cell::new(Settled::WhenPlanned);
        let mut chain = self.mapped(|expr| {
            let expr = expr.transform_down(|node| {
                if !is_moment(&node) {
                    return Ok(Transformed::no(node));
                }
                let mut moments = moments.borrow_mut();
                let at = moments.iter().position(|moment| *moment == node).unwrap_or(moments.len());
                if at == moments.len() {
                    moments.push(node);
                }
                let column = Column::new_unqualified(moment_column(at));
                Ok(Transformed::new(Expr::Column(column), true, TreeNodeRecursion::Jump))
            })?;
            left.set(binder::settled(&expr.data).map_or(Settled::ByStatement, |settled| left.get().max(settled)));
            Ok(expr.data)
        })?;
        chain.moments = moments.into_inner();
        // Only the arguments of aggregates were checked for volatility.
        let is_aggregated = chain.steps.iter().any(|step| matches!(step.effect, Effect::Aggregate(_)));
        chain.settled = if is_aggregated { chain.settled } else { left.get() };
        Ok(chain)
    }

    /// Rewrites expressions that depend on the statement, such as `current_user`, for a session.
    pub(super) fn for_statement(&self, session: &Arc<Session>) -> SqlResult<Self> {
        self.clone().mapped(|expr| binder::for_statement(expr, session)).map_err(from_datafusion)
    }

    fn mapped(mut self, map: impl Fn(Expr) -> DfResult<Expr>) -> DfResult<Self> {
        let all = |exprs: &mut Vec<Expr>| -> DfResult<()> {
            *exprs = std::mem::take(exprs).into_iter().map(&map).collect::<DfResult<_>>()?;
            Ok(())
        };
        match &mut self.source {
            Source::Rows { rows, .. } => rows.iter_mut().try_for_each(all)?,
            Source::Unnested { arrays, .. } => all(arrays)?,
            Source::Table { .. } | Source::Joined { .. } | Source::OneRow | Source::Given { .. } => {}
        }
        for step in &mut self.steps {
            match &mut step.effect {
                Effect::Filter(expr) => *expr = map(expr.clone())?,
                Effect::Project(exprs) | Effect::Aggregate(exprs) => all(exprs)?,
                Effect::Sort(sorts) => {
                    for sort in sorts {
                        sort.expr = map(sort.expr.clone())?;
                    }
                }
                Effect::Cut { skip, fetch } => {
                    for count in [skip, fetch].into_iter().flatten() {
                        *count = map(count.clone())?;
                    }
                }
            }
        }
        Ok(self)
    }

    /// Adds the steps of `plan`, starting at its leaf.
    fn add(&mut self, plan: &LogicalPlan) -> Option<()> {
        let (effect, input) = match plan {
            LogicalPlan::Projection(it) => (Effect::Project(self.admit(&it.expr)?), &it.input),
            LogicalPlan::Filter(it) => {
                (Effect::Filter(self.admit(std::slice::from_ref(&it.predicate))?.pop()?), &it.input)
            }
            LogicalPlan::Aggregate(it) if it.group_expr.is_empty() => {
                (Effect::Aggregate(self.admit_aggregates(&it.aggr_expr)?), &it.input)
            }
            LogicalPlan::SubqueryAlias(it) => return self.add(&it.input),
            LogicalPlan::Sort(it) if it.fetch.is_none() => {
                let exprs: Vec<Expr> = it.expr.iter().map(|sort| sort.expr.clone()).collect();
                let exprs = self.admit(&exprs)?.into_iter().zip(&it.expr);
                (Effect::Sort(exprs.map(|(expr, sort)| SortExpr { expr, ..sort.clone() }).collect()), &it.input)
            }
            LogicalPlan::Limit(it) => {
                let mut count = |count: &Option<Box<Expr>>| match count {
                    Some(count) => Some(self.admit(std::slice::from_ref(&**count))?.pop()),
                    None => Some(None),
                };
                (Effect::Cut { skip: count(&it.skip)?, fetch: count(&it.fetch)? }, &it.input)
            }
            LogicalPlan::TableScan(_)
            | LogicalPlan::Values(_)
            | LogicalPlan::Unnest(_)
            | LogicalPlan::EmptyRelation(_) => return Some(()),
            LogicalPlan::Join(_) => {
                let mut conditions = Vec::new();
                join_conditions(plan, &mut conditions);
                if let Some(condition) = conjunction(self.admit(&conditions)?) {
                    self.steps.push(Step { effect: Effect::Filter(condition), input: Arc::clone(plan.schema()) });
                }
                return Some(());
            }
            _ => return None,
        };
        self.add(input)?;
        let is_cut = |effect: &Effect| matches!(effect, Effect::Cut { .. });
        if is_cut(&effect) && self.steps.iter().any(|step| is_cut(&step.effect)) {
            // A run handles one LIMIT only.
            return None;
        }
        self.steps.push(Step { effect, input: Arc::clone(input.schema()) });
        Some(())
    }

    /// Checks the expressions and replaces placeholders by parameter columns; `None` if a chain cannot have them.
    fn admit(&mut self, exprs: &[Expr]) -> Option<Vec<Expr>> {
        for expr in exprs {
            self.settled = self.settled.max(binder::settled(expr)?);
        }
        exprs.iter().map(|expr| with_parameter_columns(expr.clone())).collect()
    }
}

impl Chain {
    /// Returns true if its rows come from several tables.
    pub(super) fn is_joined(&self) -> bool {
        matches!(self.source, Source::Joined { .. })
    }

    /// Like [`Chain::admit`], for aggregate functions.
    fn admit_aggregates(&mut self, exprs: &[Expr]) -> Option<Vec<Expr>> {
        for expr in exprs {
            let mut expr = expr;
            while let Expr::Alias(alias) = expr {
                expr = &alias.expr;
            }
            let Expr::AggregateFunction(call) = expr else { return None };
            if !call.params.order_by.is_empty() {
                return None;
            }
            self.admit(&call.params.args)?;
            if let Some(filter) = &call.params.filter {
                self.admit(std::slice::from_ref(&**filter))?;
            }
        }
        exprs.iter().map(|expr| with_parameter_columns(expr.clone())).collect()
    }
}

impl Source {
    fn of(leaf: &LogicalPlan) -> Option<Self> {
        match leaf {
            LogicalPlan::TableScan(scan) if scan.projection.is_none() && scan.fetch.is_none() => {
                let provider = source_as_provider(&scan.source).ok()?;
                if provider.downcast_ref::<StreamTable>().is_some() {
                    return Some(Self::Given { schema: Arc::clone(&scan.projected_schema) });
                }
                let table = provider.downcast_ref::<ShardTable>()?;
                // Under time travel, keys of the present cannot be looked up.
                let is_plain = scan.filters.is_empty() && table.pin.is_none() && table.files.is_none();
                is_plain.then(|| Self::Table { table: Arc::clone(&table.table), places: table.places })
            }
            LogicalPlan::Values(values) => {
                let cells: usize = values.values.iter().map(Vec::len).sum();
                let rows = values.values.iter().filter(|_| cells <= CELLS_MAX);
                let rows: Vec<Vec<Expr>> =
                    rows.map(|row| row.iter().cloned().map(with_parameter_columns).collect()).collect::<Option<_>>()?;
                (!rows.is_empty()).then(|| Self::Rows { rows, schema: Arc::clone(&values.schema) })
            }
            LogicalPlan::Unnest(unnest) => {
                let LogicalPlan::Projection(made) = &*unnest.input else { return None };
                let is_of_one_row = matches!(&*made.input, LogicalPlan::EmptyRelation(empty) if empty.produce_one_row);
                // The columns are the elements of the arrays, in the order of the arrays.
                let positions = unnest.list_type_columns.iter().map(|(position, _)| *position);
                let is_side_by_side = positions.eq(0..made.expr.len())
                    && unnest.dependency_indices.iter().copied().eq(0..made.expr.len())
                    && unnest.list_type_columns.iter().all(|(_, list)| list.depth == 1);
                if !is_of_one_row || !is_side_by_side || unnest.options.preserve_nulls() {
                    return None;
                }
                let arrays = made.expr.iter().cloned().map(with_parameter_columns).collect::<Option<_>>()?;
                Some(Self::Unnested { arrays, schema: Arc::clone(&unnest.schema) })
            }
            LogicalPlan::EmptyRelation(empty) if empty.produce_one_row => Some(Self::OneRow),
            LogicalPlan::Join(join) => {
                let mut tables = Vec::new();
                joined_tables(leaf, &mut tables)?;
                let width: usize = tables.iter().map(|table| table.columns.len()).sum();
                (tables.len() <= TABLES_MAX && width == join.schema.fields().len()).then_some(Self::Joined { tables })
            }
            _ => None,
        }
    }
}

/// Collects the tables of inner joins, from left to right.
fn joined_tables(plan: &LogicalPlan, tables: &mut Vec<Arc<Table>>) -> Option<()> {
    match plan {
        LogicalPlan::Join(join) => {
            let is_inner = join.join_type == JoinType::Inner && join.null_equality == NullEquality::NullEqualsNothing;
            if !is_inner || join.null_aware {
                return None;
            }
            joined_tables(&join.left, tables)?;
            joined_tables(&join.right, tables)
        }
        LogicalPlan::SubqueryAlias(alias) => match &*alias.input {
            LogicalPlan::TableScan(_) => joined_tables(&alias.input, tables),
            _ => None,
        },
        LogicalPlan::TableScan(_) => match Source::of(plan)? {
            Source::Table { table, places: false } => {
                tables.push(table);
                Some(())
            }
            _ => None,
        },
        _ => None,
    }
}

/// Collects the conditions of the joins.
fn join_conditions(plan: &LogicalPlan, conditions: &mut Vec<Expr>) {
    let LogicalPlan::Join(join) = plan else { return };
    join_conditions(&join.left, conditions);
    join_conditions(&join.right, conditions);
    conditions.extend(join.on.iter().map(|(left, right)| left.clone().eq(right.clone())));
    conditions.extend(join.filter.iter().map(Expr::clone));
}

/// Returns true if the expression's value differs between statements but not within one.
fn is_moment(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(_) | Expr::Cast(_))
        && binder::settled(expr) == Some(Settled::ByStatement)
        && !expr.is_volatile()
        && !expr.any_column_refs()
}

fn leaf(plan: &LogicalPlan) -> &LogicalPlan {
    match plan {
        LogicalPlan::Projection(it) => leaf(&it.input),
        LogicalPlan::Filter(it) => leaf(&it.input),
        LogicalPlan::SubqueryAlias(it) => leaf(&it.input),
        LogicalPlan::Aggregate(it) => leaf(&it.input),
        LogicalPlan::Sort(it) => leaf(&it.input),
        LogicalPlan::Limit(it) => leaf(&it.input),
        other => other,
    }
}

/// Prefix of the names of parameter columns, which no other column has.
const PARAMETER: &str = "parameter\u{1}";

/// Returns the column name of the parameter `$1`, `$2`, ….
pub(super) fn parameter_column(id: &str) -> String {
    format!("{PARAMETER}{id}")
}

impl Step {
    /// Returns true if the step reads a parameter column.
    pub(super) fn reads_parameters(&self) -> bool {
        let reads = |expr: &Expr| expr.column_refs().iter().any(|column| column.name.starts_with(PARAMETER));
        match &self.effect {
            Effect::Filter(expr) => reads(expr),
            Effect::Project(exprs) | Effect::Aggregate(exprs) => exprs.iter().any(reads),
            Effect::Sort(sorts) => sorts.iter().any(|sort| reads(&sort.expr)),
            // Counts are evaluated before there are rows.
            Effect::Cut { .. } => false,
        }
    }
}

/// Returns the column name of a statement constant.
pub(super) fn moment_column(at: usize) -> String {
    parameter_column(&format!("moment {at}"))
}

/// Replaces placeholders by parameter columns and COALESCE by CASE; `None` for other functions with lazy arguments.
fn with_parameter_columns(expr: Expr) -> Option<Expr> {
    let plain = expr.transform_up(|node| {
        Ok(match node {
            Expr::Placeholder(placeholder) => {
                Transformed::yes(Expr::Column(Column::new_unqualified(parameter_column(&placeholder.id))))
            }
            Expr::ScalarFunction(call) if call.name() == "coalesce" => Transformed::yes(first_value(call.args)),
            other => Transformed::no(other),
        })
    });
    let plain = plain.ok()?.data;
    // Other functions with lazy arguments rely on a rewrite that only the optimizer does.
    let is_lazy = plain.exists(|node| Ok(matches!(node, Expr::ScalarFunction(call) if call.func.short_circuits())));
    (!is_lazy.ok()?).then_some(plain)
}

/// Rewrites COALESCE as a CASE, which evaluates nothing after the first value that is not NULL.
fn first_value(arguments: Vec<Expr>) -> Expr {
    let is_null = |argument: &Expr| matches!(argument, Expr::Literal(value, _) if value.is_null());
    let is_value = |argument: &Expr| matches!(argument, Expr::Literal(value, _) if !value.is_null());
    let null = arguments.last().cloned();
    let mut left: Vec<Expr> = arguments.into_iter().filter(|argument| !is_null(argument)).collect();
    if let Some(value) = left.iter().position(is_value) {
        left.truncate(value + 1);
    }
    let Some(last) = left.pop().or(null) else { return Expr::Literal(ScalarValue::Null, None) };
    if left.is_empty() {
        return last;
    }
    let branches = left.into_iter().map(|value| (Box::new(value.clone().is_not_null()), Box::new(value)));
    Expr::Case(Case::new(None, branches.collect(), Some(Box::new(last))))
}
