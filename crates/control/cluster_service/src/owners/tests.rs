use super::*;

fn slots(slots: &[u32]) -> BTreeSet<u32> {
    slots.iter().copied().collect()
}

/// Returns the state of a cluster that is awake and has run statements; workers beyond `node_count` have their slot as
/// id.
fn seen(serving: &[u32], beyond: &[u32], node_count: u32) -> Seen {
    let beyond = beyond.iter().map(|slot| (*slot, WorkerId(u64::from(*slot)))).collect();
    Seen { serving: slots(serving), beyond, replaced: BTreeMap::new(), node_count, is_awake: true, was_asked: true }
}

fn owners(own: &[u32]) -> Owners {
    Owners { own: slots(own), ..Owners::default() }
}

/// Updates the ownership and returns the slots whose hand-overs start.
fn noted(owners: &mut Owners, seen: &Seen) -> (Vec<u32>, Vec<u32>) {
    owners.note(seen);
    let HandOver { coming, leaving, .. } = owners.begin();
    (coming, leaving.into_iter().map(|(slot, _)| slot).collect())
}

#[test]
fn who_comes_first_owns_at_once_and_who_comes_later_takes_over() {
    let mut owners = Owners::default();
    let unasked = |serving| Seen { was_asked: false, ..seen(serving, &[], 3) };
    assert_eq!(noted(&mut owners, &unasked(&[0])), (vec![], vec![]));
    assert_eq!(noted(&mut owners, &unasked(&[0, 1])), (vec![], vec![]), "no statement has run, so caches are cold");
    assert_eq!(noted(&mut owners, &seen(&[0, 1, 2], &[], 3)), (vec![2], vec![]));
    assert_eq!(noted(&mut owners, &seen(&[0, 1, 2], &[], 3)), (vec![], vec![]), "the hand-over has started already");
    assert_eq!(owners.own, slots(&[0, 1]));
    owners.came(2);
    assert_eq!(owners.own, slots(&[0, 1, 2]));
}

#[test]
fn who_replaces_a_worker_owns_what_it_owned() {
    let mut owners = owners(&[0, 1]);
    for serving in [&[0][..], &[0, 1], &[], &[1]] {
        assert_eq!(noted(&mut owners, &seen(serving, &[], 2)), (vec![], vec![]), "a replacement needs no hand-over");
    }
    assert_eq!(owners.own, slots(&[0, 1]));
    assert_eq!(noted(&mut owners, &seen(&[0], &[], 1)), (vec![], vec![]), "no worker is left to hand over");
    assert_eq!(owners.own, slots(&[0]));
}

#[test]
fn a_slot_that_goes_before_it_has_come_owns_nothing() {
    let mut owners = owners(&[0]);
    assert_eq!(noted(&mut owners, &seen(&[0, 1], &[], 2)), (vec![1], vec![]));
    assert_eq!(noted(&mut owners, &seen(&[0], &[1], 1)), (vec![], vec![]));
    owners.came(1);
    assert_eq!(owners.own, slots(&[0]));
}

#[test]
fn who_goes_owns_its_parts_until_others_have_taken_over() {
    let mut owners = owners(&[0, 1, 2, 3]);
    assert_eq!(noted(&mut owners, &seen(&[0, 1], &[2, 3], 2)), (vec![], vec![2, 3]));
    assert_eq!(noted(&mut owners, &seen(&[0, 1], &[2, 3], 2)), (vec![], vec![]), "the hand-over has started already");
    assert_eq!((owners.own.clone(), owners.staying().collect::<Vec<_>>()), (slots(&[0, 1, 2, 3]), vec![0, 1]));
    assert_eq!(noted(&mut owners, &seen(&[0, 1], &[3], 2)), (vec![], vec![]), "one of the removed workers has failed");
    assert_eq!(owners.own, slots(&[0, 1, 3]));
    owners.left(3, WorkerId(9));
    assert_eq!(owners.own, slots(&[0, 1, 3]), "the report is about another worker");
    owners.left(3, WorkerId(3));
    assert_eq!(owners, Owners { own: slots(&[0, 1]), ..Owners::default() });
    assert_eq!(noted(&mut owners, &seen(&[0, 1], &[3], 2)), (vec![], vec![]), "the worker only drains now");
    assert_eq!(owners.own, slots(&[0, 1]));
}

#[test]
fn who_is_wanted_again_stays_and_hands_nothing_over() {
    let mut owners = owners(&[0, 1]);
    assert_eq!(noted(&mut owners, &seen(&[0], &[1], 1)), (vec![], vec![1]));
    assert_eq!(noted(&mut owners, &seen(&[0, 1], &[], 2)), (vec![], vec![]));
    owners.left(1, WorkerId(1));
    assert_eq!(owners, Owners { own: slots(&[0, 1]), ..Owners::default() });
}

#[test]
fn nothing_is_handed_over_where_nobody_stays_or_nothing_is_hot() {
    let asleep = Seen { is_awake: false, ..seen(&[], &[2], 2) };
    let unasked = Seen { was_asked: false, ..seen(&[0, 1], &[2], 2) };
    for (about, left) in [(asleep, &[0, 1][..]), (unasked, &[0, 1]), (seen(&[], &[2], 2), &[0, 1])] {
        let mut owners = owners(&[0, 1, 2]);
        assert_eq!(noted(&mut owners, &about), (vec![], vec![]), "{about:?}");
        assert_eq!(owners.own, slots(left), "{about:?}");
    }
    let mut owners = owners(&[0, 1, 2]);
    assert_eq!(noted(&mut owners, &seen(&[0, 1], &[2], 2)), (vec![], vec![2]));
    let asleep = Seen { is_awake: false, ..seen(&[], &[2], 2) };
    assert_eq!(noted(&mut owners, &asleep), (vec![], vec![]));
    assert!(owners.leaving.is_empty(), "a suspended cluster hands nothing over");
}

#[test]
fn who_has_the_slot_of_another_takes_over_from_it_once() {
    let (old, mut owners) = (WorkerId(7), owners(&[0, 1]));
    let doubled = Seen { replaced: BTreeMap::from([(old, 1)]), ..seen(&[0, 1], &[], 2) };
    let taken = |owners: &mut Owners, seen: &Seen| {
        owners.note(seen);
        (owners.begin().replaced, owners.hand_over().collect::<Vec<_>>())
    };
    assert_eq!(taken(&mut owners, &doubled), (vec![(old, 1)], vec![old]));
    assert_eq!(taken(&mut owners, &doubled), (vec![], vec![old]), "the hand-over has started already");
    owners.was_replaced(old);
    assert_eq!(taken(&mut owners, &doubled), (vec![], vec![]), "the worker only drains now");
    assert_eq!(taken(&mut owners, &seen(&[0, 1], &[], 2)), (vec![], vec![]));
    assert_eq!(owners, Owners { own: slots(&[0, 1]), ..Owners::default() });
    let unasked = Seen { was_asked: false, ..doubled };
    assert_eq!(taken(&mut owners, &unasked), (vec![], vec![]), "caches are cold");
}
