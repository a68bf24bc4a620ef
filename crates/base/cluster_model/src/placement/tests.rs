use std::collections::BTreeMap;

use types::Random;
use types::random::SeededRandom;

use super::*;

const CLUSTER: ClusterId = ClusterId(3);

fn placement(slots: u32) -> Placement {
    Placement::new(CLUSTER, 0..slots)
}

/// Returns parts of random shards, four of each shard.
fn parts(count: u32) -> Vec<Part> {
    let random = SeededRandom::new(7);
    let shards = std::iter::repeat_with(|| random.next_u64());
    shards.flat_map(|shard| (0..4).map(move |index| Part { shard, index })).take(count as usize).collect()
}

/// Returns parts of numbered shards, because the hash must not rely on random ids.
fn numbered(count: u32) -> Vec<Part> {
    (0..count).map(|at| Part { shard: u64::from(at / 4), index: at % 4 }).collect()
}

fn counts(owners: &[u32]) -> BTreeMap<u32, usize> {
    let mut counts = BTreeMap::new();
    for owner in owners {
        *counts.entry(*owner).or_insert(0) += 1;
    }
    counts
}

#[test]
fn a_new_slot_takes_an_equal_share() {
    for parts in [parts(200_000), numbered(200_000)] {
        for slots in [1, 2, 3, 4, 7, 8, 15, 31, 63] {
            let (before, after) = (placement(slots), placement(slots + 1));
            let moved: Vec<OwnerChange> = changed_owners(&before, &after, parts.iter().copied()).collect();
            let share = moved.len() as f64 / parts.len() as f64 * f64::from(slots + 1);
            assert!((0.9..=1.1).contains(&share), "{slots} slots: {share} of what the new one should get");
            assert!(moved.iter().all(|one| one.to == Some(slots) && one.from < Some(slots)));
            // All other slots give up about the same number of parts.
            let given = counts(&moved.iter().map(|one| one.from.expect("all parts had an owner")).collect::<Vec<_>>());
            assert_eq!(given.len(), slots as usize);
            let mean = moved.len() as f64 / f64::from(slots);
            let room = 6.0 * mean.sqrt();
            assert!(given.values().all(|count| (*count as f64 - mean).abs() < room), "{slots} slots: {given:?}");
        }
    }
}

#[test]
fn a_removed_slots_parts_are_spread_over_the_others() {
    let parts = parts(100_000);
    let before = placement(8);
    for gone in 0..8 {
        let after = Placement::new(CLUSTER, (0..8).filter(|slot| *slot != gone));
        let moved: Vec<OwnerChange> = changed_owners(&before, &after, parts.iter().copied()).collect();
        assert!(moved.iter().all(|one| one.from == Some(gone)));
        assert_eq!(moved.len(), counts(&before.owners(&parts))[&gone]);
        let heirs = counts(&moved.iter().map(|one| one.to.expect("other slots remain")).collect::<Vec<_>>());
        assert_eq!(heirs.len(), 7);
        let mean = moved.len() as f64 / 7.0;
        assert!(heirs.values().all(|count| (*count as f64) < mean * 1.1), "{heirs:?}");
        // The new owner is the first substitute.
        for one in &moved {
            assert_eq!(before.ranked_slots(one.part)[..2], [gone, one.to.expect("other slots remain")]);
        }
    }
}

#[test]
fn slots_own_equal_shares() {
    for parts in [parts(640_000), numbered(640_000)] {
        for slots in [2, 4, 16, 64] {
            let counts = counts(&placement(slots).owners(&parts));
            let most = *counts.values().max().expect("there is an owner") as f64;
            let least = *counts.values().min().expect("there is an owner") as f64;
            let mean = parts.len() as f64 / f64::from(slots);
            assert_eq!(counts.len(), slots as usize);
            assert!(most / mean < 1.05 && 0.95 < least / mean, "{slots} slots: {least} to {most}, {mean} in the mean");
        }
    }
}

#[test]
fn changed_owners_match_both_placements() {
    let parts = parts(20_000);
    let sets: [&[u32]; 7] = [&[], &[0], &[5], &[0, 1, 2], &[2, 3, 9, 40], &[0, 1, 2, 3, 4, 5], &[63, 9, 40]];
    for before in sets {
        for after in sets {
            for cluster in [CLUSTER, ClusterId(4)] {
                let before = Placement::new(CLUSTER, before.iter().copied());
                let after = Placement::new(cluster, after.iter().copied());
                let changed = parts.iter().filter_map(|part| {
                    let (from, to) = (before.owner(*part), after.owner(*part));
                    // A slot of another cluster with the same number is another worker.
                    let differs = from != to || (from.is_some() && cluster != CLUSTER);
                    differs.then_some(OwnerChange { part: *part, from, to })
                });
                let expected: Vec<OwnerChange> = changed.collect();
                let found: Vec<OwnerChange> = changed_owners(&before, &after, parts.iter().copied()).collect();
                if cluster == CLUSTER {
                    assert_eq!(found, expected, "{:?} to {:?}", before.slots(), after.slots());
                } else {
                    assert_eq!(found.len(), expected.len(), "{:?} to {:?}", before.slots(), after.slots());
                }
            }
        }
    }
}

