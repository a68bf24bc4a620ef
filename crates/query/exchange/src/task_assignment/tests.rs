//! Tests for the assignment of parts and tasks to workers.

use proptest::prelude::*;
use scan::PartLocation;
use shards::BUCKET_COUNT;
use url::Url;
use uuid::Uuid;

use super::{Cluster, assign_buckets, assign_parts, assign_tasks, choose_readers, owner_count};

#[derive(Debug)]
struct ByRow;

impl Cluster for ByRow {
    fn report_unreachable(&self, _: &Url) {}

    fn workers(&self) -> Vec<Url> {
        urls(4)
    }

    fn part_owners(&self, parts: &[PartLocation], among: &[Url]) -> Vec<usize> {
        parts.iter().map(|part| part.row % among.len()).collect()
    }

    fn bucket_owners(&self, among: &[Url]) -> Vec<usize> {
        // The last worker owns more than its share.
        (0..BUCKET_COUNT).map(|bucket| (bucket % (among.len() + 1)).min(among.len() - 1)).collect()
    }
}

fn urls(count: usize) -> Vec<Url> {
    (0..count).map(|number| Url::parse(&format!("http://worker-{number}:1")).unwrap()).collect()
}

fn part(row: usize) -> Option<PartLocation> {
    Some(PartLocation { shard: Uuid::from_u128(7).into_bytes().into(), row_group: 0, row })
}

proptest! {
    #[test]
    fn each_part_is_read_once_and_by_its_owner(rows in proptest::collection::vec(proptest::option::of(0_usize..50), 0..60), count in 1_usize..9) {
        let parts: Vec<_> = rows.iter().map(|row| row.and_then(part)).collect();
        let workers = urls(count);
        let assigned = assign_parts(&parts, &workers, &ByRow);
        let mut all: Vec<usize> = assigned.concat();
        all.sort_unstable();
        prop_assert_eq!(all, (0..parts.len()).collect::<Vec<_>>());
        for (worker, numbers) in assigned.iter().enumerate() {
            for number in numbers {
                prop_assert_eq!(rows[*number].map_or(0, |row| row % count), worker);
            }
        }
    }

    #[test]
    fn no_worker_has_two_tasks_of_a_stage(wanted in proptest::collection::vec(proptest::option::of(0_usize..6), 0..6), ready in 0_usize..6) {
        let (all, ready) = (urls(6), urls(ready));
        let wanted: Vec<_> = wanted.into_iter().map(|worker| worker.map(|worker| all[worker].clone())).collect();
        let Some(routed) = assign_tasks(&wanted, &ready) else {
            prop_assert!(ready.len() < wanted.len());
            return Ok(());
        };
        prop_assert_eq!(routed.len(), wanted.len());
        for (task, worker) in routed.iter().enumerate() {
            prop_assert!(ready.contains(worker));
            prop_assert!(!routed[..task].contains(worker));
        }
    }
}

#[test]
fn those_that_own_most_read() {
    let parts = [part(2), part(2), part(6), part(3), None];
    assert_eq!(owner_count(&parts, &urls(4), &ByRow), 3);
    assert_eq!(choose_readers(&parts, &urls(4), 1, &ByRow), [urls(4)[2].clone()]);
    assert_eq!(choose_readers(&parts, &urls(4), 3, &ByRow), [0, 2, 3].map(|worker| urls(4)[worker].clone()));
    assert_eq!(owner_count(&[], &urls(4), &ByRow), 1);
}

#[test]
fn a_task_goes_elsewhere_when_its_worker_is_gone() {
    let (all, ready) = (urls(4), urls(3));
    let wanted = [Some(all[3].clone()), Some(all[0].clone())];
    assert_eq!(assign_tasks(&wanted, &ready), Some(vec![all[1].clone(), all[0].clone()]));
    assert_eq!(assign_tasks(&wanted, &urls(1)), None);
}

#[test]
fn all_scans_of_a_stage_divide_buckets_alike() {
    for count in 1..5 {
        let (readers, owners) = assign_buckets(&urls(4), count, &ByRow);
        assert_eq!((readers.len(), owners.len()), (count, BUCKET_COUNT));
        assert!(readers.contains(&urls(4)[3]), "who owns most is among them");
        assert!((0..count).all(|reader| owners.contains(&reader)) && owners.iter().all(|owner| *owner < count));
    }
}
