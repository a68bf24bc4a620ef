//! Binder: turns a parsed query into a logical plan with PostgreSQL's semantics.
//!
//! A query (`query.rs`) passes these steps:
//!
//! 1. Its output columns get PostgreSQL's names (`output_name.rs`).
//! 2. Its syntax is rewritten to forms that DataFusion can plan (`crate::rewrite`, `crate::semantics`).
//! 3. Every name is resolved (`resolve/`).
//! 4. DataFusion's `SqlToRel` builds the plan from relations and functions that `context_provider.rs` finds.
//! 5. The analyzer's rules resolve the type of every expression.
//!
//! `session_states.rs` has the settings and rules that a plan is built and run with.
//!
//! - names: `relation_lookup.rs`, `view.rs`, `error_position.rs` (error positions), `referenced_columns.rs` (column
//!   pruning), `undefined_function.rs`, `cast_type.rs`,
//! - relations that are more than a name: `relation_source.rs` (AS OF, row identities, the statement's own rows, WITH
//!   queries with a MATERIALIZED clause) and `relation_planner.rs`,
//! - time travel and external files: `as_of.rs`, `time_travel.rs`, `missing_snapshots_and_files.rs`,
//! - parameters and expressions: `parameter_types.rs`, `parameter_digits.rs`, `standalone_expression.rs`,
//!   `limit_expressions.rs` and `limit_subqueries.rs` (LIMIT and OFFSET),
//! - limits and workarounds for DataFusion: `with_expansion_limit.rs`, `type_inference_limit.rs`, `group_keys.rs`,
//!   `many_window_calls.rs`, `with_materialization.rs`,
//! - statements that change rows: `modification.rs`, `target_table.rs`, `modification_columns.rs`.

mod as_of;
mod cast_type;
mod context_provider;
mod error_position;
mod group_keys;
mod limit_expressions;
mod limit_subqueries;
mod many_window_calls;
mod missing_snapshots_and_files;
pub(crate) mod modification;
pub(crate) mod modification_columns;
mod output_name;
mod parameter_digits;
mod parameter_types;
mod query;
mod referenced_columns;
mod relation_lookup;
mod relation_planner;
pub(crate) mod relation_source;
mod resolve;
mod session_states;
mod standalone_expression;
pub(crate) mod target_table;
mod time_travel;
mod type_inference_limit;
mod undefined_function;
mod view;
mod with_expansion_limit;
mod with_materialization;

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use catalog::{Column, Relation};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast;
use session_context::{EvaluationContext, SnapshotPin, StatementContext};
use syntax::statement::Returning;
use syntax::{ParsedStatement, sql_type};
use types::{Oid, SqlResult, SqlType};

pub use self::as_of::time_travel_target;
use self::error_position::StatementText;
pub use self::limit_subqueries::{UNKNOWN_LIMIT, read_count};
use self::modification::Modification;
pub use self::parameter_digits::is_numeric;
pub(crate) use self::parameter_digits::{depends_on_digits, is_valid_for_digits};
pub use self::parameter_types::parameter_index;
pub(crate) use self::parameter_types::resolved_types;
pub use self::parameter_types::types_with_values;
use self::relation_source::RelationSources;
pub use self::session_states::Environment;
pub use self::session_states::partitions_for_memory;
pub use self::session_states::with_single_partition;
use self::target_table::TargetTable;
pub use self::time_travel::context_at_snapshot;
use crate::PlanningTimings;
use crate::query_plan::{OutputColumn, QueryPlan};

/// Binder of one statement's queries and expressions. Cheap to create.
pub struct Binder<'a> {
    environment: &'a Environment,
    context: &'a Arc<StatementContext>,
    /// Role whose privileges apply to reads: within a view, the view's owner.
    reader_role: Oid,
    session: Arc<EvaluationContext>,
    state: OnceLock<Arc<SessionState>>,
    /// Pin on the objects of the historical snapshot that the query reads; `None` for current data.
    snapshot_pin: Option<SnapshotPin>,
    /// Number of views being expanded, to detect recursion.
    view_depth: usize,
    text: StatementText<'a>,
    /// Parameter types declared by the client.
    parameter_types: &'a [Option<SqlType>],
    /// Types of parameters that occur in no plan, such as in AS OF.
    unplaced_parameters: RefCell<Vec<Option<SqlType>>>,
    /// Sources that relations of resolved queries refer to.
    relation_sources: RelationSources,
    planning_timings: PlanningTimings,
}