#[test]
fn owners_depend_on_the_set_of_slots_only() {
    let parts = parts(1_000);
    let one = Placement::new(CLUSTER, [3, 1, 2, 1]);
    let other = Placement::new(CLUSTER, [1, 2, 3]);
    assert_eq!(one, other);
    assert_eq!(one.owners(&parts), other.owners(&parts));
    for part in &parts {
        let ranked = one.ranked_slots(*part);
        assert_eq!(ranked.first().copied(), one.owner(*part));
        let mut slots = ranked.clone();
        slots.sort_unstable();
        assert_eq!(slots, one.slots());
    }
    assert_eq!(Placement::new(CLUSTER, []).owner(parts[0]), None);
    assert_eq!(Placement::new(CLUSTER, []).owners(&parts), [0_u32; 0]);
}

/// Placements are not stored, but caches are on disk: a version that places differently would start with cold caches.
#[test]
fn the_placement_is_stable() {
    let owners = placement(16).owners(&numbered(32));
    let expected =
        [0, 6, 6, 3, 4, 1, 14, 4, 2, 10, 12, 13, 1, 14, 7, 2, 11, 9, 7, 13, 8, 9, 6, 15, 6, 2, 14, 5, 14, 14, 6, 5];
    assert_eq!(owners, expected);
}

#[test]
fn substitutes_replace_gone_and_overloaded_owners() {
    let placement = placement(5);
    for part in parts(500) {
        let ranked = placement.ranked_slots(part);
        let route = |load: &dyn Fn(u32) -> Option<u64>| placement.route(part, load, 10);
        let rank = |rank: usize| Some(PartRoute { slot: ranked[rank], rank });
        assert_eq!(route(&|_| Some(9)), rank(0));
        assert_eq!(route(&|slot| (slot != ranked[0]).then_some(0)), rank(1));
        assert_eq!(route(&|slot| Some(if slot == ranked[0] { 10 } else { 9 })), rank(1));
        assert_eq!(route(&|slot| (slot == ranked[3]).then_some(99)), rank(3));
        assert_eq!(route(&|slot| Some(if slot == ranked[2] { 11 } else { 12 })), rank(2));
        assert_eq!(route(&|_| Some(12)), rank(0), "with equal loads the owner is chosen");
        assert_eq!(route(&|_| None), None);
    }
}

#[test]
fn no_slot_has_much_more_than_the_mean() {
    let random = SeededRandom::new(3);
    let sized: Vec<(Part, u64)> = parts(5_000).into_iter().map(|part| (part, 1 + random.next_u64() % 1_000)).collect();
    let total: u64 = sized.iter().map(|(_, size)| size).sum();
    let placement = placement(16);
    let mut kept = Vec::new();
    for percent in [100, 105, 125, 200] {
        let placed = placement.place_bounded(&sized, percent);
        let mut loads = [0; 16];
        for (slot, (_, size)) in placed.iter().zip(&sized) {
            loads[*slot as usize] += size;
        }
        let limit = total * percent / 100 / 16 + 1_000;
        assert!(loads.iter().all(|load| *load <= limit), "{percent} %: {loads:?}");
        let owners = sized.iter().zip(&placed).filter(|((part, _), slot)| placement.owner(*part) == Some(**slot));
        kept.push(owners.count());

        let mut reversed = sized.clone();
        reversed.reverse();
        let mut again = placement.place_bounded(&reversed, percent);
        again.reverse();
        assert_eq!(again, placed, "the result does not depend on the order of the parts");
    }
    assert!(kept.is_sorted(), "{kept:?}");
    assert_eq!(kept.last(), Some(&5_000), "with enough room all parts are at their owners");
    assert_eq!(placement.place_bounded(&[], 100), [0_u32; 0]);
    assert_eq!(Placement::new(CLUSTER, []).place_bounded(&sized, 100), [0_u32; 0]);
    let empty = [(Part { shard: 1, index: 0 }, 0)];
    assert_eq!(placement.place_bounded(&empty, 100).len(), 1);
}

#[test]
fn the_epoch_changes_with_the_set_of_slots() {
    let first = Ownership::new(placement(4));
    assert_eq!(first.next(placement(4)), None);
    let second = first.next(placement(5)).expect("it has one more slot");
    assert_eq!((first.epoch, second.epoch), (1, 2));
    assert_eq!(second.next(placement(4)).expect("it has one slot less").epoch, 3, "epochs are not reused");
}

#[test]
fn all_bits_of_a_shard_id_count() {
    let random = SeededRandom::new(1);
    let one = random.uuid();
    let (high, low) = one.as_u64_pair();
    let part = |uuid| Part::new(ShardId(uuid), 0);
    assert_eq!(part(one), part(one));
    for other in [(high ^ 1, low), (high, low ^ 1), (low, high)] {
        let other = u128::from(other.0) << 64 | u128::from(other.1);
        assert_ne!(part(one), Part::new(ShardId::from(other.to_be_bytes()), 0));
    }
}

#[test]
fn buckets_are_placed_alike_and_stay_when_a_slot_comes() {
    let buckets: Vec<(Part, u64)> = (0..64).map(|bucket| (Part::from_bucket(bucket), 1)).collect();
    for slots in [2, 3, 4, 8, 16] {
        let (before, after) =
            (placement(slots).place_bounded(&buckets, 110), placement(slots + 1).place_bounded(&buckets, 110));
        let most = (64 * 110_usize).div_ceil(100 * slots as usize);
        assert!(counts(&before).values().all(|count| *count <= most), "{slots} slots: {before:?}");
        let moved = before.iter().zip(&after).filter(|(before, after)| before != after).count();
        // The new slot's share, and parts that move because other slots are at their limit.
        assert!(moved <= 2 * 64 / (slots as usize + 1) + 4, "{slots} slots: {moved} of 64 move");
    }
}
