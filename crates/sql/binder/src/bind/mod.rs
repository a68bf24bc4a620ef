//! Binder: turns a parsed query into a logical plan with PostgreSQL's semantics.
//!
//! A query (`query.rs`) passes these steps: its output columns get PostgreSQL's names (`output_name.rs`), its syntax
//! is rewritten to forms that DataFusion can plan (`crate::rewrite`, `crate::semantics`), every name is resolved
//! (`resolve/`), DataFusion's `SqlToRel` builds the plan from relations and functions that `provider.rs` finds, and
//! the analyzer's rules resolve the type of every expression. `state.rs` has the settings and rules that a plan is
//! built and run with.
//!
//! - names: `relation.rs`, `view.rs`, `place.rs` (error positions), `named_columns.rs` (column pruning),
//!   `plan_names.rs` (internal names), `undefined.rs`, `cast_type.rs`,
//! - time travel and external files: `as_of.rs`, `moment.rs`, `missing.rs`,
//! - parameters and expressions: `parameter.rs`, `parameter_digits.rs`, `expression.rs`, `row_count.rs` and
//!   `asked_count.rs` (LIMIT and OFFSET),
//! - limits and workarounds for DataFusion: `expansion.rs`, `type_cost.rs`, `group_keys.rs`, `many_windows.rs`,
//!   `with_queries.rs`,
//! - statements that change rows: `modification.rs`, `changed.rs`.

mod as_of;
mod asked_count;
mod cast_type;
pub(crate) mod changed;
mod expansion;
mod expression;
mod group_keys;
mod many_windows;
mod missing;
pub(crate) mod modification;
mod moment;
mod named_columns;
mod output_name;
mod parameter;
mod parameter_digits;
mod place;
pub(crate) mod plan_names;
mod provider;
mod query;
mod relation;
mod resolve;
mod row_count;
mod state;
mod type_cost;
mod undefined;
mod view;
mod with_queries;

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use catalog::{Column, Relation};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast;
use session_context::{Pin, Session, StatementContext};
use syntax::statement::Returning;
use syntax::{Parsed, sql_type};
use types::{Oid, SqlResult, SqlType};

pub use self::as_of::moment_of;
pub use self::asked_count::{LIMIT_UNKNOWN, count_of};
use self::changed::Changed;
use self::modification::Modification;
pub use self::moment::statement_at;
pub use self::parameter::index as parameter_index;
pub(crate) use self::parameter::settled;
pub use self::parameter::types_with_values;
pub use self::parameter_digits::is_numeric;
pub(crate) use self::parameter_digits::{depends_on_digits, holds_for_digits};
use self::place::Text;
pub use self::state::Environment;
pub use self::state::parts_within;
pub use self::state::undivided;
use crate::Phases;
use crate::query_plan::{OutputColumn, QueryPlan};

/// Binder of one statement's queries and expressions. Cheap to create.
pub struct Binder<'a> {
    environment: &'a Environment,
    context: &'a Arc<StatementContext>,
    /// Role whose privileges apply to reads: within a view, the view's owner.
    reader: Oid,
    session: Arc<Session>,
    state: OnceLock<Arc<SessionState>>,
    /// Pin on the objects of the historical snapshot that the query reads; `None` for current data.
    pin: Option<Pin>,
    /// Number of views being expanded, to detect recursion.
    depth: usize,
    text: Text<'a>,
    /// Parameter types declared by the client.
    parameter_types: &'a [Option<SqlType>],
    /// Types of parameters that occur in no plan, such as in AS OF.
    noted: RefCell<Vec<Option<SqlType>>>,
    phases: Phases,
}

impl<'a> Binder<'a> {
    /// Creates the binder of one statement.
    #[must_use]
    pub fn new(environment: &'a Environment, context: &'a Arc<StatementContext>) -> Self {
        let session = Arc::new(system_catalog::session(context));
        Self {
            environment,
            context,
            reader: context.role.oid,
            pin: None,
            session,
            state: OnceLock::new(),
            depth: 0,
            text: Text::default(),
            parameter_types: &[],
            noted: RefCell::default(),
            phases: Phases::by(&context.clock),
        }
    }

