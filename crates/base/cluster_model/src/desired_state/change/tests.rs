use types::Condition;

use super::*;
use crate::desired_state::{Actor, DEFAULT_CLUSTER_NAME, WorkerOptions};
use crate::fixtures::{apply_changes, create, initial_state, role, superuser, user, with_nodes};

fn alter(name: &str, options: ClusterOptions) -> Change {
    Change::Alter { name: name.to_owned(), options }
}

fn named(name: &str) -> String {
    name.to_owned()
}

fn change_by(state: &DesiredState, change: &Change, author: &Author) -> Result<(DesiredState, Vec<ClusterEvent>)> {
    state.change(&Inventory::single_machine(), change, author, 1_000)
}

#[track_caller]
fn refused(state: &DesiredState, change: &Change) -> Error {
    change_by(state, change, &superuser()).expect_err("the change is refused")
}

#[track_caller]
fn apply_ok(state: &DesiredState, change: &Change) -> (DesiredState, Vec<EventKind>) {
    let (state, events) = change_by(state, change, &superuser()).expect("it is applied");
    state.check_invariants().expect("the invariants hold");
    (state, events.into_iter().map(|event| event.kind).collect())
}

#[track_caller]
fn apply_by(state: &DesiredState, change: &Change, author: &Author) -> DesiredState {
    change_by(state, change, author).expect("it is applied").0
}

#[test]
fn a_cluster_has_the_options_that_are_named_and_usual_ones() {
    let options = ClusterOptions {
        node_count: Some(64),
        hardware_instance: Some(named("embedded")),
        wlm_profile: Some(named("default")),
        auto_suspend: Some(Some(300)),
        auto_resume: Some(false),
        max_spill_pct: Some(Some(100)),
        max_cache_pct: Some(Some(1)),
    };
    let (state, events) =
        change_by(&initial_state(), &create("c", options), &superuser()).expect("all values are in range");
    let cluster = state.cluster_named("c").expect("the cluster was created");
    let spec = ClusterSpec {
        name: named("c"),
        node_count: 64,
        hardware_instance: named("embedded"),
        wlm_profile: named("default"),
        auto_suspend: Some(300),
        auto_resume: false,
        worker: WorkerOptions { max_spill_pct: Some(100), max_cache_pct: Some(1) },
        owner: Oid(10),
    };
    assert_eq!(cluster.spec, spec);
    assert_eq!((cluster.created_at, cluster.created_by.as_deref(), cluster.awake_since), (1_000, Some("kiln"), 1_000));
    assert_eq!((state.generation(), cluster.generation), (2, 2));
    let event = ClusterEvent {
        at: 1_000,
        cluster: Some(named("c")),
        author: Some(named("kiln")),
        kind: EventKind::Created,
        detail: named(
            "node_count 64, hardware_instance embedded, wlm_profile default, auto_suspend 300, auto_resume false, \
             max_spill_pct 100, max_cache_pct 1",
        ),
    };
    assert_eq!(events, std::slice::from_ref(&event));
    assert_eq!(state.history().iter().collect::<Vec<_>>(), [&event]);

    let usual = apply_changes(&initial_state(), &[create("c", ClusterOptions::default())]);
    let usual = &usual.cluster_named("c").expect("the cluster was created").spec;
    assert_eq!(
        (usual.node_count, usual.hardware_instance.as_str(), usual.wlm_profile.as_str()),
        (1, "local", "default")
    );
    assert_eq!((usual.auto_suspend, usual.auto_resume, usual.worker), (None, true, WorkerOptions::default()));
}

