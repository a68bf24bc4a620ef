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
use functions::{ValueLifetime, is_coalesce};
use plan::{ShardTable, StreamTable};
use session_context::EvaluationContext;
use types::SqlResult;

/// Maximum number of values in VALUES: as many as a statement can have parameters.
const VALUES_MAX: usize = 65_535;
/// Maximum number of joined tables.
const TABLES_MAX: usize = 6;

/// Plan without subqueries whose joins, if any, are inner joins of tables. Parameters are columns, see
/// [`parameter_column`].
#[derive(Debug, Clone)]
pub(super) struct Chain {
    pub(super) source: Source,
    pub(super) steps: Vec<Step>,
    pub(super) value_lifetime: ValueLifetime,
    /// Expressions that each statement evaluates once, before it begins, such as `now()`; they are parameters that
    /// precede the statement's own.
    pub(super) statement_constants: Vec<Expr>,
    /// True if the plan belongs to an UPDATE, which may be applied to stored rows.
    pub(super) is_update: bool,
    /// True if the rows are to be locked: the last two columns identify them.
    pub(super) locks_rows: bool,
}

/// Source of a chain's rows.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// Rows of a table in column order, followed, if `places`, by the two columns that identify each row.
    Table { table: Arc<Table>, places: bool },
    /// Cross product of tables, their columns in order; the first step has the join conditions.
    InnerJoin { tables: Vec<Arc<Table>> },
    /// VALUES.
    Values { rows: Vec<Vec<Expr>>, schema: DFSchemaRef },
    /// UNNEST of arrays that depend on no table.
    Unnest { arrays: Vec<Expr>, schema: DFSchemaRef },
    /// One row without columns.
    OneRow,
    /// Rows that the caller passes to the run.
    CallerRows { schema: DFSchemaRef },
}

/// Step with the schema that its expressions refer to.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) kind: StepKind,
    pub(super) input: DFSchemaRef,
}

/// Operation of a step.
#[derive(Debug, Clone)]
pub(super) enum StepKind {
    Filter(Expr),
    Project(Vec<Expr>),
    /// Aggregates over all rows, as one row.
    Aggregate(Vec<Expr>),
    Sort(Vec<SortExpr>),
    /// OFFSET and LIMIT.
    Limit {
        skip: Option<Expr>,
        fetch: Option<Expr>,
    },
}

impl Chain {
    /// Converts a plan; `None` if it is not a chain.
    pub(super) fn try_from_plan(plan: &LogicalPlan) -> Option<Self> {
        let mut chain = Self {
            source: Source::try_from_leaf(leaf(plan))?,
            steps: Vec::new(),
            value_lifetime: ValueLifetime::Plan,
            statement_constants: Vec::new(),
            is_update: false,
            locks_rows: false,
        };
        chain.add_steps(plan)?;
        let of_source: Vec<Expr> = match &chain.source {
            Source::Values { rows, .. } => rows.iter().flatten().cloned().collect(),
            Source::Unnest { arrays, .. } => arrays.clone(),
            _ => Vec::new(),
        };
        chain.convert_expressions(&of_source)?;
        Some(chain)
    }

    /// Replaces expressions that have one value per statement, such as `now()`, by parameters that precede the
    /// statement's own.
    pub(super) fn with_statement_constants(mut self) -> DfResult<Self> {
        if self.value_lifetime == ValueLifetime::Plan {
            return Ok(self);
        }
        let moments = RefCell::new(std::mem::take(&mut self.statement_constants));
        let left = Cell::new(ValueLifetime::Plan);
        let mut chain = self.map_expressions(|expr| {
            let expr = expr.transform_down(|node| {
                if !is_statement_constant(&node) {
                    return Ok(Transformed::no(node));
                }
                let mut moments = moments.borrow_mut();
                let at = moments.iter().position(|moment| *moment == node).unwrap_or(moments.len());
                if at == moments.len() {
                    moments.push(node);
                }
                let column = Column::new_unqualified(statement_constant_column(at));
                Ok(Transformed::new(Expr::Column(column), true, TreeNodeRecursion::Jump))
            })?;
            left.set(
                binder::expression_lifetime(&expr.data)
                    .map_or(ValueLifetime::Statement, |settled| left.get().max(settled)),
            );
            Ok(expr.data)
        })?;
        chain.statement_constants = moments.into_inner();
        // Only the arguments of aggregates were checked for volatility.
        let is_aggregated = chain.steps.iter().any(|step| matches!(step.kind, StepKind::Aggregate(_)));
        chain.value_lifetime = if is_aggregated { chain.value_lifetime } else { left.get() };
        Ok(chain)
    }

