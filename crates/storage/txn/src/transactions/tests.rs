use std::collections::HashSet;

use kv::sim::SimDisk;

use super::*;
use crate::fixtures::*;

#[tokio::test]
async fn what_was_committed_is_there_after_a_restart() {
    let (disk, objects) = (SimDisk::new(1), bucket());
    let transactions = open(&disk, &objects);
    commit(&transactions, vec![put(table(100, "t")), load(100, &[2, 1])]).await;
    commit(&transactions, vec![load(100, &[3])]).await;
    let before = transactions.current();
    drop(transactions);
    disk.crash();
    let after = open(&disk, &objects).current();
    assert_eq!((after.ts, &*after.state), (before.ts, &*before.state));
}

#[tokio::test]
async fn ids_are_not_given_twice_across_restarts() {
    let (disk, objects) = (SimDisk::new(1), bucket());
    let mut given = HashSet::new();
    for _ in 0..3 {
        let transactions = open(&disk, &objects);
        for _ in 0..1_500 {
            let oid = transactions.allocate_oid();
            assert!(Oid::FIRST_USER <= oid && given.insert(oid), "{oid} is new");
        }
        drop(transactions);
        disk.crash();
    }
}

#[tokio::test]
async fn many_waiting_commits_share_writes_and_all_arrive() {
    let transactions = fresh();
    commit(&transactions, vec![put(table(100, "t"))]).await;
    let commits = (0..500).map(|id| {
        let mut transaction = begin(&transactions);
        transaction.stage(vec![load(100, &[id])]).unwrap();
        transaction.commit()
    });
    let mut ts: Vec<CommitTs> =
        futures::future::join_all(commits).await.into_iter().map(|committed| committed.unwrap()).collect();
    ts.sort();
    ts.dedup();
    assert_eq!(ts.len(), 500, "each commit has its place in the order");
    let now = transactions.current();
    assert_eq!(now.ts, ts[499]);
    assert_eq!(now.state.shards(Oid(100)).shards.len(), 500);
}

#[tokio::test]
async fn of_conflicting_commits_that_wait_together_one_arrives() {
    let transactions = fresh();
    let commits = (0..50).map(|number| {
        let mut transaction = begin(&transactions);
        transaction.stage(vec![put(table(100 + number, "t"))]).unwrap();
        transaction.commit()
    });
    let outcomes = futures::future::join_all(commits).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(_) | Err(Error::Conflict(_)))));
}

#[tokio::test]
async fn a_failed_write_stops_everything() {
    let (disk, objects) = (SimDisk::new(1), bucket());
    let transactions = open(&disk, &objects);
    commit(&transactions, vec![put(table(100, "t"))]).await;
    disk.fail_after(0);
    let mut transaction = begin(&transactions);
    transaction.stage(vec![load(100, &[1])]).unwrap();
    assert!(matches!(transaction.commit().await, Err(Error::InDoubt(_))));
    transactions.wait_until_poisoned().await;
    assert!(transactions.current().state.shards(Oid(100)).shards.is_empty(), "nothing undurable is visible");
    let mut transaction = begin(&transactions);
    transaction.stage(vec![load(100, &[2])]).unwrap();
    assert!(matches!(transaction.commit().await, Err(Error::Poisoned)));
    assert!(matches!(begin(&transactions).announce_upload("tables/100/x").await, Err(Error::Poisoned)));
    assert!(matches!(transactions.clean_once().await, Err(Error::Poisoned)));
}

#[tokio::test]
async fn a_commit_whose_caller_left_still_happens() {
    let transactions = fresh();
    let mut transaction = begin(&transactions);
    transaction.stage(vec![put(table(100, "t"))]).unwrap();
    {
        let commit = std::pin::pin!(transaction.commit());
        assert!(futures::poll!(commit).is_pending() || !transactions.is_poisoned());
    }
    // A later commit follows it in the order.
    commit(&transactions, vec![put(table(101, "u"))]).await;
    assert!(transactions.current().state.table(Oid(100)).is_some());
}

#[tokio::test]
async fn who_waits_for_a_newer_commit_is_woken_by_it() {
    let transactions = fresh();
    let seen = transactions.current().ts;
    let mut waiting = std::pin::pin!(transactions.wait_for_commit_after(seen));
    assert!(futures::poll!(waiting.as_mut()).is_pending());
    commit(&transactions, vec![put(table(100, "t"))]).await;
    waiting.await;
    transactions.wait_for_commit_after(seen).await;
    let seen = transactions.current().ts;
    assert!(futures::poll!(std::pin::pin!(transactions.wait_for_commit_after(seen))).is_pending());
}