#[test]
fn values_out_of_range_name_the_limit() {
    let state = apply_changes(&initial_state(), &[create("c", with_nodes(2))]);
    let cases: [(ClusterOptions, &str); 8] = [
        (with_nodes(0), "0 is outside the valid range for parameter \"NODE_COUNT\" (1 .. 64)"),
        (with_nodes(65), "65 is outside the valid range for parameter \"NODE_COUNT\" (1 .. 64)"),
        (with_nodes(i64::MIN), "(1 .. 64)"),
        (
            ClusterOptions { auto_suspend: Some(Some(0)), ..ClusterOptions::default() },
            "\"AUTO_SUSPEND\" (1 .. 2147483647)",
        ),
        (ClusterOptions { auto_suspend: Some(Some(1 << 31)), ..ClusterOptions::default() }, "2147483648 is outside"),
        (ClusterOptions { max_spill_pct: Some(Some(0)), ..ClusterOptions::default() }, "\"MAX_SPILL_PCT\" (1 .. 100)"),
        (
            ClusterOptions { max_cache_pct: Some(Some(101)), ..ClusterOptions::default() },
            "\"MAX_CACHE_PCT\" (1 .. 100)",
        ),
        (ClusterOptions { max_cache_pct: Some(Some(257)), ..ClusterOptions::default() }, "257 is outside"),
    ];
    for (options, message) in cases {
        for change in [create("d", options.clone()), alter("c", options.clone())] {
            let error = refused(&state, &change);
            assert!(error.to_string().contains(message), "{error}");
            assert_eq!(error.condition(), Condition::InvalidParameterValue);
        }
    }
}

#[test]
fn missing_objects_are_undefined() {
    let state = apply_changes(&initial_state(), &[create("c", with_nodes(2))]);
    let hardware = ClusterOptions { hardware_instance: Some(named("gpu")), ..ClusterOptions::default() };
    let profile = ClusterOptions { wlm_profile: Some(named("night")), ..ClusterOptions::default() };
    let there_is_none = [
        create("d", hardware.clone()),
        alter("c", hardware),
        create("d", profile.clone()),
        alter("c", profile),
        alter("d", with_nodes(1)),
        Change::Rename { name: named("d"), to: named("e") },
        Change::SetOwner { name: named("d"), owner: role(20, "u") },
        Change::Suspend { name: named("d") },
        Change::Resume { name: named("d") },
        Change::AutoResume { name: named("d") },
        Change::Drop { name: named("d"), if_exists: false },
        Change::Grant {
            clusters: vec![named("c"), named("d")],
            privileges: vec![Privilege::Usage],
            to: vec![Grantee::Public],
        },
        Change::SetDefaultClusters { role: role(20, "u"), clusters: vec![named("c"), named("d")] },
    ];
    for change in there_is_none {
        assert_eq!(refused(&state, &change).condition(), Condition::UndefinedObject, "{change:?}");
    }
    assert_eq!(apply_ok(&state, &Change::Drop { name: named("d"), if_exists: true }), (state.clone(), vec![]));
}

#[test]
fn names_are_unique_and_bounded() {
    let state = apply_changes(&initial_state(), &[create("c", with_nodes(2)), create("d", with_nodes(2))]);
    let duplicate = Error::DuplicateCluster { name: named("c") };
    assert_eq!(refused(&state, &create("c", with_nodes(1))), duplicate);
    assert_eq!(refused(&state, &Change::Rename { name: named("d"), to: named("c") }), duplicate);
    assert_eq!(duplicate.condition(), Condition::DuplicateObject);
    let long = "x".repeat(64);
    for change in [create(&long, with_nodes(1)), Change::Rename { name: named("d"), to: long.clone() }] {
        assert_eq!(refused(&state, &change).condition(), Condition::NameTooLong);
    }
    for name in ["", "a\0b"] {
        assert_eq!(refused(&state, &create(name, with_nodes(1))).condition(), Condition::InvalidName);
    }
    apply_ok(&state, &create(&long[..63], with_nodes(1)));
}

#[test]
fn if_not_exists_and_or_replace() {
    let options = ClusterOptions { auto_suspend: Some(Some(60)), ..with_nodes(3) };
    let owner = Author::Role(Actor { role: role(20, "u"), superuser: false, create_cluster: true, create_role: false });
    let mut state = apply_by(&initial_state(), &create("c", options), &owner);
    let public =
        Change::Grant { clusters: vec![named("c")], privileges: vec![Privilege::Usage], to: vec![Grantee::Public] };
    state = apply_changes(&state, &[public, Change::Suspend { name: named("c") }]);
    let again = |if_exists| Change::Create { name: named("c"), options: with_nodes(5), if_exists };
    assert_eq!(apply_ok(&state, &again(IfExists::Keep)), (state.clone(), vec![]));

    let (replaced, events) = apply_ok(&state, &again(IfExists::Replace));
    assert_eq!(events, [EventKind::Replaced]);
    let (before, cluster) =
        (state.cluster_named("c").expect("it exists"), replaced.cluster_named("c").expect("it exists"));
    assert_eq!((cluster.spec.node_count, cluster.spec.auto_suspend), (5, None), "unnamed options are reset");
    assert_eq!((cluster.id, &cluster.grants, cluster.spec.owner), (before.id, &before.grants, Oid(20)));
    assert!(!cluster.suspended, "a replaced cluster is not suspended");
    let stranger = user(21, "v");
    let refusal = change_by(&state, &again(IfExists::Replace), &stranger).expect_err("the role is not the owner");
    assert_eq!(refusal, Error::NotOwner { name: named("c") });
}

