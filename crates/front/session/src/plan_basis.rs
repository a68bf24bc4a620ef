//! The basis of a plan decides how long the plan is valid: as long as definitions, settings and roles are the same.

use std::sync::Arc;

use catalog::{CatalogState, Definitions};
use settings::Settings;
use types::Oid;

use crate::held::Held;

/// Definitions, settings and roles that a plan was made with.
#[derive(Debug)]
pub(crate) struct PlanBasis {
    definitions: Arc<Definitions>,
    settings: Arc<Settings>,
    roles: [Oid; 2],
}

impl PlanBasis {
    /// Takes the definitions of `state`, and the settings and roles that the session has now.
    pub(crate) fn new(held: &Held, state: &CatalogState) -> Self {
        let definitions = Arc::clone(state.definitions());
        Self { definitions, settings: Arc::clone(&held.settings), roles: roles(held) }
    }

    /// Whether a statement on `state` would be planned the same now.
    pub(crate) fn holds(&self, held: &Held, state: &CatalogState) -> bool {
        (Arc::ptr_eq(&self.settings, &held.settings) || self.settings.plan_as(&held.settings))
            && self.roles == roles(held)
            && Arc::ptr_eq(&self.definitions, state.definitions())
    }
}

fn roles(held: &Held) -> [Oid; 2] {
    [held.role.oid, held.session_role.oid]
}
