//! Conformance test of control planes, which panics at the first violation.

use std::collections::BTreeSet;

use cluster_model::cluster_events::EventKind;
use cluster_model::desired_state::{
    Actor, Author, Change, ClusterId, ClusterOptions, DEFAULT_CLUSTER_NAME, Error, Grantee, IfExists, Privilege,
    RoleRef,
};
use cluster_model::serving_workers::ClusterPhase;
use cluster_model::worker::{WorkerId, WorkerState};
use types::Oid;

use super::{ControlPlane, ControlPlaneError};

/// Environment of a control plane under test.
pub trait TestEnvironment {
    /// Returns the present control plane.
    fn plane(&self) -> &dyn ControlPlane;
    /// Runs at least one reconciliation pass and lets time pass.
    fn pass(&mut self);
    /// Lets a worker crash.
    fn kill(&mut self, worker: WorkerId);
    /// Ends the instance and starts it again with its stored state.
    fn restart(&mut self);
}

/// Number of passes within which every change must take effect.
const PASSES: usize = 200;

/// Runs all checks. The instance must be new, offer `hardware`, and be able to run five workers of it.
pub fn run(surroundings: &mut dyn TestEnvironment, hardware: &str) {
    let mut run = ConformanceTest { environment: surroundings };
    run.every_instance_has_default();
    run.a_cluster_comes_grows_and_shrinks(hardware);
    run.refused_changes_have_no_effect();
    run.dead_workers_are_replaced();
    run.clusters_suspend_and_resume();
    run.privileges_are_checked();
    run.a_restart_preserves_the_state();
    run.a_dropped_cluster_loses_its_workers();
}

struct ConformanceTest<'a> {
    environment: &'a mut dyn TestEnvironment,
}

