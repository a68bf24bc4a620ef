//! Prepared statements: text once parsed. They follow the catalog: plans and programs that they keep hold while its definitions are unchanged.

use std::sync::Arc;

use binder::{OutputColumn, Planned, types_with_values};
use catalog::CatalogState;
use parking_lot::Mutex;
use planner::{Planner, PreparedPlan};
use session_context::{ScalarValue, StatementContext};
use syntax::Parsed;
use types::{Condition, SqlError, SqlResult, SqlType};

use crate::held::Held;
use crate::kept_program::KeptPrograms;
use crate::plan_basis::PlanBasis;
use crate::rows::Columns;

/// A statement that Parse or PREPARE named.
pub(crate) struct Prepared {
    /// `None`: the query string was empty.
    pub(crate) parsed: Option<Arc<Parsed>>,
    /// Types as found when it was prepared; they stay.
    pub(crate) parameters: Vec<SqlType>,
    /// Columns as found when it was prepared; `None` where it gives no rows.
    pub(crate) columns: Option<Columns>,
    /// Programs that run the statement while its definitions and settings are unchanged.
    pub(crate) programs: KeptPrograms,
    pub(crate) plan: CachedPlan,
}

/// The plan of a query and its basis; `None` for statements that are planned for each execution.
#[derive(Debug, Clone, Default)]
pub(crate) struct CachedPlan(Arc<Mutex<Option<PlanOnBasis>>>);

/// A plan with what it was made with. Without a plan, one that could be cached before cannot be on this basis.
type PlanOnBasis = (Option<Arc<PreparedPlan>>, PlanBasis);

impl CachedPlan {
    pub(crate) fn new(plan: PreparedPlan, basis: PlanBasis) -> Self {
        Self(Arc::new(Mutex::new(Some((Some(Arc::new(plan)), basis)))))
    }

    /// The plan, if a statement on `state` would be planned the same now.
    pub(crate) fn valid(&self, held: &Held, state: &CatalogState) -> Option<Arc<PreparedPlan>> {
        let cached = self.0.lock();
        let (plan, _) = cached.as_ref().filter(|(_, basis)| basis.holds(held, state))?;
        plan.clone()
    }

    /// Whether the basis is no longer valid.
    pub(crate) fn is_stale(&self, held: &Held, state: &CatalogState) -> bool {
        self.0.lock().as_ref().is_some_and(|(_, basis)| !basis.holds(held, state))
    }

    /// Plans a statement by `plan` anew, without rows, and with the rows of `context` where such a plan is of no use.
    ///
    /// # Errors
    /// Those of `plan`.
    pub(crate) fn renew(
        &self,
        basis: PlanBasis,
        planner: &Planner,
        bare: &Arc<StatementContext>,
        context: &Arc<StatementContext>,
        plan: impl Fn(&Arc<StatementContext>) -> SqlResult<Planned>,
    ) -> SqlResult<Planned> {
        // Its memory may be what the new one needs.
        drop(self.0.lock().take());
        // What fails without rows is told by the plan with them.
        let again = plan(bare).ok().and_then(|planned| PreparedPlan::new(planned, planner)).map(Arc::new);
        *self.0.lock() = Some((again.clone(), basis));
        match again {
            Some(again) => again.with_rows_of(context).map(Planned::Query),
            None => plan(context),
        }
    }
}

impl Prepared {
    /// Of an empty query string.
    pub(crate) fn empty() -> Self {
        Self {
            parsed: None,
            parameters: Vec::new(),
            columns: None,
            programs: KeptPrograms::None,
            plan: CachedPlan::default(),
        }
    }

    /// Of a statement that cannot be planned now, and takes no parameters.
    pub(crate) fn unplanned(parsed: Arc<Parsed>) -> Self {
        Self { parsed: Some(parsed), ..Self::empty() }
    }

    /// What stands behind a cursor that DECLARE made.
    pub(crate) fn of_cursor(columns: Columns) -> Arc<Self> {
        Arc::new(Self { columns: Some(columns), ..Self::empty() })
    }

    /// The types to plan the statement with for parameters of these values.
    pub(crate) fn types_with(&self, values: &[ScalarValue]) -> Vec<Option<SqlType>> {
        types_with_values(&self.parameters, values)
    }

    /// As it was written.
    pub(crate) fn text(&self) -> &str {
        self.parsed.as_ref().map_or("", |parsed| &parsed.text)
    }

    /// Clients read rows by the description they got: a plan that gives others now is refused.
    pub(crate) fn check_columns(&self, columns: Option<&[OutputColumn]>) -> SqlResult<()> {
        let same = match (&self.columns, columns) {
            (Some(then), Some(now)) => {
                then.len() == now.len()
                    && then
                        .iter()
                        .zip(now)
                        .all(|(then, now)| is_same(&then.sql_type, &now.sql_type) && then.name == now.name)
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

/// Whether values of both types are read alike: the digits of numerics follow from those of parameters.
fn is_same(then: &SqlType, now: &SqlType) -> bool {
    match (then, now) {
        (SqlType::Numeric { .. }, SqlType::Numeric { .. }) => true,
        (SqlType::Array(then), SqlType::Array(now)) => is_same(then, now),
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
