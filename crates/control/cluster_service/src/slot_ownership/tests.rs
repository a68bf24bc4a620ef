use super::*;

fn slots(slots: &[u32]) -> BTreeSet<u32> {
    slots.iter().copied().collect()
}

/// Returns the state of a cluster that is awake and has run statements; workers beyond `node_count` have their slot as
/// id.
fn seen(serving: &[u32], beyond: &[u32], node_count: u32) -> ClusterObservation {
    let beyond = beyond.iter().map(|slot| (*slot, WorkerId(u64::from(*slot)))).collect();
    ClusterObservation {
        serving: slots(serving),
        surplus: beyond,
        replaced: BTreeMap::new(),
        node_count,
        is_awake: true,
        has_run_statements: true,
    }
}

fn owners(own: &[u32]) -> SlotOwnership {
    SlotOwnership { owning: slots(own), ..SlotOwnership::default() }
}

/// Updates the ownership and returns the slots whose hand-overs start.
fn update_and_start(owners: &mut SlotOwnership, seen: &ClusterObservation) -> (Vec<u32>, Vec<u32>) {
    owners.update(seen);
    let Handovers { joining: coming, leaving, .. } = owners.start_handovers();
    (coming, leaving.into_iter().map(|(slot, _)| slot).collect())
}

#[test]
fn a_later_slot_needs_a_handover() {
    let mut owners = SlotOwnership::default();
    let unasked = |serving| ClusterObservation { has_run_statements: false, ..seen(serving, &[], 3) };
    assert_eq!(update_and_start(&mut owners, &unasked(&[0])), (vec![], vec![]));
    assert_eq!(
        update_and_start(&mut owners, &unasked(&[0, 1])),
        (vec![], vec![]),
        "no statement has run, so caches are cold"
    );
    assert_eq!(update_and_start(&mut owners, &seen(&[0, 1, 2], &[], 3)), (vec![2], vec![]));
    assert_eq!(
        update_and_start(&mut owners, &seen(&[0, 1, 2], &[], 3)),
        (vec![], vec![]),
        "the hand-over has started already"
    );
    assert_eq!(owners.owning, slots(&[0, 1]));
    owners.complete_joining(2);
    assert_eq!(owners.owning, slots(&[0, 1, 2]));
}

#[test]
fn a_replacement_owns_the_slots_parts() {
    let mut owners = owners(&[0, 1]);
    for serving in [&[0][..], &[0, 1], &[], &[1]] {
        assert_eq!(
            update_and_start(&mut owners, &seen(serving, &[], 2)),
            (vec![], vec![]),
            "a replacement needs no hand-over"
        );
    }
    assert_eq!(owners.owning, slots(&[0, 1]));
    assert_eq!(update_and_start(&mut owners, &seen(&[0], &[], 1)), (vec![], vec![]), "no worker is left to hand over");
    assert_eq!(owners.owning, slots(&[0]));
}

#[test]
fn a_slot_removed_before_its_handover_owns_nothing() {
    let mut owners = owners(&[0]);
    assert_eq!(update_and_start(&mut owners, &seen(&[0, 1], &[], 2)), (vec![1], vec![]));
    assert_eq!(update_and_start(&mut owners, &seen(&[0], &[1], 1)), (vec![], vec![]));
    owners.complete_joining(1);
    assert_eq!(owners.owning, slots(&[0]));
}