impl ConformanceTest<'_> {
    fn every_instance_has_default(&mut self) {
        let default = self.id(DEFAULT_CLUSTER_NAME);
        self.wait_for_phase(default, ClusterPhase::Running);
        assert_eq!(self.plane().serving(default).len(), 1, "the cluster \"{DEFAULT_CLUSTER_NAME}\" has a worker");
    }

    fn a_cluster_comes_grows_and_shrinks(&mut self, hardware: &str) {
        let options = ClusterOptions {
            node_count: Some(2),
            hardware_instance: Some(hardware.to_owned()),
            ..ClusterOptions::default()
        };
        let create = Change::Create { name: "c".to_owned(), options, if_exists: IfExists::Refuse };
        let seen = self.plane().revisions().current();
        let events = self.apply(&create);
        assert_eq!(events, [EventKind::Created]);
        assert!(seen < self.plane().revisions().current(), "a change advances the revision");
        let id = self.id("c");
        self.wait_for_phase(id, ClusterPhase::Running);
        let first = self.serving(id);
        assert_eq!(first.len(), 2);
        assert!(self.plane().serving(id).iter().all(|worker| worker.spec.hardware_instance == hardware));

        self.apply(&nodes(4));
        self.wait_for_phase(id, ClusterPhase::Running);
        assert_eq!(self.serving(id).len(), 4);
        assert!(first.is_subset(&self.serving(id)), "growing keeps the existing workers");

        self.apply(&nodes(2));
        self.wait_for_phase(id, ClusterPhase::Running);
        assert_eq!(self.serving(id), first, "shrinking removes the newest workers");
        assert!(self.apply(&nodes(2)).is_empty(), "a change to the same value has no events");
    }

    fn refused_changes_have_no_effect(&mut self) {
        let before = self.plane().desired();
        let create =
            Change::Create { name: "c".to_owned(), options: ClusterOptions::default(), if_exists: IfExists::Refuse };
        assert!(matches!(self.refused(&create), Error::DuplicateCluster { .. }));
        assert!(matches!(self.refused(&nodes(65)), Error::OutOfRange { option: "NODE_COUNT", max: 64, .. }));
        assert!(matches!(self.refused(&nodes(0)), Error::OutOfRange { option: "NODE_COUNT", min: 1, .. }));
        let drop = Change::Drop { name: DEFAULT_CLUSTER_NAME.to_owned(), if_exists: false };
        assert!(matches!(self.refused(&drop), Error::CannotDrop { .. }));
        assert_eq!(self.plane().desired(), before);
    }

    fn dead_workers_are_replaced(&mut self) {
        let id = self.id("c");
        let before = self.serving(id);
        let victim = *before.first().expect("the cluster runs");
        self.environment.kill(victim);
        for _ in 0..PASSES {
            self.environment.pass();
            let gone = !self.serving(id).contains(&victim);
            if gone && self.plane().phase(id) == Some(ClusterPhase::Running) {
                break;
            }
        }
        let after = self.serving(id);
        assert_eq!(after.len(), 2, "a dead worker is replaced");
        assert_eq!(after.intersection(&before).count(), 1, "only the dead worker is replaced");
        let failed = self.plane().events().iter().any(|event| event.kind == EventKind::WorkerFailed);
        assert!(failed, "the failure is in the history");
    }

    fn clusters_suspend_and_resume(&mut self) {
        let id = self.id("c");
        assert_eq!(self.apply(&Change::Suspend { name: "c".to_owned() }), [EventKind::Suspended]);
        assert!(self.serving(id).is_empty(), "a suspended cluster serves no statements");
        self.wait_for_phase(id, ClusterPhase::Suspended);
        let workers = self.plane().workers();
        assert!(workers.iter().all(|worker| worker.cluster != id || worker.state == WorkerState::Gone));
        assert_eq!(self.apply(&Change::AutoResume { name: "c".to_owned() }), [EventKind::Resumed]);
        self.wait_for_phase(id, ClusterPhase::Running);
        assert_eq!(self.serving(id).len(), 2);
    }

    fn privileges_are_checked(&mut self) {
        let role = RoleRef { oid: Oid(20_000), name: "u".to_owned() };
        let actor = Actor { role: role.clone(), superuser: false, create_cluster: false, create_role: false };
        let suspend = Change::Suspend { name: "c".to_owned() };
        let asked = self.plane().apply(&suspend, &Author::Role(actor.clone()));
        assert!(matches!(asked, Err(ControlPlaneError::Refused(Error::NoPrivilege { .. }))));
        let grant = Change::Grant {
            clusters: vec!["c".to_owned()],
            privileges: vec![Privilege::Usage],
            to: vec![Grantee::Role(role.clone())],
        };
        assert_eq!(self.apply(&grant), [EventKind::Granted]);
        let set = Change::SetDefaultClusters { role, clusters: vec!["c".to_owned()] };
        assert_eq!(self.apply(&set), [EventKind::DefaultClustersSet]);
        let desired = self.plane().desired();
        let usable = desired.usable_clusters(&actor, None).expect("it may use the cluster");
        assert_eq!(usable.iter().map(|cluster| cluster.spec.name.as_str()).collect::<Vec<_>>(), ["c"]);
    }

    fn a_restart_preserves_the_state(&mut self) {
        let (before, id) = (self.plane().desired(), self.id("c"));
        self.environment.restart();
        assert_eq!(self.plane().desired(), before, "the desired state survives a restart");
        self.wait_for_phase(id, ClusterPhase::Running);
        assert_eq!(self.serving(id).len(), 2);
        let told = self.plane().events();
        let created = told.iter().find(|event| event.kind == EventKind::Created).expect("changes are remembered");
        assert_eq!((created.cluster.as_deref(), created.author.as_deref()), (Some("c"), Some("kiln")));
    }

    fn a_dropped_cluster_loses_its_workers(&mut self) {
        let id = self.id("c");
        assert_eq!(self.apply(&Change::Drop { name: "c".to_owned(), if_exists: false }), [EventKind::Dropped]);
        assert!(self.serving(id).is_empty());
        for _ in 0..PASSES {
            self.environment.pass();
            if self.plane().phase(id).is_none() {
                return;
            }
        }
        panic!("the dropped cluster still has workers after {PASSES} passes");
    }

    fn plane(&self) -> &dyn ControlPlane {
        self.environment.plane()
    }

    fn id(&self, name: &str) -> ClusterId {
        self.plane().desired().cluster_named(name).unwrap_or_else(|error| panic!("{error}")).id
    }

    fn serving(&self, cluster: ClusterId) -> BTreeSet<WorkerId> {
        self.plane().serving(cluster).iter().map(|worker| worker.id).collect()
    }

    /// Runs passes until the cluster is in this phase.
    fn wait_for_phase(&mut self, cluster: ClusterId, phase: ClusterPhase) {
        for _ in 0..PASSES {
            if self.plane().phase(cluster) == Some(phase) {
                return;
            }
            self.environment.pass();
        }
        panic!(
            "cluster {cluster} is {:?} instead of {phase}: {:?}",
            self.plane().phase(cluster),
            self.plane().workers()
        );
    }

    fn apply(&self, change: &Change) -> Vec<EventKind> {
        let events = self.plane().apply(change, &superuser()).unwrap_or_else(|error| panic!("{change:?}: {error}"));
        events.into_iter().map(|event| event.kind).collect()
    }

    fn refused(&self, change: &Change) -> Error {
        match self.plane().apply(change, &superuser()) {
            Err(ControlPlaneError::Refused(error)) => error,
            other => panic!("{change:?} was not refused but returned {other:?}"),
        }
    }
}

fn nodes(count: i64) -> Change {
    let options = ClusterOptions { node_count: Some(count), ..ClusterOptions::default() };
    Change::Alter { name: "c".to_owned(), options }
}

fn superuser() -> Author {
    let role = RoleRef { oid: Oid(10), name: "kiln".to_owned() };
    Author::Role(Actor { role, superuser: true, create_cluster: true, create_role: true })
}