    /// Rewrites expressions that depend on the statement, such as `current_user`, for a session.
    pub(super) fn for_statement(&self, session: &Arc<EvaluationContext>) -> SqlResult<Self> {
        self.clone().map_expressions(|expr| binder::rebind_to_session(expr, session)).map_err(from_datafusion)
    }

    fn map_expressions(mut self, map: impl Fn(Expr) -> DfResult<Expr>) -> DfResult<Self> {
        let all = |exprs: &mut Vec<Expr>| -> DfResult<()> {
            *exprs = std::mem::take(exprs).into_iter().map(&map).collect::<DfResult<_>>()?;
            Ok(())
        };
        match &mut self.source {
            Source::Values { rows, .. } => rows.iter_mut().try_for_each(all)?,
            Source::Unnest { arrays, .. } => all(arrays)?,
            Source::Table { .. } | Source::InnerJoin { .. } | Source::OneRow | Source::CallerRows { .. } => {}
        }
        for step in &mut self.steps {
            match &mut step.kind {
                StepKind::Filter(expr) => *expr = map(expr.clone())?,
                StepKind::Project(exprs) | StepKind::Aggregate(exprs) => all(exprs)?,
                StepKind::Sort(sorts) => {
                    for sort in sorts {
                        sort.expr = map(sort.expr.clone())?;
                    }
                }
                StepKind::Limit { skip, fetch } => {
                    for count in [skip, fetch].into_iter().flatten() {
                        *count = map(count.clone())?;
                    }
                }
            }
        }
        Ok(self)
    }

    /// Adds the steps of `plan`, starting at its leaf.
    fn add_steps(&mut self, plan: &LogicalPlan) -> Option<()> {
        let (effect, input) = match plan {
            LogicalPlan::Projection(it) => (StepKind::Project(self.convert_expressions(&it.expr)?), &it.input),
            LogicalPlan::Filter(it) => {
                (StepKind::Filter(self.convert_expressions(std::slice::from_ref(&it.predicate))?.pop()?), &it.input)
            }
            LogicalPlan::Aggregate(it) if it.group_expr.is_empty() => {
                (StepKind::Aggregate(self.convert_aggregates(&it.aggr_expr)?), &it.input)
            }
            LogicalPlan::SubqueryAlias(it) => return self.add_steps(&it.input),
            LogicalPlan::Sort(it) if it.fetch.is_none() => {
                let exprs: Vec<Expr> = it.expr.iter().map(|sort| sort.expr.clone()).collect();
                let exprs = self.convert_expressions(&exprs)?.into_iter().zip(&it.expr);
                (StepKind::Sort(exprs.map(|(expr, sort)| SortExpr { expr, ..sort.clone() }).collect()), &it.input)
            }
            LogicalPlan::Limit(it) => {
                let mut count = |count: &Option<Box<Expr>>| match count {
                    Some(count) => Some(self.convert_expressions(std::slice::from_ref(&**count))?.pop()),
                    None => Some(None),
                };
                (StepKind::Limit { skip: count(&it.skip)?, fetch: count(&it.fetch)? }, &it.input)
            }
            LogicalPlan::TableScan(_)
            | LogicalPlan::Values(_)
            | LogicalPlan::Unnest(_)
            | LogicalPlan::EmptyRelation(_) => return Some(()),
            LogicalPlan::Join(_) => {
                let mut conditions = Vec::new();
                collect_join_conditions(plan, &mut conditions);
                if let Some(condition) = conjunction(self.convert_expressions(&conditions)?) {
                    self.steps.push(Step { kind: StepKind::Filter(condition), input: Arc::clone(plan.schema()) });
                }
                return Some(());
            }
            _ => return None,
        };
        self.add_steps(input)?;
        let is_cut = |effect: &StepKind| matches!(effect, StepKind::Limit { .. });
        if is_cut(&effect) && self.steps.iter().any(|step| is_cut(&step.kind)) {
            // A run handles one LIMIT only.
            return None;
        }
        self.steps.push(Step { kind: effect, input: Arc::clone(input.schema()) });
        Some(())
    }

