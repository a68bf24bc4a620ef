//! Names and types: a parsed query becomes a logical plan with PostgreSQL's meaning.
//!
//! The way of a query (`query.rs`): its output columns get the names PostgreSQL gives them (`output_name.rs`), syntax is
//! brought into forms DataFusion plans (`crate::rewrite`, `crate::semantics`), every name is resolved (`resolve/`), DataFusion's
//! `SqlToRel` makes the plan from relations and functions that `provider.rs` finds, and the analyzer's rules give every
//! expression its type. `state.rs` has what a plan is made and run with.

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

/// What binds the queries and expressions of one statement. Cheap to make.
pub struct Binder<'a> {
    environment: &'a Environment,
    context: &'a Arc<StatementContext>,
    /// Whose privileges count for what is read: a view's owner within the view.
    reader: Oid,
    session: Arc<Session>,
    state: OnceLock<Arc<SessionState>>,
    /// Keeps the objects of the past that the query reads; `None` where it reads the present.
    pin: Option<Pin>,
    /// Views being expanded, for those that would contain themselves.
    depth: usize,
    text: Text<'a>,
    /// The types of parameters that the client declared.
    parameter_types: &'a [Option<SqlType>],
    /// Those that were found where no plan has them.
    noted: RefCell<Vec<Option<SqlType>>>,
    phases: Phases,
}

impl<'a> Binder<'a> {
    /// The binder of one statement.
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

    /// With the types that the client declared for `$1`, `$2`, …
    pub fn with_parameters(self, parameter_types: &'a [Option<SqlType>]) -> Self {
        Self { parameter_types, ..self }
    }

    /// Parameters that are nowhere in the plan are of these types.
    fn note_parameters(&self, types: &[SqlType]) {
        let mut noted = self.noted.borrow_mut();
        let count = noted.len().max(types.len());
        noted.resize(count, None);
        for (noted, sql_type) in noted.iter_mut().zip(types).filter(|(_, sql_type)| **sql_type != SqlType::Unknown) {
            noted.get_or_insert_with(|| sql_type.clone());
        }
    }

    /// Adds the types that were noted to those that are known.
    pub fn add_noted(&self, types: &mut Vec<Option<SqlType>>) {
        let noted = self.noted.borrow();
        let count = noted.len().max(types.len());
        types.resize(count, None);
        for (known, noted) in types.iter_mut().zip(noted.iter()).filter(|(known, _)| known.is_none()) {
            known.clone_from(noted);
        }
    }

    /// With errors that say where in the client's text they are.
    pub fn with_text(self, parsed: &'a Parsed) -> Self {
        Self { text: Text::of(parsed), ..self }
    }

    /// The plan of a query. `parameter_types` are those the client declared for `$1`, `$2`, …
    ///
    /// # Errors
    /// Whatever is wrong with the query; `0A000` for what Kiln does not do.
    pub fn query(&self, query: &ast::Query, parameter_types: &[Option<SqlType>]) -> SqlResult<QueryPlan> {
        query::plan(self, query, parameter_types)
    }

    /// As [`Binder::query`], of a query that may lock the rows that it reads.
    ///
    /// # Errors
    /// As [`Binder::query`]; `0A000` where what it gives are not rows of tables.
    pub fn locking_query(&self, query: &ast::Query, parameter_types: &[Option<SqlType>]) -> SqlResult<QueryPlan> {
        query::plan_locking(self, query, parameter_types)
    }

    /// As [`Binder::query`], of a query that is part of a statement: parameters that only other parts have are of an unknown type.
    ///
    /// # Errors
    /// As [`Binder::query`].
    pub fn part(&self, query: &ast::Query, parameter_types: &[Option<SqlType>]) -> SqlResult<QueryPlan> {
        query::plan_part(self, query, parameter_types)
    }

    /// The query with every name settled: relations with their schemas and aliases of their own, columns with those aliases,
    /// `*` written out. It means the same under any search path, and is bound again to the same plan.
    ///
    /// # Errors
    /// What is wrong with the names.
    pub fn settled(&self, query: &ast::Query) -> SqlResult<ast::Query> {
        query::settle(self, query)
    }

