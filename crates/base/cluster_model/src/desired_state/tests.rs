use super::*;
use crate::fixtures::{BOOTSTRAP, apply_changes, create, initial_state, role, superuser, user, with_nodes};

fn actor(oid: u32) -> Actor {
    match user(oid, "u") {
        Author::Role(actor) => actor,
        Author::Instance => unreachable!("a user is a role"),
    }
}

fn grant(cluster: &str, privilege: Privilege, to: Grantee) -> Change {
    Change::Grant { clusters: vec![cluster.to_owned()], privileges: vec![privilege], to: vec![to] }
}

fn set_clusters(oid: u32, names: &[&str]) -> Change {
    let clusters = names.iter().map(|name| (*name).to_owned()).collect();
    Change::SetDefaultClusters { role: role(oid, "u"), clusters }
}

fn names(clusters: &[&ClusterState]) -> Vec<String> {
    clusters.iter().map(|cluster| cluster.spec.name.clone()).collect()
}

#[test]
fn an_instance_starts_with_one_cluster_in_its_own_process() {
    let state = initial_state();
    state.check_invariants().expect("a new state satisfies the invariants");
    let default = state.cluster_named(DEFAULT_CLUSTER_NAME).expect("the cluster exists");
    assert_eq!((default.spec.node_count, default.spec.hardware_instance.as_str()), (1, "embedded"));
    assert_eq!((default.spec.owner, default.suspended), (BOOTSTRAP, false));
    assert_eq!(state.clusters().len(), 1);
    assert_eq!(state.awake_workers(), 1);
    assert_eq!(state.cluster_named("c"), Err(Error::UndefinedCluster { name: "c".to_owned() }));
}

#[test]
fn privileges_are_granted_separately() {
    let state = apply_changes(
        &initial_state(),
        &[
            create("c", with_nodes(1)),
            grant("c", Privilege::Usage, Grantee::Role(role(20, "u"))),
            grant("c", Privilege::Operate, Grantee::Public),
        ],
    );
    let cluster = state.cluster_named("c").expect("the cluster was created");
    assert!(cluster.has_privilege(&actor(20), Privilege::Usage));
    assert!(!cluster.has_privilege(&actor(21), Privilege::Usage));
    assert!(cluster.has_privilege(&actor(21), Privilege::Operate), "a grant to PUBLIC holds for all roles");
    assert!(cluster.has_privilege(&actor(10), Privilege::Usage), "the creator is the owner");
    let default = state.cluster_named(DEFAULT_CLUSTER_NAME).expect("the cluster exists");
    assert!(default.has_privilege(&actor(21), Privilege::Usage), "all roles may use the cluster default");
    assert!(!default.has_privilege(&actor(21), Privilege::Operate), "OPERATE on default needs a grant");
}

#[test]
fn statements_run_on_the_clusters_that_were_set_and_may_be_used() {
    let public = |name| grant(name, Privilege::Usage, Grantee::Public);
    let mut state = apply_changes(
        &initial_state(),
        &[create("a", with_nodes(1)), create("b", with_nodes(1)), create("c", with_nodes(1)), public("a"), public("c")],
    );
    let user = actor(20);
    assert_eq!(names(&state.usable_clusters(&user, None).expect("default")), ["default"]);
    state = apply_changes(&state, &[set_clusters(20, &["c", "b", "a", "c"])]);
    assert_eq!(state.default_clusters(Oid(20)).len(), 3, "duplicates are removed");
    assert_eq!(names(&state.usable_clusters(&user, None).expect("two of three clusters are usable")), ["c", "a"]);
    assert_eq!(names(&state.usable_clusters(&user, Some("a")).expect("the role may use the cluster")), ["a"]);
    assert_eq!(state.usable_clusters(&user, Some("b")), Err(Error::NoPrivilege { name: "b".to_owned() }));
    assert_eq!(state.usable_clusters(&user, Some("d")), Err(Error::UndefinedCluster { name: "d".to_owned() }));
    state = apply_changes(&state, &[set_clusters(20, &["b"])]);
    assert_eq!(state.usable_clusters(&user, None), Err(Error::NoPrivilege { name: "b".to_owned() }));
    state = apply_changes(&state, &[set_clusters(20, &[])]);
    assert_eq!(names(&state.usable_clusters(&user, None).expect("default is usable")), ["default"]);
}

