use super::*;
use crate::desired_state::DEFAULT_CLUSTER_NAME;
use crate::desired_state::{Change, Inventory};
use crate::fixtures::{BOOTSTRAP, create, superuser, with_nodes};

const AT: i64 = 7_000_000;

/// Returns a state with the cluster `c` of two workers.
fn state() -> DesiredState {
    let fresh = DesiredState::initial(BOOTSTRAP, 0);
    fresh.change(&Inventory::single_machine(), &create("c", with_nodes(2)), &superuser(), 1).expect("it is allowed").0
}

/// Returns the external store's clusters, without changes by others.
fn stored_externally(state: &DesiredState) -> Vec<ExternalCluster> {
    let kept = state.clusters().filter(|cluster| is_external(&cluster.spec));
    kept.map(|cluster| ExternalCluster {
        id: Some(cluster.id),
        spec: cluster.spec.clone(),
        suspended: cluster.suspended,
        grants: cluster.grants.clone(),
        changed_by: Some("ana".to_owned()),
        worker_count_changed_by: Some("an autoscaler".to_owned()),
    })
    .collect()
}

fn is_external(spec: &ClusterSpec) -> bool {
    spec.hardware_instance != HardwareInstance::EMBEDDED
}

fn kinds(events: &[ClusterEvent]) -> Vec<EventKind> {
    events.iter().map(|event| event.kind).collect()
}

#[test]
fn adopting_the_same_clusters_changes_nothing() {
    let state = state();
    let (same, events) = state.adopt(&stored_externally(&state), is_external, AT);
    assert_eq!((same, events.len()), (state, 0));
}

#[test]
fn external_changes_are_adopted_with_their_author() {
    let state = state();
    let mut found = stored_externally(&state);
    found[0].spec.node_count = 5;
    found[0].spec.auto_suspend = Some(60);
    found[0].spec.owner = types::Oid(1);
    found[0].suspended = true;
    let (after, events) = state.adopt(&found, is_external, AT);
    assert_eq!(kinds(&events), [EventKind::Altered, EventKind::Altered, EventKind::Suspended]);
    assert_eq!((events[0].detail.as_str(), events[0].author.as_deref()), ("node_count 2 -> 5", Some("an autoscaler")));
    assert_eq!((events[1].detail.as_str(), events[1].author.as_deref()), ("auto_suspend NULL -> 60", Some("ana")));
    let cluster = after.cluster_named("c").expect("the cluster exists");
    assert_eq!((cluster.spec.node_count, cluster.suspended, cluster.spec.owner), (5, true, BOOTSTRAP));
    assert_eq!((cluster.changed_at, cluster.generation), (AT, after.generation()));
    assert_eq!(after.history().iter().len(), state.history().iter().len() + 3);
    found[0].suspended = false;
    found[0].spec.name = "d".to_owned();
    let (after, events) = after.adopt(&found, is_external, AT + 1);
    assert_eq!(kinds(&events), [EventKind::Renamed, EventKind::Resumed]);
    assert_eq!(after.cluster_named("d").expect("the cluster exists").awake_since, AT + 1);
}

#[test]
fn external_creations_and_removals_are_adopted() {
    let state = state();
    let mut found = stored_externally(&state);
    let mut other = found[0].clone();
    (other.id, other.spec.name) = (None, "by hand".to_owned());
    found.push(other);
    let (after, events) = state.adopt(&found, is_external, AT);
    assert_eq!(kinds(&events), [EventKind::Created]);
    let made = after.cluster_named("by hand").expect("the cluster exists");
    assert!(made.id > state.cluster_named("c").expect("the cluster exists").id);
    // It is identified by its name until its id has been written to the store.
    let (same, events) = after.adopt(&found, is_external, AT);
    assert_eq!((same.generation(), events.len()), (after.generation(), 0));
    let (after, events) = after.adopt(&found[1..], is_external, AT);
    assert_eq!(kinds(&events), [EventKind::Dropped]);
    assert!(after.cluster_named("c").is_err() && after.cluster_named(DEFAULT_CLUSTER_NAME).is_ok());
}

#[test]
fn a_lost_data_folder_is_rebuilt_from_the_store() {
    let state = state();
    let found = stored_externally(&state);
    let (after, events) = DesiredState::initial(BOOTSTRAP, AT).adopt(&found, is_external, AT);
    assert_eq!(kinds(&events), [EventKind::Created]);
    assert_eq!(after.cluster_named("c").expect("the cluster exists").id, found[0].id.expect("the cluster has an id"));
    let next = after
        .change(&Inventory::single_machine(), &create("d", with_nodes(1)), &superuser(), AT)
        .expect("it is allowed")
        .0;
    assert!(found[0].id.expect("the cluster has an id") < next.cluster_named("d").expect("the cluster exists").id);
}

#[test]
fn changes_beyond_a_limit_are_ignored() {
    let state = state();
    let mut found = stored_externally(&state);
    found[0].spec.node_count = 65;
    let mut twin = found[0].clone();
    (twin.id, twin.spec.node_count) = (Some(ClusterId(99)), 1);
    let again = found[0].clone();
    let (after, events) = state.adopt(&[found[0].clone(), twin, again], is_external, AT);
    assert_eq!((after, events.len()), (state, 0));
}

#[test]
fn default_becomes_embedded_when_its_object_is_gone() {
    let state = state();
    let mut found = stored_externally(&state);
    let default = state.cluster_named(DEFAULT_CLUSTER_NAME).expect("the cluster exists");
    let spec = ClusterSpec { hardware_instance: "local".to_owned(), ..default.spec.clone() };
    found.push(ExternalCluster {
        id: None,
        spec,
        suspended: false,
        grants: BTreeSet::new(),
        changed_by: None,
        worker_count_changed_by: None,
    });
    let (outside, events) = state.adopt(&found, is_external, AT);
    assert_eq!(kinds(&events), [EventKind::Altered]);
    let (own, events) = outside.adopt(&found[..1], is_external, AT);
    assert_eq!(kinds(&events), [EventKind::Altered]);
    assert_eq!(own.cluster_named(DEFAULT_CLUSTER_NAME).expect("the cluster exists").spec, default.spec);
    let drop = Change::Drop { name: "c".to_owned(), if_exists: false };
    let none = own.change(&Inventory::single_machine(), &drop, &superuser(), AT).expect("it is allowed").0;
    assert_eq!(none.adopt(&[], is_external, AT).1.len(), 0);
}

#[test]
fn a_cluster_whose_id_leaves_none_for_others_is_not_adopted() {
    let state = state();
    let mut found = stored_externally(&state);
    let mut other = found[0].clone();
    other.spec.name = "other".to_owned();
    for (id, is_adopted) in [(u32::MAX, false), (ADOPTED_ID_MAX + 1, false), (ADOPTED_ID_MAX, true)] {
        other.id = Some(ClusterId(id));
        found.truncate(1);
        found.push(other.clone());
        let (adopted, _) = state.adopt(&found, is_external, AT);
        assert_eq!(adopted.clusters().any(|cluster| cluster.id.0 == id), is_adopted, "{id}");
    }
}