    /// Checks the expressions and replaces placeholders by parameter columns; `None` if a chain cannot have them.
    fn convert_expressions(&mut self, exprs: &[Expr]) -> Option<Vec<Expr>> {
        for expr in exprs {
            self.value_lifetime = self.value_lifetime.max(binder::expression_lifetime(expr)?);
        }
        exprs.iter().map(|expr| with_parameter_columns(expr.clone())).collect()
    }
}

impl Chain {
    /// Returns true if its rows come from several tables.
    pub(super) fn is_joined(&self) -> bool {
        matches!(self.source, Source::InnerJoin { .. })
    }

    /// Like [`Chain::convert_expressions`], for aggregate functions.
    fn convert_aggregates(&mut self, exprs: &[Expr]) -> Option<Vec<Expr>> {
        for expr in exprs {
            let mut expr = expr;
            while let Expr::Alias(alias) = expr {
                expr = &alias.expr;
            }
            let Expr::AggregateFunction(call) = expr else { return None };
            if !call.params.order_by.is_empty() {
                return None;
            }
            self.convert_expressions(&call.params.args)?;
            if let Some(filter) = &call.params.filter {
                self.convert_expressions(std::slice::from_ref(&**filter))?;
            }
        }
        exprs.iter().map(|expr| with_parameter_columns(expr.clone())).collect()
    }
}

impl Source {
    fn try_from_leaf(leaf: &LogicalPlan) -> Option<Self> {
        match leaf {
            LogicalPlan::TableScan(scan) if scan.projection.is_none() && scan.fetch.is_none() => {
                let provider = source_as_provider(&scan.source).ok()?;
                if provider.downcast_ref::<StreamTable>().is_some() {
                    return Some(Self::CallerRows { schema: Arc::clone(&scan.projected_schema) });
                }
                let table = provider.downcast_ref::<ShardTable>()?;
                // Under time travel, keys of the present cannot be looked up.
                let is_plain = scan.filters.is_empty() && table.pin.is_none() && table.files.is_none();
                is_plain.then(|| Self::Table { table: Arc::clone(&table.table), places: table.has_row_positions })
            }
            LogicalPlan::Values(values) => {
                let cells: usize = values.values.iter().map(Vec::len).sum();
                let rows = values.values.iter().filter(|_| cells <= VALUES_MAX);
                let rows: Vec<Vec<Expr>> =
                    rows.map(|row| row.iter().cloned().map(with_parameter_columns).collect()).collect::<Option<_>>()?;
                (!rows.is_empty()).then(|| Self::Values { rows, schema: Arc::clone(&values.schema) })
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
                Some(Self::Unnest { arrays, schema: Arc::clone(&unnest.schema) })
            }
            LogicalPlan::EmptyRelation(empty) if empty.produce_one_row => Some(Self::OneRow),
            LogicalPlan::Join(join) => {
                let mut tables = Vec::new();
                collect_joined_tables(leaf, &mut tables)?;
                let width: usize = tables.iter().map(|table| table.columns.len()).sum();
                (tables.len() <= TABLES_MAX && width == join.schema.fields().len())
                    .then_some(Self::InnerJoin { tables })
            }
            _ => None,
        }
    }
}