#[test]
fn a_list_follows_renames_and_drops() {
    let mut state = apply_changes(
        &initial_state(),
        &[create("a", with_nodes(1)), create("b", with_nodes(1)), set_clusters(20, &["a", "b"])],
    );
    state = apply_changes(&state, &[Change::Rename { name: "a".to_owned(), to: "z".to_owned() }]);
    assert_eq!(names(&state.default_clusters(Oid(20)).collect::<Vec<_>>()), ["z", "b"]);
    state = apply_changes(&state, &[Change::Drop { name: "z".to_owned(), if_exists: false }]);
    assert_eq!(names(&state.default_clusters(Oid(20)).collect::<Vec<_>>()), ["b"]);
    state = apply_changes(&state, &[Change::Drop { name: "b".to_owned(), if_exists: false }]);
    assert_eq!(state.default_clusters(Oid(20)).len(), 0);
    assert!(state.default_clusters.is_empty(), "an empty list is removed");
}

#[test]
fn violated_invariants_are_detected() {
    let good = apply_changes(&initial_state(), &[create("c", with_nodes(2)), set_clusters(20, &["c"])]);
    good.check_invariants().expect("the invariants hold");
    let id = good.cluster_named("c").expect("the cluster was created").id;
    let broken = |breaks: &dyn Fn(&mut DesiredState)| {
        let mut state = good.clone();
        breaks(&mut state);
        state.check_invariants().expect_err("the violation is detected")
    };
    let cluster = |state: &mut DesiredState, change: &dyn Fn(&mut ClusterState)| {
        change(state.clusters.get_mut(&id).expect("the cluster exists"));
    };
    assert!(broken(&|state| cluster(state, &|one| one.spec.node_count = 65)).contains("NODE_COUNT"));
    assert!(broken(&|state| cluster(state, &|one| one.spec.node_count = 0)).contains("NODE_COUNT"));
    assert!(
        broken(&|state| cluster(state, &|one| one.spec.worker.max_spill_pct = Some(101))).contains("MAX_SPILL_PCT")
    );
    assert!(broken(&|state| cluster(state, &|one| one.spec.auto_suspend = Some(0))).contains("AUTO_SUSPEND"));
    assert!(broken(&|state| cluster(state, &|one| one.spec.name.clear())).contains("invalid cluster name"));
    assert!(
        broken(&|state| cluster(state, &|one| DEFAULT_CLUSTER_NAME.clone_into(&mut one.spec.name))).contains("twice")
    );
    assert!(broken(&|state| cluster(state, &|one| one.generation = 9)).contains("later generation"));
    assert!(broken(&|state| cluster(state, &|one| one.id = ClusterId(9))).contains("not its own"));
    assert!(broken(&|state| state.next_cluster = id).contains("not its own"));
    assert!(broken(&|state| drop(state.clusters.remove(&id))).contains("does not exist"));
    assert!(broken(&|state| drop(state.clusters.remove(&ClusterId(1)))).contains("\"default\" is missing"));
}

#[test]
fn hints_list_the_available_names() {
    let error = Inventory::single_machine().hardware("gpu").expect_err("the hardware does not exist");
    assert_eq!(error.hint().as_deref(), Some("There are: embedded, local."));
    assert_eq!(Inventory::single_machine().default_hardware().name, "local");
    assert_eq!(Inventory::single_machine().profile(DEFAULT_CLUSTER_NAME).expect("the cluster exists").max_running, 100);
    assert_eq!(superuser().name(), Some("kiln"));
    assert_eq!(Author::Instance.name(), None);
}