#[test]
fn a_removed_slot_owns_its_parts_until_the_handover_ends() {
    let mut owners = owners(&[0, 1, 2, 3]);
    assert_eq!(update_and_start(&mut owners, &seen(&[0, 1], &[2, 3], 2)), (vec![], vec![2, 3]));
    assert_eq!(
        update_and_start(&mut owners, &seen(&[0, 1], &[2, 3], 2)),
        (vec![], vec![]),
        "the hand-over has started already"
    );
    assert_eq!((owners.owning.clone(), owners.staying_slots().collect::<Vec<_>>()), (slots(&[0, 1, 2, 3]), vec![0, 1]));
    assert_eq!(
        update_and_start(&mut owners, &seen(&[0, 1], &[3], 2)),
        (vec![], vec![]),
        "one of the removed workers has failed"
    );
    assert_eq!(owners.owning, slots(&[0, 1, 3]));
    owners.complete_leaving(3, WorkerId(9));
    assert_eq!(owners.owning, slots(&[0, 1, 3]), "the report is about another worker");
    owners.complete_leaving(3, WorkerId(3));
    assert_eq!(owners, SlotOwnership { owning: slots(&[0, 1]), ..SlotOwnership::default() });
    assert_eq!(update_and_start(&mut owners, &seen(&[0, 1], &[3], 2)), (vec![], vec![]), "the worker only drains now");
    assert_eq!(owners.owning, slots(&[0, 1]));
}

#[test]
fn a_revoked_removal_cancels_the_handover() {
    let mut owners = owners(&[0, 1]);
    assert_eq!(update_and_start(&mut owners, &seen(&[0], &[1], 1)), (vec![], vec![1]));
    assert_eq!(update_and_start(&mut owners, &seen(&[0, 1], &[], 2)), (vec![], vec![]));
    owners.complete_leaving(1, WorkerId(1));
    assert_eq!(owners, SlotOwnership { owning: slots(&[0, 1]), ..SlotOwnership::default() });
}

#[test]
fn no_handover_without_remaining_slots_or_warm_caches() {
    let asleep = ClusterObservation { is_awake: false, ..seen(&[], &[2], 2) };
    let unasked = ClusterObservation { has_run_statements: false, ..seen(&[0, 1], &[2], 2) };
    for (about, left) in [(asleep, &[0, 1][..]), (unasked, &[0, 1]), (seen(&[], &[2], 2), &[0, 1])] {
        let mut owners = owners(&[0, 1, 2]);
        assert_eq!(update_and_start(&mut owners, &about), (vec![], vec![]), "{about:?}");
        assert_eq!(owners.owning, slots(left), "{about:?}");
    }
    let mut owners = owners(&[0, 1, 2]);
    assert_eq!(update_and_start(&mut owners, &seen(&[0, 1], &[2], 2)), (vec![], vec![2]));
    let asleep = ClusterObservation { is_awake: false, ..seen(&[], &[2], 2) };
    assert_eq!(update_and_start(&mut owners, &asleep), (vec![], vec![]));
    assert!(owners.leaving.is_empty(), "a suspended cluster hands nothing over");
}

#[test]
fn a_replacement_takes_over_from_the_old_worker() {
    let (old, mut owners) = (WorkerId(7), owners(&[0, 1]));
    let doubled = ClusterObservation { replaced: BTreeMap::from([(old, 1)]), ..seen(&[0, 1], &[], 2) };
    let taken = |owners: &mut SlotOwnership, seen: &ClusterObservation| {
        owners.update(seen);
        (owners.start_handovers().replaced, owners.handing_over().collect::<Vec<_>>())
    };
    assert_eq!(taken(&mut owners, &doubled), (vec![(old, 1)], vec![old]));
    assert_eq!(taken(&mut owners, &doubled), (vec![], vec![old]), "the hand-over has started already");
    owners.complete_replacement(old);
    assert_eq!(taken(&mut owners, &doubled), (vec![], vec![]), "the worker only drains now");
    assert_eq!(taken(&mut owners, &seen(&[0, 1], &[], 2)), (vec![], vec![]));
    assert_eq!(owners, SlotOwnership { owning: slots(&[0, 1]), ..SlotOwnership::default() });
    let unasked = ClusterObservation { has_run_statements: false, ..doubled };
    assert_eq!(taken(&mut owners, &unasked), (vec![], vec![]), "caches are cold");
}
