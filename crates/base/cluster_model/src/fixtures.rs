//! Test fixtures shared by several modules: states and actors.

use types::Oid;

use crate::desired_state::{Actor, Author, Change, ClusterOptions, DesiredState, IfExists, Inventory, RoleRef};
use crate::reconcile::ReconcileSettings;
use crate::worker::Resources;

/// The version of the instance.
pub(crate) const VERSION: &str = "2";
/// The resources of all workers together.
pub(crate) const MACHINE: Resources = Resources { millicores: 8_000, memory_bytes: 1 << 30 };

/// The role that owns the first cluster.
pub(crate) const BOOTSTRAP: Oid = Oid(10);

pub(crate) fn role(oid: u32, name: &str) -> RoleRef {
    RoleRef { oid: Oid(oid), name: name.to_owned() }
}

/// Returns a role without any special right.
pub(crate) fn user(oid: u32, name: &str) -> Author {
    Author::Role(Actor { role: role(oid, name), superuser: false, create_cluster: false, create_role: false })
}

pub(crate) fn superuser() -> Author {
    Author::Role(Actor { role: role(10, "kiln"), superuser: true, create_cluster: true, create_role: true })
}

pub(crate) fn initial_state() -> DesiredState {
    DesiredState::initial(BOOTSTRAP, 0)
}

pub(crate) fn settings() -> ReconcileSettings {
    ReconcileSettings::new(VERSION, MACHINE)
}

pub(crate) fn with_nodes(count: i64) -> ClusterOptions {
    ClusterOptions { node_count: Some(count), ..ClusterOptions::default() }
}

pub(crate) fn create(name: &str, options: ClusterOptions) -> Change {
    Change::Create { name: name.to_owned(), options, if_exists: IfExists::Refuse }
}

/// Applies changes as a superuser; panics if one is refused.
pub(crate) fn apply_changes(state: &DesiredState, changes: &[Change]) -> DesiredState {
    changes.iter().fold(state.clone(), |state, change| {
        state.change(&Inventory::single_machine(), change, &superuser(), 7).unwrap_or_else(|error| panic!("{error}")).0
    })
}