#[test]
fn options_change_one_by_one() {
    let state = apply_changes(
        &initial_state(),
        &[create("c", ClusterOptions { auto_suspend: Some(Some(60)), ..with_nodes(2) })],
    );
    let options = ClusterOptions { auto_suspend: Some(None), max_spill_pct: Some(Some(10)), ..with_nodes(2) };
    let (changed, events) = change_by(&state, &alter("c", options.clone()), &superuser()).expect("it is applied");
    assert_eq!(events[0].detail, "auto_suspend 60 -> NULL, max_spill_pct NULL -> 10");
    let cluster = changed.cluster_named("c").expect("it exists");
    assert_eq!(
        (cluster.spec.auto_suspend, cluster.spec.worker.max_spill_pct, cluster.spec.node_count),
        (None, Some(10), 2)
    );
    assert_eq!((cluster.created_at, cluster.changed_at, cluster.generation), (7, 1_000, 3));
    assert_eq!(apply_ok(&changed, &alter("c", options)), (changed.clone(), vec![]), "nothing has changed");
}

#[test]
fn default_stays_under_its_name() {
    let state = initial_state();
    let drop = refused(&state, &Change::Drop { name: named(DEFAULT_CLUSTER_NAME), if_exists: true });
    assert_eq!(drop.condition(), Condition::DependentObjectsStillExist);
    let rename = refused(&state, &Change::Rename { name: named(DEFAULT_CLUSTER_NAME), to: named("d") });
    assert_eq!(rename.condition(), Condition::ObjectInUse);
    let (state, events) = apply_ok(&state, &alter(DEFAULT_CLUSTER_NAME, with_nodes(4)));
    assert_eq!((events, state.awake_workers()), (vec![EventKind::Altered], 4));
}

#[test]
fn the_number_of_workers_is_limited() {
    let mut state = initial_state();
    for index in 0..46 {
        state = apply_changes(
            &state,
            &[create(&format!("c{index}"), with_nodes(64)), Change::Suspend { name: format!("c{index}") }],
        );
    }
    assert_eq!(state.awake_workers(), 1);
    state = apply_changes(&state, &[create("last", with_nodes(55))]);
    let expected = Error::TooManyWorkers { workers: 3_001, max: 3_000 };
    assert_eq!(refused(&state, &create("more", with_nodes(1))), expected);
    assert_eq!(refused(&state, &alter("last", with_nodes(56))), expected);
    let replace = Change::Create { name: named("last"), options: with_nodes(56), if_exists: IfExists::Replace };
    assert_eq!(refused(&state, &replace), expected);
    assert_eq!(expected.condition(), Condition::ConfigurationLimitExceeded);
    for index in 0..46 {
        state = apply_ok(&state, &Change::AutoResume { name: format!("c{index}") }).0;
    }
    assert_eq!(state.awake_workers(), 3_000, "suspended clusters count, so resuming is never refused");
}

#[test]
fn suspend_and_resume_are_idempotent() {
    let state = apply_changes(&initial_state(), &[create("c", with_nodes(2))]);
    let (suspend, resume) = (Change::Suspend { name: named("c") }, Change::Resume { name: named("c") });
    assert_eq!(apply_ok(&state, &resume), (state.clone(), vec![]));
    let (asleep, events) = apply_ok(&state, &suspend);
    assert_eq!(events, [EventKind::Suspended]);
    let cluster = asleep.cluster_named("c").expect("it exists");
    assert_eq!((cluster.wanted_workers(), cluster.spec.node_count, cluster.awake_since), (0, 2, 7));
    assert_eq!(apply_ok(&asleep, &suspend), (asleep.clone(), vec![]));
    let (awake, events) = apply_ok(&asleep, &resume);
    assert_eq!(events, [EventKind::Resumed]);
    assert_eq!(awake.cluster_named("c").expect("it exists").awake_since, 1_000);
}

