use super::*;
use crate::desired::DEFAULT;
use crate::desired::{Change, Inventory};
use crate::fixtures::{BOOTSTRAP, create, nodes, superuser};

const AT: i64 = 7_000_000;

/// Returns a state with the cluster `c` of two workers.
fn state() -> DesiredState {
    let fresh = DesiredState::fresh(BOOTSTRAP, 0);
    fresh.change(&Inventory::built_in(), &create("c", nodes(2)), &superuser(), 1).expect("it is allowed").0
}

/// Returns the external store's clusters, without changes by others.
fn kept(state: &DesiredState) -> Vec<FoundCluster> {
    let kept = state.clusters().filter(|cluster| is_kept(&cluster.spec));
    kept.map(|cluster| FoundCluster {
        id: Some(cluster.id),
        spec: cluster.spec.clone(),
        suspended: cluster.suspended,
        grants: cluster.grants.clone(),
        who: Some("ana".to_owned()),
        sized_by: Some("an autoscaler".to_owned()),
    })
    .collect()
}

fn is_kept(spec: &ClusterSpec) -> bool {
    spec.hardware_instance != HardwareInstance::EMBEDDED
}

fn kinds(events: &[ClusterEvent]) -> Vec<EventKind> {
    events.iter().map(|event| event.what).collect()
}

#[test]
fn what_is_as_it_was_is_no_change() {
    let state = state();
    let (same, events) = state.adopt(&kept(&state), is_kept, AT);
    assert_eq!((same, events.len()), (state, 0));
}

#[test]
fn what_others_change_is_taken_over_with_who_did_it() {
    let state = state();
    let mut found = kept(&state);
    found[0].spec.node_count = 5;
    found[0].spec.auto_suspend = Some(60);
    found[0].spec.owner = types::Oid(1);
    found[0].suspended = true;
    let (after, events) = state.adopt(&found, is_kept, AT);
    assert_eq!(kinds(&events), [EventKind::Altered, EventKind::Altered, EventKind::Suspended]);
    assert_eq!((events[0].detail.as_str(), events[0].who.as_deref()), ("node_count 2 -> 5", Some("an autoscaler")));
    assert_eq!((events[1].detail.as_str(), events[1].who.as_deref()), ("auto_suspend NULL -> 60", Some("ana")));
    let cluster = after.named("c").expect("the cluster exists");
    assert_eq!((cluster.spec.node_count, cluster.suspended, cluster.spec.owner), (5, true, BOOTSTRAP));
    assert_eq!((cluster.changed_at, cluster.generation), (AT, after.generation()));
    assert_eq!(after.history().iter().len(), state.history().iter().len() + 3);
    found[0].suspended = false;
    found[0].spec.name = "d".to_owned();
    let (after, events) = after.adopt(&found, is_kept, AT + 1);
    assert_eq!(kinds(&events), [EventKind::Renamed, EventKind::Resumed]);
    assert_eq!(after.named("d").expect("the cluster exists").awake_since, AT + 1);
}

#[test]
fn what_others_make_and_take_away_is_seen() {
    let state = state();
    let mut found = kept(&state);
    let mut other = found[0].clone();
    (other.id, other.spec.name) = (None, "by hand".to_owned());
    found.push(other);
    let (after, events) = state.adopt(&found, is_kept, AT);
    assert_eq!(kinds(&events), [EventKind::Created]);
    let made = after.named("by hand").expect("the cluster exists");
    assert!(made.id > state.named("c").expect("the cluster exists").id);
    // It is identified by its name until its id has been written to the store.
    let (same, events) = after.adopt(&found, is_kept, AT);
    assert_eq!((same.generation(), events.len()), (after.generation(), 0));
    let (after, events) = after.adopt(&found[1..], is_kept, AT);
    assert_eq!(kinds(&events), [EventKind::Dropped]);
    assert!(after.named("c").is_err() && after.named(DEFAULT).is_ok());
}

#[test]
fn who_comes_back_without_its_folder_finds_its_clusters() {
    let state = state();
    let found = kept(&state);
    let (after, events) = DesiredState::fresh(BOOTSTRAP, AT).adopt(&found, is_kept, AT);
    assert_eq!(kinds(&events), [EventKind::Created]);
    assert_eq!(after.named("c").expect("the cluster exists").id, found[0].id.expect("the cluster has an id"));
    let next = after.change(&Inventory::built_in(), &create("d", nodes(1)), &superuser(), AT).expect("it is allowed").0;
    assert!(found[0].id.expect("the cluster has an id") < next.named("d").expect("the cluster exists").id);
}

#[test]
fn what_breaks_a_limit_is_left_out() {
    let state = state();
    let mut found = kept(&state);
    found[0].spec.node_count = 65;
    let mut twin = found[0].clone();
    (twin.id, twin.spec.node_count) = (Some(ClusterId(99)), 1);
    let again = found[0].clone();
    let (after, events) = state.adopt(&[found[0].clone(), twin, again], is_kept, AT);
    assert_eq!((after, events.len()), (state, 0));
}

#[test]
fn the_cluster_that_every_instance_has_is_its_own_again() {
    let state = state();
    let mut found = kept(&state);
    let default = state.named(DEFAULT).expect("the cluster exists");
    let spec = ClusterSpec { hardware_instance: "local".to_owned(), ..default.spec.clone() };
    found.push(FoundCluster { id: None, spec, suspended: false, grants: BTreeSet::new(), who: None, sized_by: None });
    let (outside, events) = state.adopt(&found, is_kept, AT);
    assert_eq!(kinds(&events), [EventKind::Altered]);
    let (own, events) = outside.adopt(&found[..1], is_kept, AT);
    assert_eq!(kinds(&events), [EventKind::Altered]);
    assert_eq!(own.named(DEFAULT).expect("the cluster exists").spec, default.spec);
    let drop = Change::Drop { name: "c".to_owned(), if_exists: false };
    let none = own.change(&Inventory::built_in(), &drop, &superuser(), AT).expect("it is allowed").0;
    assert_eq!(none.adopt(&[], is_kept, AT).1.len(), 0);
}