    /// Sets the types that the client declared for `$1`, `$2`, …
    pub fn with_parameters(self, parameter_types: &'a [Option<SqlType>]) -> Self {
        Self { parameter_types, ..self }
    }

    /// Records the types of parameters that do not occur in the plan.
    fn note_parameters(&self, types: &[SqlType]) {
        let mut noted = self.noted.borrow_mut();
        let count = noted.len().max(types.len());
        noted.resize(count, None);
        for (noted, sql_type) in noted.iter_mut().zip(types).filter(|(_, sql_type)| **sql_type != SqlType::Unknown) {
            noted.get_or_insert_with(|| sql_type.clone());
        }
    }

    /// Completes `types` with the recorded types of parameters that do not occur in a plan.
    pub fn add_noted(&self, types: &mut Vec<Option<SqlType>>) {
        let noted = self.noted.borrow();
        let count = noted.len().max(types.len());
        types.resize(count, None);
        for (known, noted) in types.iter_mut().zip(noted.iter()).filter(|(known, _)| known.is_none()) {
            known.clone_from(noted);
        }
    }

    /// Adds positions in the client's text to errors.
    pub fn with_text(self, parsed: &'a Parsed) -> Self {
        Self { text: Text::of(parsed), ..self }
    }

    /// Plans a query. `parameter_types` are the types that the client declared for `$1`, `$2`, …
    ///
    /// # Errors
    /// Errors of the query; SQLSTATE 0A000 for unsupported features.
    pub fn query(&self, query: &ast::Query, parameter_types: &[Option<SqlType>]) -> SqlResult<QueryPlan> {
        query::plan(self, query, parameter_types)
    }

    /// Plans a query that may lock the rows it reads. See [`Binder::query`].
    ///
    /// # Errors
    /// Those of [`Binder::query`]; SQLSTATE 0A000 if its results are not rows of tables.
    pub fn locking_query(&self, query: &ast::Query, parameter_types: &[Option<SqlType>]) -> SqlResult<QueryPlan> {
        query::plan_locking(self, query, parameter_types)
    }

    /// Plans a query that is part of a statement: parameters that occur only in other parts keep an unknown type. See
    /// [`Binder::query`].
    ///
    /// # Errors
    /// Those of [`Binder::query`].
    pub fn part(&self, query: &ast::Query, parameter_types: &[Option<SqlType>]) -> SqlResult<QueryPlan> {
        query::plan_part(self, query, parameter_types)
    }

    /// Resolves every name of a query: relations get their schemas and unique aliases, columns are qualified, `*` is
    /// expanded. The result means the same under any search path, and binding it again gives the same plan.
    ///
    /// # Errors
    /// Errors of the names.
    pub fn settled(&self, query: &ast::Query) -> SqlResult<ast::Query> {
        query::settle(self, query)
    }

    /// Resolves the names of a statement that changes rows of a table.
    ///
    /// # Errors
    /// Errors of the names.
    pub(crate) fn modification(&self, written: Modification<'_>) -> SqlResult<modification::Bound> {
        modification::bind(self, written)
    }

    /// Plans such a statement: the columns `columns` of the rows that `complete` computes from those that are read,
    /// then the columns of RETURNING, which are also returned separately. Parameters are treated as in
    /// [`Binder::part`].
    ///
    /// # Errors
    /// Errors of the statement, and those of `complete`.
    pub(crate) fn modified(
        &self,
        bound: &modification::Bound,
        parameter_types: &[Option<SqlType>],
        columns: &[String],
        complete: impl Fn(LogicalPlan) -> SqlResult<LogicalPlan>,
    ) -> SqlResult<(QueryPlan, Option<Vec<OutputColumn>>)> {
        modification::plan(self, bound, parameter_types, columns, complete)
    }