/// Collects the tables of inner joins, from left to right.
fn collect_joined_tables(plan: &LogicalPlan, tables: &mut Vec<Arc<Table>>) -> Option<()> {
    match plan {
        LogicalPlan::Join(join) => {
            let is_inner = join.join_type == JoinType::Inner && join.null_equality == NullEquality::NullEqualsNothing;
            if !is_inner || join.null_aware {
                return None;
            }
            collect_joined_tables(&join.left, tables)?;
            collect_joined_tables(&join.right, tables)
        }
        LogicalPlan::SubqueryAlias(alias) => match &*alias.input {
            LogicalPlan::TableScan(_) => collect_joined_tables(&alias.input, tables),
            _ => None,
        },
        LogicalPlan::TableScan(_) => match Source::try_from_leaf(plan)? {
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
fn collect_join_conditions(plan: &LogicalPlan, conditions: &mut Vec<Expr>) {
    let LogicalPlan::Join(join) = plan else { return };
    collect_join_conditions(&join.left, conditions);
    collect_join_conditions(&join.right, conditions);
    conditions.extend(join.on.iter().map(|(left, right)| left.clone().eq(right.clone())));
    conditions.extend(join.filter.iter().map(Expr::clone));
}

/// Returns true if the expression's value differs between statements but not within one.
fn is_statement_constant(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(_) | Expr::Cast(_))
        && binder::expression_lifetime(expr) == Some(ValueLifetime::Statement)
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

/// Prefix of the names of parameter columns. No other column has it: no identifier and no text of SQL contains NUL.
const PARAMETER_PREFIX: &str = "parameter\0";

/// Returns the column name of the parameter `$1`, `$2`, ….
pub(super) fn parameter_column(id: &str) -> String {
    format!("{PARAMETER_PREFIX}{id}")
}

/// Removes the prefix of parameter columns from an expression's text.
pub(super) fn without_parameter_prefix(text: &str) -> String {
    text.replace(PARAMETER_PREFIX, "")
}

impl Step {
    /// Returns true if the step reads a parameter column.
    pub(super) fn reads_parameters(&self) -> bool {
        let reads = |expr: &Expr| expr.column_refs().iter().any(|column| column.name.starts_with(PARAMETER_PREFIX));
        match &self.kind {
            StepKind::Filter(expr) => reads(expr),
            StepKind::Project(exprs) | StepKind::Aggregate(exprs) => exprs.iter().any(reads),
            StepKind::Sort(sorts) => sorts.iter().any(|sort| reads(&sort.expr)),
            // Counts are evaluated before there are rows.
            StepKind::Limit { .. } => false,
        }
    }
}

/// Returns the column name of a statement constant.
pub(super) fn statement_constant_column(at: usize) -> String {
    parameter_column(&format!("moment {at}"))
}

/// Replaces placeholders by parameter columns and COALESCE by CASE; `None` for other functions with lazy arguments.
fn with_parameter_columns(expr: Expr) -> Option<Expr> {
    let plain = expr.transform_up(|node| {
        Ok(match node {
            Expr::Placeholder(placeholder) => {
                Transformed::yes(Expr::Column(Column::new_unqualified(parameter_column(&placeholder.id))))
            }
            Expr::ScalarFunction(call) if is_coalesce(&call.func) => Transformed::yes(coalesce_to_case(call.args)),
            other => Transformed::no(other),
        })
    });
    let plain = plain.ok()?.data;
    // Other functions with lazy arguments rely on a rewrite that only the optimizer does.
    let is_lazy = plain.exists(|node| Ok(matches!(node, Expr::ScalarFunction(call) if call.func.short_circuits())));
    (!is_lazy.ok()?).then_some(plain)
}

/// Rewrites COALESCE as a CASE, which evaluates nothing after the first value that is not NULL.
fn coalesce_to_case(arguments: Vec<Expr>) -> Expr {
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
