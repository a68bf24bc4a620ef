//! What a session has set: settings, role and cluster. It commits and rolls back with the transaction.

use std::sync::Arc;

use catalog::Role;
use cluster_service::Chosen;
use settings::Settings;

/// Settings and roles as they hold at one moment; cheap to keep several of.
#[derive(Debug, Clone)]
pub struct Held {
    pub settings: Arc<Settings>,
    /// `session_user`: who logged in, or who SET SESSION AUTHORIZATION named.
    pub session_role: Arc<Role>,
    /// `current_user`: as SET ROLE left it.
    pub role: Arc<Role>,
    /// The cluster that USE CLUSTER named; `None` for those of the role.
    pub cluster: Option<Arc<Chosen>>,
}

impl Held {
    /// Whether both are one and the same, not only equal.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.settings, &other.settings)
            && Arc::ptr_eq(&self.session_role, &other.session_role)
            && Arc::ptr_eq(&self.role, &other.role)
            && self.cluster == other.cluster
    }

    pub fn settings_mut(&mut self) -> &mut Settings {
        Arc::make_mut(&mut self.settings)
    }
}