impl<'a> Binder<'a> {
    /// Creates the binder of one statement.
    #[must_use]
    pub fn new(environment: &'a Environment, context: &'a Arc<StatementContext>) -> Self {
        let session = Arc::new(system_catalog::session(context));
        Self {
            environment,
            context,
            reader_role: context.role.oid,
            snapshot_pin: None,
            session,
            state: OnceLock::new(),
            view_depth: 0,
            text: StatementText::default(),
            parameter_types: &[],
            unplaced_parameters: RefCell::default(),
            relation_sources: RelationSources::default(),
            planning_timings: PlanningTimings::with_clock(&context.clock),
        }
    }

    /// Sets the types that the client declared for `$1`, `$2`, …
    pub fn with_parameters(self, parameter_types: &'a [Option<SqlType>]) -> Self {
        Self { parameter_types, ..self }
    }

    /// Records the types of parameters that do not occur in the plan.
    fn record_parameter_types(&self, types: &[SqlType]) {
        let mut noted = self.unplaced_parameters.borrow_mut();
        let count = noted.len().max(types.len());
        noted.resize(count, None);
        for (noted, sql_type) in noted.iter_mut().zip(types).filter(|(_, sql_type)| **sql_type != SqlType::Unknown) {
            noted.get_or_insert_with(|| sql_type.clone());
        }
    }

    /// Completes `types` with the recorded types of parameters that do not occur in a plan.
    pub fn add_recorded_types(&self, types: &mut Vec<Option<SqlType>>) {
        let noted = self.unplaced_parameters.borrow();
        let count = noted.len().max(types.len());
        types.resize(count, None);
        for (known, noted) in types.iter_mut().zip(noted.iter()).filter(|(known, _)| known.is_none()) {
            known.clone_from(noted);
        }
    }

    /// Adds positions in the client's text to errors.
    pub fn with_text(self, parsed: &'a ParsedStatement) -> Self {
        Self { text: StatementText::from_parsed(parsed), ..self }
    }

    /// Plans a query. `parameter_types` are the types that the client declared for `$1`, `$2`, …
    ///
    /// # Errors
    /// Errors of the query; SQLSTATE 0A000 for unsupported features.
    pub fn plan_query(&self, query: &ast::Query, parameter_types: &[Option<SqlType>]) -> SqlResult<QueryPlan> {
        query::plan(self, query, parameter_types)
    }

    /// Plans a query that may lock the rows it reads. See [`Binder::plan_query`].
    ///
    /// # Errors
    /// Those of [`Binder::plan_query`]; SQLSTATE 0A000 if its results are not rows of tables.
    pub fn plan_locking_query(&self, query: &ast::Query, parameter_types: &[Option<SqlType>]) -> SqlResult<QueryPlan> {
        query::plan_locking(self, query, parameter_types)
    }

    /// Plans a query that is part of a statement: parameters that occur only in other parts keep an unknown type. See
    /// [`Binder::plan_query`].
    ///
    /// # Errors
    /// Those of [`Binder::plan_query`].
    pub fn plan_query_part(&self, query: &ast::Query, parameter_types: &[Option<SqlType>]) -> SqlResult<QueryPlan> {
        query::plan_part(self, query, parameter_types)
    }

    /// Resolves every name of a query: relations get their schemas and unique aliases, columns are qualified, `*` is
    /// expanded. The result means the same under any search path, and binding it again gives the same plan.
    ///
    /// # Errors
    /// Errors of the names.
    pub fn resolve_query_names(&self, query: &ast::Query) -> SqlResult<ast::Query> {
        query::resolve_query_names(self, query)
    }

