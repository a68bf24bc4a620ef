//! Settings, roles and cluster of a session. They commit and roll back with the transaction.

use std::sync::Arc;

use catalog::Role;
use cluster_service::ChosenCluster;
use settings::Settings;

/// Settings, roles and cluster of a session at one time; a block has several copies, which are cheap.
#[derive(Debug, Clone)]
pub struct SessionState {
    pub settings: Arc<Settings>,
    /// `session_user`: the role that logged in or that SET SESSION AUTHORIZATION named.
    pub session_role: Arc<Role>,
    /// `current_user`: the role that SET ROLE named, else the session role.
    pub role: Arc<Role>,
    /// Cluster that USE CLUSTER named; `None` for those of the role.
    pub cluster: Option<Arc<ChosenCluster>>,
}

impl SessionState {
    /// Whether both share the same settings and roles: compares pointers, so equal copies may differ.
    pub fn is_same_instance(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.settings, &other.settings)
            && Arc::ptr_eq(&self.session_role, &other.session_role)
            && Arc::ptr_eq(&self.role, &other.role)
            && self.cluster == other.cluster
    }

    pub fn settings_mut(&mut self) -> &mut Settings {
        Arc::make_mut(&mut self.settings)
    }
}