#[test]
fn a_statement_resumes_clusters_with_auto_resume() {
    let public =
        Change::Grant { clusters: vec![named("c")], privileges: vec![Privilege::Usage], to: vec![Grantee::Public] };
    let state =
        apply_changes(&initial_state(), &[create("c", with_nodes(2)), public, Change::Suspend { name: named("c") }]);
    let wake = Change::AutoResume { name: named("c") };
    let (awake, events) = change_by(&state, &wake, &user(20, "u")).expect("USAGE allows to resume for a statement");
    assert!(!awake.cluster_named("c").expect("it exists").suspended);
    assert_eq!((events[0].kind, events[0].author.as_deref()), (EventKind::Resumed, Some("u")));
    assert_eq!(apply_ok(&awake, &wake), (awake.clone(), vec![]));

    let no_waking = ClusterOptions { auto_resume: Some(false), ..ClusterOptions::default() };
    let state = apply_changes(&state, &[alter("c", no_waking)]);
    let error = refused(&state, &wake);
    assert_eq!(error, Error::Suspended { name: named("c") });
    assert_eq!(error.condition(), Condition::ObjectNotInPrerequisiteState);
}

#[test]
fn a_changed_cluster_is_not_suspended_as_idle() {
    let state = apply_changes(&initial_state(), &[create("c", with_nodes(2))]);
    let cluster = state.cluster_named("c").expect("it exists");
    let idle = Change::AutoSuspend { cluster: cluster.id, generation: cluster.generation };
    let (asleep, events) = change_by(&state, &idle, &Author::Instance).expect("it is applied");
    assert!(asleep.cluster_named("c").expect("it exists").suspended);
    assert_eq!((events[0].author.as_deref(), events[0].detail.as_str()), (None, "idle"));
    let changed = apply_changes(&state, &[alter("c", with_nodes(3))]);
    assert_eq!(change_by(&changed, &idle, &Author::Instance), Ok((changed.clone(), vec![])));
    let dropped = apply_changes(&state, &[Change::Drop { name: named("c"), if_exists: false }]);
    assert_eq!(change_by(&dropped, &idle, &Author::Instance), Ok((dropped.clone(), vec![])));
}

#[test]
fn ids_are_not_reused() {
    let state = apply_changes(&initial_state(), &[create("c", with_nodes(1))]);
    let first = state.cluster_named("c").expect("it exists").id;
    let state =
        apply_changes(&state, &[Change::Drop { name: named("c"), if_exists: false }, create("c", with_nodes(1))]);
    assert!(first < state.cluster_named("c").expect("it exists").id);
}

#[test]
fn changes_need_privileges() {
    let owner = Author::Role(Actor { role: role(20, "u"), superuser: false, create_cluster: true, create_role: false });
    let stranger = user(21, "v");
    assert_eq!(change_by(&initial_state(), &create("c", with_nodes(1)), &stranger), Err(Error::NoCreatePrivilege));
    let state = apply_by(&initial_state(), &create("c", with_nodes(1)), &owner);
    assert_eq!(state.cluster_named("c").expect("it exists").spec.owner, Oid(20));
    let grant = |privilege| Change::Grant {
        clusters: vec![named("c")],
        privileges: vec![privilege],
        to: vec![Grantee::Role(role(21, "v"))],
    };
    let for_owners = [
        alter("c", with_nodes(2)),
        Change::Rename { name: named("c"), to: named("d") },
        Change::SetOwner { name: named("c"), owner: role(21, "v") },
        grant(Privilege::Operate),
        Change::Drop { name: named("c"), if_exists: false },
    ];
    for change in &for_owners {
        let error = change_by(&state, change, &stranger).expect_err("the role is not the owner");
        assert_eq!(error, Error::NotOwner { name: named("c") });
        assert_eq!(error.condition(), Condition::InsufficientPrivilege);
        for author in [&owner, &superuser()] {
            assert_eq!(change_by(&state, change, author).expect("the changes are allowed").1.len(), 1, "{change:?}");
        }
    }
    let suspend = Change::Suspend { name: named("c") };
    assert_eq!(change_by(&state, &suspend, &stranger), Err(Error::NoPrivilege { name: named("c") }));
    let state = apply_by(&state, &grant(Privilege::Usage), &owner);
    assert_eq!(change_by(&state, &suspend, &stranger), Err(Error::NoPrivilege { name: named("c") }));
    let state = apply_by(&state, &grant(Privilege::Operate), &owner);
    let state = apply_by(&state, &suspend, &stranger);
    let state = apply_by(&state, &Change::Resume { name: named("c") }, &stranger);
    let revoke = Change::Revoke {
        clusters: vec![named("c")],
        privileges: vec![Privilege::Usage, Privilege::Operate],
        from: vec![Grantee::Role(role(21, "v")), Grantee::Public],
    };
    let (state, events) = change_by(&state, &revoke, &owner).expect("it is applied");
    assert_eq!(events[0].detail, "USAGE, OPERATE from v, PUBLIC");
    assert_eq!(change_by(&state, &suspend, &stranger), Err(Error::NoPrivilege { name: named("c") }));
    assert_eq!(change_by(&state, &revoke, &owner).expect("it is applied").1, [], "nothing has changed");
}