    /// Resolves the names of a statement that changes rows of a table.
    ///
    /// # Errors
    /// Errors of the names.
    pub(crate) fn resolve_modification(&self, written: Modification<'_>) -> SqlResult<modification::BoundModification> {
        modification::resolve_names(self, written)
    }

    /// Plans such a statement: the columns `columns` of the rows that `complete` computes from those that are read,
    /// then the columns of RETURNING, which are also returned separately. Parameters are treated as in
    /// [`Binder::plan_query_part`].
    ///
    /// # Errors
    /// Errors of the statement, and those of `complete`.
    pub(crate) fn plan_modification(
        &self,
        bound: &modification::BoundModification,
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
    pub(crate) fn plan_insert_returning(
        &self,
        with: Option<&ast::With>,
        changed: &TargetTable<'_>,
        returning: &Returning,
        made: &LogicalPlan,
        parameter_types: &[Option<SqlType>],
        columns: &[String],
    ) -> SqlResult<(QueryPlan, Option<Vec<OutputColumn>>)> {
        let returned = modification::resolve_returning(self, with, changed, returning)?;
        modification::plan_returning(self, &returned, made, parameter_types, columns)
    }

    /// Returns whether a bound expression contains a value that depends on the current time, such as `'today'`.
    pub fn has_read_now(&self) -> bool {
        self.session.is_time_dependent()
    }

    /// Returns the environment, which the binders of all statements share.
    pub fn environment(&self) -> &'a Environment {
        self.environment
    }

    /// Resolves a name to a table, view or sequence.
    ///
    /// # Errors
    /// SQLSTATE 42P01 if there is none; 42501 for a system table.
    pub fn resolve_relation(&self, name: &ast::ObjectName) -> SqlResult<Relation> {
        relation_lookup::find_user_relation(self.context, name)
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
    pub fn bind_column_expression(&self, written: &ast::Expr, columns: &[Column], wanted: &SqlType) -> SqlResult<Expr> {
        standalone_expression::bind_over_columns(self, written, columns, wanted)
    }

    /// Analyzes a DEFAULT: an expression without columns, with an assignment cast to `wanted`.
    ///
    /// # Errors
    /// SQLSTATE 0A000 for column references and subqueries, 42804 if there is no such cast.
    pub fn bind_default_expression(&self, written: &ast::Expr, wanted: &SqlType) -> SqlResult<Expr> {
        standalone_expression::bind_default(self, written, wanted)
    }

    /// Returns the type of a DEFAULT before its cast.
    ///
    /// # Errors
    /// Those of [`Binder::bind_default_expression`].
    pub fn default_type(&self, written: &ast::Expr) -> SqlResult<SqlType> {
        standalone_expression::default_type(self, written)
    }

    /// Evaluates a DEFAULT now and returns its value in the text format of `wanted`; `None` is NULL.
    ///
    /// # Errors
    /// Those of [`Binder::bind_default_expression`], and those of the evaluation.
    pub fn evaluate_default_text(&self, default: &ast::Expr, wanted: &SqlType) -> SqlResult<Option<String>> {
        standalone_expression::constant_text(self, default, wanted)
    }

    /// Evaluates an argument of EXECUTE to the Arrow type of `wanted`.
    ///
    /// # Errors
    /// SQLSTATE 0A000 for column references and subqueries, 42804 if there is no assignment cast, and those of the
    /// evaluation.
    pub fn evaluate_constant(&self, written: &ast::Expr, wanted: &SqlType) -> SqlResult<ScalarValue> {
        standalone_expression::evaluate_constant(self, written, wanted)
    }

    /// Returns the functions, rules and options that this statement's plans are built with and run with.
    pub fn state(&self) -> Arc<SessionState> {
        Arc::clone(self.state.get_or_init(|| self.environment.statement_state(&self.context.settings, &self.session)))
    }

    /// Returns the timings of planning.
    pub fn planning_timings(&self) -> &PlanningTimings {
        &self.planning_timings
    }

    /// Returns the context of the statement.
    pub fn context(&self) -> &'a Arc<StatementContext> {
        self.context
    }

    /// Returns the session, on which the values of expressions depend.
    pub fn session(&self) -> &Arc<EvaluationContext> {
        &self.session
    }
}