    /// Plans the RETURNING of an INSERT: the columns `columns` of the rows `made`, then the columns of RETURNING,
    /// which are also returned separately.
    ///
    /// # Errors
    /// Errors of RETURNING.
    pub(crate) fn inserted(
        &self,
        with: Option<&ast::With>,
        changed: &Changed<'_>,
        returning: &Returning,
        made: &LogicalPlan,
        parameter_types: &[Option<SqlType>],
        columns: &[String],
    ) -> SqlResult<(QueryPlan, Option<Vec<OutputColumn>>)> {
        let returned = modification::bind_returning(self, with, changed, returning)?;
        modification::plan_returning(self, &returned, made, parameter_types, columns)
    }

    /// Returns whether a bound expression contains a value that depends on the current time, such as `'today'`.
    pub fn has_read_now(&self) -> bool {
        self.session.has_read_now()
    }

    /// Returns the environment, which the binders of all statements share.
    pub fn environment(&self) -> &'a Environment {
        self.environment
    }

    /// Resolves a name to a table, view or sequence.
    ///
    /// # Errors
    /// SQLSTATE 42P01 if there is none; 42501 for a system table.
    pub fn relation(&self, name: &ast::ObjectName) -> SqlResult<Relation> {
        relation::of_user(self.context, name)
    }

    /// Resolves a written type.
    ///
    /// # Errors
    /// SQLSTATE 42704 if it does not exist, 0A000 if Kiln does not support it, 22023 for invalid modifiers.
    pub fn sql_type(&self, written: &ast::DataType) -> SqlResult<SqlType> {
        sql_type(written)
    }

    /// Analyzes an expression over a table's unqualified columns, such as a CHECK, and casts it to `wanted`.
    ///
    /// # Errors
    /// SQLSTATE 42703 for other columns, 42804 for a type that cannot be cast to `wanted`, 0A000 for subqueries.
    pub fn column_expression(&self, written: &ast::Expr, columns: &[Column], wanted: &SqlType) -> SqlResult<Expr> {
        expression::over_columns(self, written, columns, wanted)
    }

    /// Analyzes a DEFAULT: an expression without columns, with an assignment cast to `wanted`.
    ///
    /// # Errors
    /// SQLSTATE 0A000 for column references and subqueries, 42804 if there is no such cast.
    pub fn default_expression(&self, written: &ast::Expr, wanted: &SqlType) -> SqlResult<Expr> {
        expression::default(self, written, wanted)
    }

    /// Returns the type of a DEFAULT before its cast.
    ///
    /// # Errors
    /// Those of [`Binder::default_expression`].
    pub fn default_type(&self, written: &ast::Expr) -> SqlResult<SqlType> {
        expression::default_type(self, written)
    }

    /// Evaluates a DEFAULT now and returns its value in the text format of `wanted`; `None` is NULL.
    ///
    /// # Errors
    /// Those of [`Binder::default_expression`], and those of the evaluation.
    pub fn constant_text(&self, default: &ast::Expr, wanted: &SqlType) -> SqlResult<Option<String>> {
        expression::constant_text(self, default, wanted)
    }

    /// Evaluates an argument of EXECUTE to the Arrow type of `wanted`.
    ///
    /// # Errors
    /// SQLSTATE 0A000 for column references and subqueries, 42804 if there is no assignment cast, and those of the
    /// evaluation.
    pub fn constant(&self, written: &ast::Expr, wanted: &SqlType) -> SqlResult<ScalarValue> {
        expression::constant(self, written, wanted)
    }

    /// Returns the functions, rules and options that this statement's plans are built with and run with.
    pub fn state(&self) -> Arc<SessionState> {
        Arc::clone(self.state.get_or_init(|| self.environment.statement(&self.context.settings, &self.session)))
    }

    /// Returns the timings of planning.
    pub fn phases(&self) -> &Phases {
        &self.phases
    }

    /// Returns the context of the statement.
    pub fn context(&self) -> &'a Arc<StatementContext> {
        self.context
    }

    /// Returns the session, on which the values of expressions depend.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }
}