    /// Settles the names of a statement that changes rows of a table.
    ///
    /// # Errors
    /// What is wrong with the names.
    pub(crate) fn modification(&self, written: Modification<'_>) -> SqlResult<modification::Bound> {
        modification::bind(self, written)
    }

    /// The plan of such a statement: the columns called `columns` of the rows that `complete` makes of those that are read, then those
    /// of RETURNING, which are told beside it. Of parameters as [`Binder::part`].
    ///
    /// # Errors
    /// Whatever is wrong with the statement, and `complete`'s.
    pub(crate) fn modified(
        &self,
        bound: &modification::Bound,
        parameter_types: &[Option<SqlType>],
        columns: &[String],
        complete: impl Fn(LogicalPlan) -> SqlResult<LogicalPlan>,
    ) -> SqlResult<(QueryPlan, Option<Vec<OutputColumn>>)> {
        modification::plan(self, bound, parameter_types, columns, complete)
    }

    /// The columns called `columns` of rows that an INSERT `made`, then those of its RETURNING, which are told beside the plan.
    ///
    /// # Errors
    /// What is wrong with RETURNING.
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

    /// Whether a text of what was bound means something else at another time.
    pub fn has_read_now(&self) -> bool {
        self.session.has_read_now()
    }

    /// The environment that it shares with the binders of other statements.
    pub fn environment(&self) -> &'a Environment {
        self.environment
    }

    /// The table, view or sequence that a name means.
    ///
    /// # Errors
    /// `42P01`; `42501` for a system table.
    pub fn relation(&self, name: &ast::ObjectName) -> SqlResult<Relation> {
        relation::of_user(self.context, name)
    }

    /// The type that is written.
    ///
    /// # Errors
    /// `42704` for one that does not exist, `0A000` for one Kiln does not have, `22023` for modifiers it cannot have.
    pub fn sql_type(&self, written: &ast::DataType) -> SqlResult<SqlType> {
        sql_type(written)
    }

    /// An expression over a table's columns, which it names without a qualifier: a CHECK. Analysed, of type `wanted`.
    ///
    /// # Errors
    /// `42703` for other columns, `42804` where `wanted` cannot be had, `0A000` for subqueries.
    pub fn column_expression(&self, written: &ast::Expr, columns: &[Column], wanted: &SqlType) -> SqlResult<Expr> {
        expression::over_columns(self, written, columns, wanted)
    }

    /// A DEFAULT: an expression without columns, cast to `wanted` as an assignment is. Analysed.
    ///
    /// # Errors
    /// `0A000` for column references and subqueries, `42804` where there is no such cast.
    pub fn default_expression(&self, written: &ast::Expr, wanted: &SqlType) -> SqlResult<Expr> {
        expression::default(self, written, wanted)
    }

    /// The type that a DEFAULT has before it is cast.
    ///
    /// # Errors
    /// As [`Binder::default_expression`].
    pub fn default_type(&self, written: &ast::Expr) -> SqlResult<SqlType> {
        expression::default_type(self, written)
    }

    /// The value a DEFAULT has now, in the text form of `wanted`; `None` is NULL.
    ///
    /// # Errors
    /// As [`Binder::default_expression`], and what its evaluation meets.
    pub fn constant_text(&self, default: &ast::Expr, wanted: &SqlType) -> SqlResult<Option<String>> {
        expression::constant_text(self, default, wanted)
    }

    /// The value of an EXECUTE's argument, of the Arrow type of `wanted`.
    ///
    /// # Errors
    /// `0A000` for column references and subqueries, `42804` where there is no assignment cast, and what its evaluation meets.
    pub fn constant(&self, written: &ast::Expr, wanted: &SqlType) -> SqlResult<ScalarValue> {
        expression::constant(self, written, wanted)
    }

    /// Functions, rules and options that this statement's plans are made with and run with.
    pub fn state(&self) -> Arc<SessionState> {
        Arc::clone(self.state.get_or_init(|| self.environment.statement(&self.context.settings, &self.session)))
    }

    /// What the plan's phases take.
    pub fn phases(&self) -> &Phases {
        &self.phases
    }

    /// The surroundings of the statement.
    pub fn context(&self) -> &'a Arc<StatementContext> {
        self.context
    }

    /// What the meaning of expressions depends on besides their text.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }
}
