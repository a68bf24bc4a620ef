//! Checks upward traits: a later crate that implements an earlier crate's trait is called by it, and each case needs
//! a reason.

use super::{CrateSummary, Modules, summarize_crates};
use crate::workspace::Workspace;

/// Traits of earlier crates that later ones implement, and the reasons.
const UPWARD_TRAIT_REASONS: &[(&str, &str)] = &[
    ("bench::ServerStarter", "the cold benchmark starts and stops the server that only the binary can wire"),
    ("control_plane::ControlPlane", "threads, processes and pods behind one set of statements"),
    ("control_plane::TokenWorkerHost", "workers that others start report to the instance"),
    ("control_plane::StateStore", "the local control plane decides; the catalog stores what it decided"),
    ("control_plane::TokenVerifier", "Kubernetes reviews a worker's token"),
    ("control_plane::WorkerHost", "threads and processes made by one reconciler"),
    (
        "engine::Fallback",
        "values that fast loops cannot compute are evaluated by the plan's expression, which the engine does not know",
    ),
    ("engine::ArrowFunction", "the engine runs functions that it has no loop for, and knows nothing of SQL"),
    ("exchange::Cluster", "a query asks who owns a shard; who is there the control plane of the clusters knows"),
    ("exchange::Dialer", "connections to workers need the instance's certificates"),
    (
        "optimizer::SharedScanPlanner",
        "shared rows are read by an operator that belongs to one run; the plan says only what they are",
    ),
    (
        "plan::TableScanPlanner",
        "a table's scan becomes an operator above the planner; goes when scans are compiled from plans",
    ),
    ("scheduler::WorkerRegistration", "whoever has workers counts the statements that run on them"),
    (
        "session::ResultSink",
        "a statement gives results to whoever asked for them: each protocol tells them in its own way",
    ),
    ("session_context::Activity", "pg_stat_activity shows sessions; goes when session facts are plain data"),
    (
        "session_context::TimeTravel",
        "UNDROP, sys.history and sys.statement_outcome read what the transactions know of earlier commits",
    ),
    ("session_context::SequenceNumbers", "nextval draws numbers from the committer, outside any transaction"),
    ("types::Disk", "free space is asked of the one who writes; simulated in tests"),
    ("types::ObjectNames", "casts of the reg… types need the system catalog, which stands above the functions"),
];

/// Checks that every such trait has a reason, and that no reason is obsolete.
pub(crate) fn check_upward_traits(workspace: &Workspace) -> Vec<String> {
    match Modules::read(workspace) {
        Ok(modules) => compare_with_reasons(&summarize_crates(workspace, &modules), UPWARD_TRAIT_REASONS),
        Err(problem) => vec![problem],
    }
}

fn compare_with_reasons(crates: &[CrateSummary], reasons: &[(&str, &str)]) -> Vec<String> {
    let implemented =
        || crates.iter().flat_map(|found| found.upward_traits.iter().map(move |name| (&found.name, name)));
    let without = implemented()
        .filter(|(_, name)| reasons.iter().all(|(other, _)| other != name))
        .map(|(own, name)| format!("{own} implements {name} without a reason in xtask/src/crate_map/upward_traits.rs"));
    let left_over =
        reasons.iter().filter(|(name, _)| implemented().all(|(_, other)| other != name)).map(|(name, _)| {
            format!("xtask/src/crate_map/upward_traits.rs gives a reason for {name}, which no later crate implements")
        });
    without.chain(left_over).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traits_without_a_reason_and_reasons_without_a_trait_are_reported() {
        let crates = [CrateSummary {
            name: "fleet".to_owned(),
            lines: 0,
            files: 0,
            cycles: Vec::new(),
            workspace_dependencies: Vec::new(),
            upward_traits: ["control_plane::TokenWorkerHost".to_owned()].into(),
        }];
        assert!(compare_with_reasons(&crates, &[("control_plane::TokenWorkerHost", "reason")]).is_empty());
        assert_eq!(
            compare_with_reasons(&crates, &[("control_plane::Host", "reason")]),
            [
                "fleet implements control_plane::TokenWorkerHost without a reason in xtask/src/crate_map/upward_traits.rs",
                "xtask/src/crate_map/upward_traits.rs gives a reason for control_plane::Host, which no later crate implements"
            ]
        );
    }
}
