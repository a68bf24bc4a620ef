//! Prepared statements: parsed text with cached plans and key lookups, which are valid while the catalog's definitions
//! are unchanged.

use std::sync::Arc;

use binder::{OutputColumn, StatementPlan, types_with_values};
use catalog::CatalogState;
use parking_lot::Mutex;
use planner::{Planner, PreparedPlan};
use session_context::{ScalarValue, StatementContext};
use syntax::ParsedStatement;
use types::{Condition, SqlError, SqlResult, SqlType};

use crate::cached_key_lookups::CachedKeyLookups;
use crate::cached_plan_validity::PlanDependencies;
use crate::result_rows::Columns;
use crate::session_state::SessionState;

/// Statement that Parse or PREPARE named.
pub(crate) struct PreparedStatement {
    /// Parsed statement; `None` if the query string was empty.
    pub(crate) parsed: Option<Arc<ParsedStatement>>,
    /// Types of the parameters, fixed when it was prepared.
    pub(crate) parameters: Vec<SqlType>,
    /// Columns of the result, fixed when it was prepared; `None` if it returns no rows.
    pub(crate) columns: Option<Columns>,
    /// Compiled key lookups of the statement, valid while definitions and settings are unchanged.
    pub(crate) key_lookups: CachedKeyLookups,
    /// Cached plan of the statement.
    pub(crate) plan: CachedPlan,
}

/// Cached plan of a query with its basis; empty for statements that are planned for each execution.
#[derive(Debug, Clone, Default)]
pub(crate) struct CachedPlan(Arc<Mutex<Option<PlanWithDependencies>>>);

/// Plan with its basis. The plan is `None` if the query could be cached before, but not on this basis.
type PlanWithDependencies = (Option<Arc<PreparedPlan>>, PlanDependencies);

impl CachedPlan {
    pub(crate) fn new(plan: PreparedPlan, basis: PlanDependencies) -> Self {
        Self(Arc::new(Mutex::new(Some((Some(Arc::new(plan)), basis)))))
    }

    /// Returns the plan if it is valid for `state` and the settings of the session.
    pub(crate) fn get_if_valid(&self, held: &SessionState, state: &CatalogState) -> Option<Arc<PreparedPlan>> {
        let cached = self.0.lock();
        let (plan, _) = cached.as_ref().filter(|(_, basis)| basis.is_valid_for(held, state))?;
        plan.clone()
    }

    /// Whether there is a basis that is no longer valid.
    pub(crate) fn is_stale(&self, held: &SessionState, state: &CatalogState) -> bool {
        self.0.lock().as_ref().is_some_and(|(_, basis)| !basis.is_valid_for(held, state))
    }

    /// Replaces the cached plan: plans the statement without rows (`bare`), and with the rows of `context` if that plan
    /// cannot be cached.
    ///
    /// # Errors
    /// Errors of `plan`.
    pub(crate) fn replan(
        &self,
        basis: PlanDependencies,
        planner: &Planner,
        context_without_rows: &Arc<StatementContext>,
        context: &Arc<StatementContext>,
        plan: impl Fn(&Arc<StatementContext>) -> SqlResult<StatementPlan>,
    ) -> SqlResult<StatementPlan> {
        // Frees the memory of the old plan first, which the new one may need.
        drop(self.0.lock().take());
        // A failure without rows is not reported: planning with rows reports its own.
        let cached =
            plan(context_without_rows).ok().and_then(|planned| PreparedPlan::new(planned, planner)).map(Arc::new);
        *self.0.lock() = Some((cached.clone(), basis));
        match cached {
            Some(again) => again.with_rows_of(context).map(StatementPlan::Query),
            None => plan(context),
        }
    }
}

impl PreparedStatement {
    /// Creates the prepared statement of an empty query string.
    pub(crate) fn empty() -> Self {
        Self {
            parsed: None,
            parameters: Vec::new(),
            columns: None,
            key_lookups: CachedKeyLookups::None,
            plan: CachedPlan::default(),
        }
    }

    /// Creates a prepared statement without parameters that cannot be planned now.
    pub(crate) fn unplanned(parsed: Arc<ParsedStatement>) -> Self {
        Self { parsed: Some(parsed), ..Self::empty() }
    }

    /// Creates the prepared statement behind a cursor of DECLARE.
    pub(crate) fn for_cursor(columns: Columns) -> Arc<Self> {
        Arc::new(Self { columns: Some(columns), ..Self::empty() })
    }

    /// Returns the types of the parameters to plan with, given their values.
    pub(crate) fn parameter_types_for(&self, values: &[ScalarValue]) -> Vec<Option<SqlType>> {
        types_with_values(&self.parameters, values)
    }

    /// Returns the text of the statement as written.
    pub(crate) fn text(&self) -> &str {
        self.parsed.as_ref().map_or("", |parsed| &parsed.text)
    }

    /// Refuses a plan with other columns than described (`0A000`): clients read rows by the description that they got.
    pub(crate) fn check_columns(&self, columns: Option<&[OutputColumn]>) -> SqlResult<()> {
        let same = match (&self.columns, columns) {
            (Some(then), Some(now)) => {
                then.len() == now.len()
                    && then
                        .iter()
                        .zip(now)
                        .all(|(then, now)| are_read_alike(&then.sql_type, &now.sql_type) && then.name == now.name)
            }
            (None, None) => true,
            _ => false,
        };
        if same {
            Ok(())
        } else {
            Err(SqlError::new(Condition::FeatureNotSupported, "cached plan must not change result type"))
        }
    }
}

/// Whether clients read values of both types alike: precision and scale of numerics depend on the parameters.
fn are_read_alike(then: &SqlType, now: &SqlType) -> bool {
    match (then, now) {
        (SqlType::Numeric { .. }, SqlType::Numeric { .. }) => true,
        (SqlType::Array(then), SqlType::Array(now)) => are_read_alike(then, now),
        (then, now) => then == now,
    }
}

pub(crate) fn unknown_statement(name: &str) -> SqlError {
    let message = if name.is_empty() {
        "unnamed prepared statement does not exist".to_owned()
    } else {
        format!("prepared statement \"{name}\" does not exist")
    };
    SqlError::new(Condition::UndefinedPreparedStatement, message)
}

pub(crate) fn duplicate_statement(name: &str) -> SqlError {
    SqlError::new(Condition::DuplicatePreparedStatement, format!("prepared statement \"{name}\" already exists"))
}