#[test]
fn default_clusters_of_others_need_create_role() {
    let state = apply_changes(&initial_state(), &[create("c", with_nodes(1))]);
    let set = Change::SetDefaultClusters { role: role(20, "u"), clusters: vec![named("c")] };
    assert_eq!(change_by(&state, &set, &user(21, "v")), Err(Error::NoAlterRolePrivilege { role: named("u") }));
    let (state, events) = change_by(&state, &set, &user(20, "u")).expect("a role may set its own default clusters");
    assert_eq!((events[0].cluster.as_deref(), events[0].detail.as_str()), (None, "role u: c"));
    assert_eq!(apply_ok(&state, &set), (state.clone(), vec![]));
}

#[test]
fn a_removed_role_owns_nothing_and_leaves_no_grants() {
    let grant = Change::Grant {
        clusters: vec![named("c")],
        privileges: vec![Privilege::Usage, Privilege::Operate],
        to: vec![Grantee::Role(role(20, "u")), Grantee::Role(role(21, "v"))],
    };
    let set = Change::SetDefaultClusters { role: role(20, "u"), clusters: vec![named("c")] };
    let state = apply_changes(&initial_state(), &[create("c", with_nodes(1)), grant, set]);
    let owner = refused(&state, &Change::RemoveRole { role: Oid(10) });
    assert_eq!(owner, Error::OwnsClusters { role: Oid(10), clusters: vec![named(DEFAULT_CLUSTER_NAME), named("c")] });
    assert_eq!(owner.condition(), Condition::DependentObjectsStillExist);
    let forget = Change::RemoveRole { role: Oid(20) };
    let (state, events) = apply_ok(&state, &forget);
    assert_eq!(events, [EventKind::RoleForgotten]);
    assert_eq!(state.default_clusters(Oid(20)).len(), 0);
    let grants: Vec<Option<Oid>> =
        state.cluster_named("c").expect("it exists").grants.iter().map(|grant| grant.role).collect();
    assert_eq!(grants, [Some(Oid(21)), Some(Oid(21))]);
    assert_eq!(apply_ok(&state, &forget), (state.clone(), vec![]));
}

#[test]
fn a_refused_change_has_no_effect() {
    let state = apply_changes(&initial_state(), &[create("c", with_nodes(1))]);
    let halfway = Change::Grant {
        clusters: vec![named("c"), named("d")],
        privileges: vec![Privilege::Usage],
        to: vec![Grantee::Public],
    };
    let before = state.clone();
    refused(&state, &halfway);
    assert_eq!(state, before);
}

#[test]
fn the_history_is_bounded() {
    let mut state = apply_changes(&initial_state(), &[create("c", with_nodes(1))]);
    for round in 0..EventHistory::CHANGES_MAX {
        state = apply_changes(
            &state,
            &[alter("c", with_nodes(1 + i64::try_from(round).expect("it is small") % 2 * 3 + 1))],
        );
    }
    assert_eq!(state.history().iter().len(), EventHistory::CHANGES_MAX);
    assert!(state.history().iter().all(|event| event.kind == EventKind::Altered), "the oldest are dropped first");
}
