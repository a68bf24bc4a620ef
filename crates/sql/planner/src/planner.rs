//! The way of a statement from text to plan. Read this first.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use binder::{Binder, Environment, Planned, QueryPlan, SessionCommand, Step, write};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast;
use plan::{OperatorPlanning, PlanScan};
use session_context::StatementContext;
use syntax::statement::TableSource;
use syntax::{Parsed, Statement};
use types::stack::with_planning_stack;
use types::{Condition, SqlError, SqlResult, SqlType};

use crate::explain;
use crate::kept::KeptPlans;
use crate::session;

/// Makes plans. One for the server, shared by all sessions.
#[derive(Debug)]
pub struct Planner {
    environment: Environment,
    pub(crate) kept: KeptPlans,
    /// Estimated bytes of all [`crate::PreparedPlan`]s.
    pub(crate) prepared_bytes: Arc<AtomicUsize>,
}

impl Planner {
    /// A planner whose scans `scan` makes, whose operators are planned with `operators` and whose plans run in `runtime`, in so many parts at the same
    /// time where settings say nothing else.
    #[must_use]
    pub fn new(scan: Arc<dyn PlanScan>, operators: OperatorPlanning, runtime: Arc<RuntimeEnv>, parts: usize) -> Self {
        let environment = Environment::new(scan, operators, runtime, parts);
        Self { environment, kept: KeptPlans::default(), prepared_bytes: Arc::default() }
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The statements of a query string, in order; none for blanks and comments.
    ///
    /// # Errors
    /// `42601` with the position, `54001` for what nests too deeply.
    pub fn parse(&self, sql: &str) -> SqlResult<Vec<Parsed>> {
        Step::Parse.span().in_scope(|| syntax::parse(sql))
    }

    /// Plans one statement. `parameter_types` are the types the client gave for `$1`, `$2`, …; those it left open are inferred.
    ///
    /// # Errors
    /// Whatever is wrong with the statement; `0A000` for what Kiln does not do.
    pub fn plan(
        &self,
        parsed: &Parsed,
        parameter_types: &[Option<SqlType>],
        context: &Arc<StatementContext>,
    ) -> SqlResult<Planned> {
        Step::Bind.span().in_scope(|| with_planning_stack(|| self.plan_here(parsed, parameter_types, context)))
    }

    /// As [`Planner::plan`], on a stack for planning.
    fn plan_here(
        &self,
        parsed: &Parsed,
        parameter_types: &[Option<SqlType>],
        context: &Arc<StatementContext>,
    ) -> SqlResult<Planned> {
        let binder = Binder::new(&self.environment, context).with_text(parsed).with_parameters(parameter_types);
        match &parsed.statement {
            Statement::Query(query) => self.query(parsed, query, &binder, parameter_types).map(Planned::Query),
            Statement::Insert(insert) => write::insert(&binder, insert, parameter_types).map(Planned::Write),
            Statement::Update(update) => write::update(&binder, update, parameter_types).map(Planned::Modify),
            Statement::Delete(delete) => write::delete(&binder, delete, parameter_types).map(Planned::Modify),
            Statement::Merge(merge) => write::merge(&binder, merge, parameter_types).map(Planned::Modify),
            Statement::Copy(copy) => write::copy(&binder, copy, parameter_types),
            Statement::CreateTable(create) => match &create.source {
                TableSource::Columns { .. } => ddl::create_table(&binder, create).map(Planned::Define),
                TableSource::Clone { table, version } => {
                    ddl::clone_table(&binder, create, table, version.as_deref()).map(Planned::Define)
                }
                TableSource::Query { .. } => ddl::create_as(&binder, create, parameter_types),
            },
            Statement::CreateExternalTable(create) => ddl::create_external_table(&binder, create).map(Planned::Define),
            Statement::CreateView(create) => ddl::create_view(&binder, create).map(Planned::Define),
            Statement::CreateIndex(create) => ddl::create_index(&binder, create).map(Planned::Define),
            Statement::CreateSchema(create) => ddl::create_schema(context, create).map(Planned::Define),
            Statement::CreateSequence(create) => ddl::create_sequence(context, create).map(Planned::Define),
            Statement::AlterSequence(alter) => ddl::alter_sequence(context, alter).map(Planned::Define),
            Statement::CreateRole(create) => ddl::create_role(context, create).map(Planned::Define),
            Statement::AlterTable(alter) => ddl::alter_table(&binder, alter).map(Planned::Define),
            Statement::AlterSchema(alter) => ddl::alter_schema(context, alter).map(Planned::Define),
            Statement::AlterRole(alter) => ddl::alter_role(context, alter).map(Planned::Define),
            Statement::AlterDatabase(alter) => ddl::alter_database(context, alter).map(Planned::Define),
            Statement::Drop(drop) => ddl::drop(context, drop).map(Planned::Define),
            Statement::Undrop(name) => ddl::undrop_table(context, name).map(Planned::Define),
            Statement::Truncate(truncate) => ddl::truncate(context, truncate).map(Planned::Define),
            Statement::Comment(comment) => ddl::comment(context, comment).map(Planned::Define),
            Statement::Cluster(statement) => {
                ddl::cluster(context, statement).map(|command| Planned::Session(SessionCommand::Cluster(command)))
            }
            Statement::Explain(explained) => {
                let inner = self.explained(&explained.statement, parameter_types, context)?;
                explain::explain(&explained.options, inner).map(Planned::Explain)
            }
            Statement::Session(command) => session::plan(&binder, command, parameter_types).map(Planned::Session),
            Statement::Refused(error) => Err(SqlError::clone(error)),
        }
    }

    /// The plan of a query that was asked before, if it would be made the same now.
    #[must_use]
    pub fn known(
        &self,
        parsed: &Parsed,
        parameter_types: &[Option<SqlType>],
        context: &Arc<StatementContext>,
    ) -> Option<QueryPlan> {
        let may_be_kept = may_be_kept(parameter_types, context);
        let is_query = matches!(parsed.statement, Statement::Query(_));
        if may_be_kept && is_query { self.kept.get(&parsed.text, context) } else { None }
    }

    /// The plan of a query, which may be known.
    fn query(
        &self,
        parsed: &Parsed,
        query: &ast::Query,
        binder: &Binder<'_>,
        parameter_types: &[Option<SqlType>],
    ) -> SqlResult<QueryPlan> {
        let context = binder.context();
        let may_be_kept = may_be_kept(parameter_types, context);
        if may_be_kept && let Some(known) = self.kept.get(&parsed.text, context) {
            return Ok(known);
        }
        let plan = binder.locking_query(query, parameter_types)?;
        Ok(if may_be_kept { self.kept.keep(&parsed.text, plan, context) } else { plan })
    }

    /// The plan of what EXPLAIN explains: of a cursor, its query.
    fn explained(
        &self,
        parsed: &Parsed,
        parameter_types: &[Option<SqlType>],
        context: &Arc<StatementContext>,
    ) -> SqlResult<Planned> {
        match self.plan_here(parsed, parameter_types, context)? {
            Planned::Session(SessionCommand::Declare { query, .. }) => Ok(Planned::Query(*query)),
            Planned::Session(SessionCommand::Execute { .. }) => {
                Err(SqlError::internal("EXPLAIN EXECUTE is of the session's prepared statements"))
            }
            other => Ok(other),
        }
    }

    /// Explains `inner`, what the EXECUTE in an `explained` EXPLAIN stands for.
    ///
    /// # Errors
    /// What is wrong with the options; `0A000` for a statement that is not explained.
    pub fn explain_execute(&self, explained: &syntax::statement::Explain, inner: Planned) -> SqlResult<Planned> {
        explain::explain(&explained.options, inner).map(Planned::Explain)
    }

    /// The values of EXECUTE's arguments, of the prepared statement's parameter types.
    ///
    /// # Errors
    /// What is wrong with an argument; a wrong number of them is `42601`.
    pub fn arguments(
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
        let value = |(argument, wanted)| binder.constant(argument, wanted);
        with_planning_stack(|| arguments.iter().zip(types).map(value).collect())
    }
}

/// Whether the plan of a query may be that of another statement: it has no parameters, and the rows of its snapshot.
fn may_be_kept(parameter_types: &[Option<SqlType>], context: &StatementContext) -> bool {
    parameter_types.is_empty() && context.arguments.is_empty() && context.has_rows && context.settings.keeps_plans()
}
