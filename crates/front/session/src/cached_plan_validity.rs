//! Validity of cached plans: a plan is valid as long as definitions, settings and roles are the same.

use std::sync::Arc;

use catalog::{CatalogState, Definitions};
use settings::Settings;
use types::Oid;

use crate::session_state::SessionState;

/// Definitions, settings and roles that a cached plan depends on.
#[derive(Debug)]
pub(crate) struct PlanDependencies {
    definitions: Arc<Definitions>,
    settings: Arc<Settings>,
    roles: [Oid; 2],
}

impl PlanDependencies {
    /// Creates the basis from the definitions of `state` and the session's present settings and roles.
    pub(crate) fn new(held: &SessionState, state: &CatalogState) -> Self {
        let definitions = Arc::clone(state.definitions());
        Self { definitions, settings: Arc::clone(&held.settings), roles: roles(held) }
    }

    /// Whether planning on `state` with these settings and roles would give the same plan.
    pub(crate) fn is_valid_for(&self, held: &SessionState, state: &CatalogState) -> bool {
        (Arc::ptr_eq(&self.settings, &held.settings) || self.settings.has_same_plan_relevant_settings(&held.settings))
            && self.roles == roles(held)
            && Arc::ptr_eq(&self.definitions, state.definitions())
    }
}

fn roles(held: &SessionState) -> [Oid; 2] {
    [held.role.oid, held.session_role.oid]
}
