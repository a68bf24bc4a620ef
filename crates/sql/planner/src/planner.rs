//! The planner: parses statements and dispatches each to the crate that plans it.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use binder::{Binder, Environment, QueryPlan, SessionCommand, StatementPlan, Step, write};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast;
use plan::{OperatorPlanning, TableScanPlanner};
use session_context::StatementContext;
use syntax::statement::TableSource;
use syntax::{ParsedStatement, Statement};
use types::stack_limit::with_planning_stack;
use types::{Condition, SqlError, SqlResult, SqlType};

use crate::explain_options;
use crate::plan_cache::PlanCache;
use crate::session;

/// Planner of a server, shared by all sessions.
#[derive(Debug)]
pub struct Planner {
    environment: Environment,
    pub(crate) plan_cache: PlanCache,
    /// Estimated bytes of all [`crate::PreparedPlan`]s.
    pub(crate) prepared_bytes: Arc<AtomicUsize>,
}

impl Planner {
    /// Creates a planner.
    ///
    /// `scan` plans scans of tables and `operators` plans physical operators. Plans run in `runtime`, in `parts`
    /// partitions unless `kiln.target_partitions` says otherwise.
    #[must_use]
    pub fn new(
        scan: Arc<dyn TableScanPlanner>,
        operators: OperatorPlanning,
        runtime: Arc<RuntimeEnv>,
        parts: usize,
    ) -> Self {
        let environment = Environment::new(scan, operators, runtime, parts);
        Self { environment, plan_cache: PlanCache::default(), prepared_bytes: Arc::default() }
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Parses a query string into its statements, in order; blanks and comments give none.
    ///
    /// # Errors
    /// `42601` with the position, `54001` for text that nests too deeply.
    pub fn parse(&self, sql: &str) -> SqlResult<Vec<ParsedStatement>> {
        Step::Parse.span().in_scope(|| syntax::parse(sql))
    }

    /// Plans one statement. `parameter_types` are the types that the client declared for `$1`, `$2`, …; undeclared
    /// ones are inferred.
    ///
    /// # Errors
    /// Errors of the statement; `0A000` for unsupported features.
    pub fn plan(
        &self,
        parsed: &ParsedStatement,
        parameter_types: &[Option<SqlType>],
        context: &Arc<StatementContext>,
    ) -> SqlResult<StatementPlan> {
        Step::Bind
            .span()
            .in_scope(|| with_planning_stack(|| self.plan_on_current_stack(parsed, parameter_types, context)))
    }

    /// Plans one statement as [`Planner::plan`] does; the caller provides a stack for planning.
    fn plan_on_current_stack(
        &self,
        parsed: &ParsedStatement,
        parameter_types: &[Option<SqlType>],
        context: &Arc<StatementContext>,
    ) -> SqlResult<StatementPlan> {
        let binder = Binder::new(&self.environment, context).with_text(parsed).with_parameters(parameter_types);
        match &parsed.statement {
            Statement::Query(query) => {
                self.plan_query(parsed, query, &binder, parameter_types).map(StatementPlan::Query)
            }
            Statement::Insert(insert) => write::plan_insert(&binder, insert, parameter_types).map(StatementPlan::Write),
            Statement::Update(update) => {
                write::plan_update(&binder, update, parameter_types).map(StatementPlan::Modify)
            }
            Statement::Delete(delete) => {
                write::plan_delete(&binder, delete, parameter_types).map(StatementPlan::Modify)
            }
            Statement::Merge(merge) => write::plan_merge(&binder, merge, parameter_types).map(StatementPlan::Modify),
            Statement::Copy(copy) => write::plan_copy(&binder, copy, parameter_types),
            Statement::CreateTable(create) => match &create.source {
                TableSource::Columns { .. } => ddl::create_table(&binder, create).map(StatementPlan::Define),
                TableSource::Clone { table, version } => {
                    ddl::clone_table(&binder, create, table, version.as_deref()).map(StatementPlan::Define)
                }
                TableSource::Query { .. } => ddl::create_as(&binder, create, parameter_types),
            },
            Statement::CreateExternalTable(create) => {
                ddl::create_external_table(&binder, create).map(StatementPlan::Define)
            }
            Statement::CreateView(create) => ddl::create_view(&binder, create).map(StatementPlan::Define),
            Statement::CreateIndex(create) => ddl::create_index(&binder, create).map(StatementPlan::Define),
            Statement::CreateSchema(create) => ddl::create_schema(context, create).map(StatementPlan::Define),
            Statement::CreateSequence(create) => ddl::create_sequence(context, create).map(StatementPlan::Define),
            Statement::AlterSequence(alter) => ddl::alter_sequence(context, alter).map(StatementPlan::Define),
            Statement::CreateRole(create) => ddl::create_role(context, create).map(StatementPlan::Define),
            Statement::AlterTable(alter) => ddl::alter_table(&binder, alter).map(StatementPlan::Define),
            Statement::AlterSchema(alter) => ddl::alter_schema(context, alter).map(StatementPlan::Define),
            Statement::AlterRole(alter) => ddl::alter_role(context, alter).map(StatementPlan::Define),
            Statement::AlterDatabase(alter) => ddl::alter_database(context, alter).map(StatementPlan::Define),
            Statement::Drop(drop) => ddl::drop(context, drop).map(StatementPlan::Define),
            Statement::Undrop(name) => ddl::undrop_table(context, name).map(StatementPlan::Define),
            Statement::Truncate(truncate) => ddl::truncate(context, truncate).map(StatementPlan::Define),
            Statement::Comment(comment) => ddl::comment(context, comment).map(StatementPlan::Define),
            Statement::Cluster(statement) => {
                ddl::cluster(context, statement).map(|command| StatementPlan::Session(SessionCommand::Cluster(command)))
            }
            Statement::Explain(explained) => {
                let inner = self.plan_explained(&explained.statement, parameter_types, context)?;
                explain_options::plan_explain(&explained.options, inner).map(StatementPlan::Explain)
            }
            Statement::Session(command) => session::plan(&binder, command, parameter_types).map(StatementPlan::Session),
            Statement::Unsupported(error) => Err(SqlError::clone(error)),
        }
    }

    /// Returns the cached plan of a query, if planning would give the same plan now.
    #[must_use]
    pub fn cached_plan(
        &self,
        parsed: &ParsedStatement,
        parameter_types: &[Option<SqlType>],
        context: &Arc<StatementContext>,
    ) -> Option<QueryPlan> {
        let may_be_kept = may_be_cached(parameter_types, context);
        let is_query = matches!(parsed.statement, Statement::Query(_));
        if may_be_kept && is_query { self.plan_cache.get(&parsed.text, context) } else { None }
    }

    /// Plans a query, or returns its cached plan.
    fn plan_query(
        &self,
        parsed: &ParsedStatement,
        query: &ast::Query,
        binder: &Binder<'_>,
        parameter_types: &[Option<SqlType>],
    ) -> SqlResult<QueryPlan> {
        let context = binder.context();
        let may_be_kept = may_be_cached(parameter_types, context);
        if may_be_kept && let Some(known) = self.plan_cache.get(&parsed.text, context) {
            return Ok(known);
        }
        let plan = binder.plan_locking_query(query, parameter_types)?;
        Ok(if may_be_kept { self.plan_cache.insert(&parsed.text, plan, context) } else { plan })
    }

    /// Plans the statement under EXPLAIN; DECLARE CURSOR gives the plan of its query.
    fn plan_explained(
        &self,
        parsed: &ParsedStatement,
        parameter_types: &[Option<SqlType>],
        context: &Arc<StatementContext>,
    ) -> SqlResult<StatementPlan> {
        match self.plan_on_current_stack(parsed, parameter_types, context)? {
            StatementPlan::Session(SessionCommand::Declare { query, .. }) => Ok(StatementPlan::Query(*query)),
            StatementPlan::Session(SessionCommand::Execute { .. }) => {
                Err(SqlError::internal("EXPLAIN EXECUTE must be resolved by the session before planning"))
            }
            other => Ok(other),
        }
    }

    /// Plans an EXPLAIN EXECUTE; `inner` is the plan of the prepared statement that EXECUTE runs.
    ///
    /// # Errors
    /// Invalid options; `0A000` for a statement that EXPLAIN does not support.
    pub fn explain_execute(
        &self,
        explained: &syntax::statement::Explain,
        inner: StatementPlan,
    ) -> SqlResult<StatementPlan> {
        explain_options::plan_explain(&explained.options, inner).map(StatementPlan::Explain)
    }

    /// Evaluates the arguments of EXECUTE to values of the prepared statement's parameter types.
    ///
    /// # Errors
    /// Errors of an argument; `42601` for a wrong number of them.
    pub fn evaluate_arguments(
        &self,
        arguments: &[ast::Expr],
        types: &[SqlType],
        context: &Arc<StatementContext>,
    ) -> SqlResult<Vec<ScalarValue>> {
        if arguments.len() != types.len() {
            let message = "wrong number of parameters for prepared statement";
            let detail = format!("Expected {} parameters but got {}.", types.len(), arguments.len());
            return Err(SqlError::new(Condition::SyntaxError, message).with_detail(detail));
        }
        let binder = Binder::new(&self.environment, context);
        let value = |(argument, wanted)| binder.evaluate_constant(argument, wanted);
        with_planning_stack(|| arguments.iter().zip(types).map(value).collect())
    }
}

/// Returns whether a query may use and fill the plan cache: it has no parameters, and its snapshot has the rows.
fn may_be_cached(parameter_types: &[Option<SqlType>], context: &StatementContext) -> bool {
    parameter_types.is_empty() && context.arguments.is_empty() && context.has_rows && context.settings.caches_plans()
}
