use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::task::noop_waker;
use types::ManualClock;

use super::*;

type LockRequest<'a> = Pin<Box<dyn Future<Output = Result<LockOutcome, LockError>> + Send + 'a>>;

const BLOCK: LockWait = LockWait::Block { timeout: None };
const TABLE: Oid = Oid(7);

fn manager() -> LockManager {
    LockManager::new(Arc::new(ManualClock::default()))
}

fn table(locks: &LockManager, txn: u64, mode: TableLock) -> LockRequest<'_> {
    Box::pin(locks.lock_table(TxnId(txn), TABLE, mode, BLOCK))
}

fn row(locks: &LockManager, txn: u64, row: u64, mode: RowLock) -> LockRequest<'_> {
    Box::pin(async move { locks.lock_rows(TxnId(txn), TABLE, &[RowId(row)], mode, BLOCK).await })
}

fn poll(request: &mut LockRequest<'_>) -> Option<Result<LockOutcome, LockError>> {
    match request.as_mut().poll(&mut Context::from_waker(&noop_waker())) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

#[track_caller]
fn at_once(mut request: LockRequest<'_>) {
    assert_eq!(poll(&mut request), Some(Ok(LockOutcome::default())));
}

#[track_caller]
fn blocked(mut request: LockRequest<'_>) -> LockRequest<'_> {
    assert_eq!(poll(&mut request), None);
    request
}

#[track_caller]
fn granted(request: &mut LockRequest<'_>) {
    assert_eq!(poll(request), Some(Ok(LockOutcome { waited: true, skipped: Vec::new() })));
}

impl LockManager {
    /// Returns whether no lock is held or awaited and no bookkeeping remains.
    pub(super) fn is_empty(&self) -> bool {
        self.lock_maps.iter().all(|shard| shard.lock().is_empty())
            && self.held_locks.is_empty()
            && self.waits_for_graph.lock().is_empty()
    }
}

#[test]
fn tables_conflict_as_in_postgresqls_manual() {
    // Rows: requested mode; columns: mode held by another transaction, from ACCESS SHARE to ACCESS EXCLUSIVE.
    let conflicts = [
        ". . . . . . . X",
        ". . . . . . X X",
        ". . . . X X X X",
        ". . . X X X X X",
        ". . X X . X X X",
        ". . X X X X X X",
        ". X X X X X X X",
        "X X X X X X X X",
    ];
    for (requested, row) in TableLock::ALL.into_iter().zip(conflicts) {
        for (held, cell) in TableLock::ALL.into_iter().zip(row.split(' ')) {
            let locks = manager();
            at_once(table(&locks, 1, held));
            let answer = locks.lock_table(TxnId(2), TABLE, requested, LockWait::NoWait).now_or_never().unwrap();
            assert_eq!(answer.is_err(), cell == "X", "{requested:?} while {held:?} is held");
        }
    }
}

#[test]
fn rows_conflict_as_in_postgresqls_manual() {
    let conflicts = [". . . X", ". . X X", ". X X X", "X X X X"];
    for (requested, cells) in RowLock::ALL.into_iter().zip(conflicts) {
        for (held, cell) in RowLock::ALL.into_iter().zip(cells.split(' ')) {
            let locks = manager();
            at_once(row(&locks, 1, 5, held));
            let request = locks.lock_rows(TxnId(2), TABLE, &[RowId(5)], requested, LockWait::NoWait);
            let answer = request.now_or_never().unwrap();
            assert_eq!(answer.is_err(), cell == "X", "{requested:?} while {held:?} is held");
        }
    }
}

#[test]
fn keys_are_shared_or_exclusive() {
    let locks = manager();
    let ask = |txn, key: &'static str, mode| {
        locks.lock_keys(TxnId(txn), Oid(9), &[key], mode, LockWait::NoWait).now_or_never().unwrap().is_ok()
    };
    assert!(ask(1, "a", KeyLock::Shared));
    assert!(ask(2, "a", KeyLock::Shared));
    assert!(!ask(2, "a", KeyLock::Exclusive));
    assert!(ask(2, "b", KeyLock::Exclusive));
    assert!(ask(2, "b", KeyLock::Shared));
    assert!(!ask(1, "b", KeyLock::Shared));
    locks.release_all(TxnId(1));
    assert!(ask(2, "a", KeyLock::Exclusive));
    locks.release_all(TxnId(2));
    assert!(locks.is_empty());
}

#[test]
fn a_lock_that_nobody_else_wants_is_small() {
    assert_eq!(size_of::<(Resource, LockEntry)>(), 32);
    assert_eq!(size_of::<HeldLock>(), 24);
}

#[test]
fn a_transaction_does_not_stand_in_its_own_way() {
    let locks = manager();
    for mode in RowLock::ALL.into_iter().chain(RowLock::ALL) {
        at_once(row(&locks, 1, 5, mode));
    }
    for mode in TableLock::ALL.into_iter().rev() {
        at_once(table(&locks, 1, mode));
    }
    assert_eq!(locks.list().len(), 8, "every mode of the table");
    locks.release_all(TxnId(1));
    assert!(locks.is_empty());
}

#[test]
fn who_waits_gets_the_lock_when_it_is_given_back() {
    let locks = manager();
    at_once(row(&locks, 1, 5, RowLock::Update));
    let mut second = blocked(row(&locks, 2, 5, RowLock::Update));
    let mut third = blocked(row(&locks, 3, 5, RowLock::Update));
    assert_eq!(locks.blockers(TxnId(3)), [TxnId(1), TxnId(2)]);
    locks.release_all(TxnId(1));
    assert_eq!(poll(&mut third), None, "first come, first served");
    granted(&mut second);
    assert_eq!(locks.blockers(TxnId(2)), []);
    locks.release_all(TxnId(2));
    granted(&mut third);
    locks.release_all(TxnId(3));
    assert!(locks.is_empty());
}

#[test]
fn nobody_overtakes_whom_it_conflicts_with() {
    let locks = manager();
    at_once(row(&locks, 1, 5, RowLock::Share));
    let mut writer = blocked(row(&locks, 2, 5, RowLock::NoKeyUpdate));
    let mut reader = blocked(row(&locks, 3, 5, RowLock::Share));
    at_once(row(&locks, 4, 5, RowLock::KeyShare));
    locks.release_all(TxnId(1));
    granted(&mut writer);
    assert_eq!(poll(&mut reader), None);
    locks.release_all(TxnId(2));
    granted(&mut reader);
}

#[test]
fn nobody_is_overtaken_when_a_lock_is_given_back() {
    let locks = manager();
    at_once(row(&locks, 1, 5, RowLock::KeyShare));
    at_once(row(&locks, 2, 5, RowLock::Share));
    let mut writer = blocked(row(&locks, 3, 5, RowLock::Update));
    let mut reader = blocked(row(&locks, 4, 5, RowLock::Share));
    locks.release_all(TxnId(2));
    assert_eq!((poll(&mut writer), poll(&mut reader)), (None, None));
    locks.release_all(TxnId(1));
    granted(&mut writer);
}

#[test]
fn all_who_get_along_are_granted_together() {
    let locks = manager();
    at_once(table(&locks, 1, TableLock::AccessExclusive));
    let mut readers: Vec<_> = (2..6).map(|txn| blocked(table(&locks, txn, TableLock::AccessShare))).collect();
    let mut writer = blocked(table(&locks, 6, TableLock::Exclusive));
    let mut other = blocked(table(&locks, 7, TableLock::Exclusive));
    locks.release_all(TxnId(1));
    readers.iter_mut().for_each(granted);
    granted(&mut writer);
    assert_eq!(poll(&mut other), None);
}

#[test]
fn a_holder_that_wants_more_goes_ahead_of_those_who_wait_for_it() {
    let locks = manager();
    at_once(row(&locks, 1, 5, RowLock::Share));
    at_once(row(&locks, 2, 5, RowLock::Share));
    let mut third = blocked(row(&locks, 3, 5, RowLock::Update));
    let mut first = blocked(row(&locks, 1, 5, RowLock::Update));
    locks.release_all(TxnId(2));
    granted(&mut first);
    assert_eq!(poll(&mut third), None);
    locks.release_all(TxnId(1));
    granted(&mut third);
}

#[test]
fn rows_that_are_locked_are_skipped_or_told() {
    let locks = manager();
    at_once(row(&locks, 1, 5, RowLock::Update));
    let rows = [RowId(4), RowId(5), RowId(6)];
    let ask = |wait| locks.lock_rows(TxnId(2), TABLE, &rows, RowLock::Update, wait).now_or_never().unwrap();
    assert_eq!(ask(LockWait::SkipLocked), Ok(LockOutcome { waited: false, skipped: vec![1] }));
    assert_eq!(ask(LockWait::NoWait), Err(LockError::NotAvailable { resource: Resource::Row(TABLE, RowId(5)) }));
    locks.release_all(TxnId(1));
    assert_eq!(ask(LockWait::NoWait), Ok(LockOutcome::default()));
}

#[test]
fn waiting_ends_with_its_time() {
    let clock = Arc::new(ManualClock::default());
    let locks = LockManager::new(Arc::<ManualClock>::clone(&clock));
    let timeout = Some(Duration::from_secs(1));
    at_once(table(&locks, 1, TableLock::Share));
    let ask = |txn| -> LockRequest<'_> {
        Box::pin(locks.lock_table(TxnId(txn), TABLE, TableLock::Exclusive, LockWait::Block { timeout }))
    };
    let mut late = blocked(ask(2));
    clock.advance(Duration::from_millis(900));
    let mut in_time = blocked(ask(3));
    assert_eq!(locks.list().last().unwrap().waiting_since_us, Some(900_000));
    clock.advance(Duration::from_millis(100));
    assert_eq!(poll(&mut late), Some(Err(LockError::Timeout { resource: Resource::Table(TABLE) })));
    locks.release_all(TxnId(1));
    clock.advance(Duration::from_secs(5));
    granted(&mut in_time);
    locks.release_all(TxnId(3));
    assert!(locks.is_empty());
}

#[test]
fn who_goes_away_while_waiting_leaves_nothing() {
    let locks = manager();
    at_once(row(&locks, 1, 5, RowLock::Update));
    let gone = blocked(row(&locks, 2, 5, RowLock::Update));
    let mut next = blocked(row(&locks, 3, 5, RowLock::Update));
    drop(gone);
    locks.release_all(TxnId(1));
    granted(&mut next);
    locks.release_all(TxnId(3));
    assert!(locks.is_empty());
}

#[test]
fn a_lock_granted_to_one_who_has_gone_goes_to_the_next() {
    let locks = manager();
    at_once(row(&locks, 1, 5, RowLock::KeyShare));
    at_once(row(&locks, 2, 5, RowLock::KeyShare));
    let gone = blocked(row(&locks, 2, 5, RowLock::Update));
    let mut next = blocked(row(&locks, 3, 5, RowLock::NoKeyUpdate));
    locks.release_all(TxnId(1));
    assert_eq!(poll(&mut next), None);
    drop(gone);
    granted(&mut next);
    locks.release_all(TxnId(3));
    let other =
        locks.lock_rows(TxnId(4), TABLE, &[RowId(5)], RowLock::Update, LockWait::NoWait).now_or_never().unwrap();
    assert!(other.is_err(), "what it held before is still held");
    locks.release_all(TxnId(2));
    assert!(locks.is_empty());
}

#[test]
fn savepoints_give_back_what_was_locked_after_them() {
    let locks = manager();
    at_once(row(&locks, 1, 5, RowLock::KeyShare));
    let mark = locks.current_position(TxnId(1));
    at_once(row(&locks, 1, 5, RowLock::Update));
    at_once(row(&locks, 1, 6, RowLock::Update));
    let mut stronger = blocked(row(&locks, 2, 5, RowLock::NoKeyUpdate));
    let mut fresh = blocked(row(&locks, 3, 6, RowLock::Update));
    locks.release_to(TxnId(1), mark);
    granted(&mut stronger);
    granted(&mut fresh);
    assert_eq!(locks.current_position(TxnId(1)), mark);
    let weaker =
        locks.lock_rows(TxnId(4), TABLE, &[RowId(5)], RowLock::Update, LockWait::NoWait).now_or_never().unwrap();
    assert!(weaker.is_err(), "the share from before the mark is still held");
    (1..4).for_each(|txn| locks.release_all(TxnId(txn)));
    assert!(locks.is_empty());
}

#[test]
fn who_closes_a_circle_is_refused() {
    let locks = manager();
    for txn in 1..4 {
        at_once(row(&locks, txn, txn, RowLock::Update));
    }
    let _first = blocked(row(&locks, 1, 2, RowLock::Update));
    let mut second = blocked(row(&locks, 2, 3, RowLock::NoKeyUpdate));
    let mut third = row(&locks, 3, 1, RowLock::Share);
    let Some(Err(LockError::Deadlock { cycle: circle })) = poll(&mut third) else { panic!("a deadlock") };
    let steps: Vec<_> = circle.iter().map(|step| (step.waiter.0, step.blocker.0, step.mode)).collect();
    assert_eq!(
        steps,
        [
            (3, 1, LockMode::Row(RowLock::Share)),
            (1, 2, LockMode::Row(RowLock::Update)),
            (2, 3, LockMode::Row(RowLock::NoKeyUpdate)),
        ]
    );
    assert_eq!(circle[0].resource, Resource::Row(TABLE, RowId(1)));
    locks.release_all(TxnId(3));
    granted(&mut second);
}

#[test]
fn two_sharers_that_both_want_more_cannot_have_it() {
    let locks = manager();
    at_once(row(&locks, 1, 5, RowLock::Share));
    at_once(row(&locks, 2, 5, RowLock::Share));
    let mut first = blocked(row(&locks, 1, 5, RowLock::Update));
    let mut second = row(&locks, 2, 5, RowLock::Update);
    assert!(matches!(poll(&mut second), Some(Err(LockError::Deadlock { .. }))));
    locks.release_all(TxnId(2));
    granted(&mut first);
}

#[test]
fn a_circle_through_the_order_of_a_queue_is_undone_by_another_order() {
    let locks = manager();
    at_once(table(&locks, 1, TableLock::AccessShare));
    let mut definer = blocked(table(&locks, 2, TableLock::AccessExclusive));
    at_once(row(&locks, 3, 5, RowLock::Update));
    let mut reader = blocked(table(&locks, 3, TableLock::AccessShare));
    // 1 waits for 3, which waits behind 2, which waits for 1; but 3 does not conflict with 1.
    let mut writer = blocked(row(&locks, 1, 5, RowLock::Update));
    granted(&mut reader);
    locks.release_all(TxnId(3));
    granted(&mut writer);
    locks.release_all(TxnId(1));
    granted(&mut definer);
}

#[test]
fn a_queue_whose_order_does_not_matter_keeps_it() {
    let locks = manager();
    at_once(row(&locks, 1, 5, RowLock::KeyShare));
    at_once(row(&locks, 2, 5, RowLock::Share));
    at_once(row(&locks, 3, 6, RowLock::Update));
    at_once(row(&locks, 1, 7, RowLock::Update));
    at_once(row(&locks, 4, 8, RowLock::Update));
    let mut ahead = blocked(row(&locks, 5, 5, RowLock::Update));
    let mut behind = blocked(row(&locks, 3, 5, RowLock::NoKeyUpdate));
    let mut holder = blocked(row(&locks, 2, 8, RowLock::Update));
    let mut last = blocked(row(&locks, 4, 7, RowLock::Update));
    // 1 waits for 3, which is behind 5, which waits for 1. Ahead of 5, 3 would still wait for 2, which waits for 4,
    // which waits for 1.
    let mut victim = row(&locks, 1, 6, RowLock::Update);
    let Some(Err(LockError::Deadlock { cycle: circle })) = poll(&mut victim) else { panic!("a deadlock") };
    assert!(circle[1].is_queued, "{circle:?}");
    locks.release_all(TxnId(1));
    granted(&mut last);
    locks.release_all(TxnId(4));
    granted(&mut holder);
    locks.release_all(TxnId(2));
    assert_eq!(poll(&mut behind), None);
    granted(&mut ahead);
}

#[test]
fn every_waiter_of_a_queue_is_looked_at() {
    let locks = manager();
    at_once(row(&locks, 1, 5, RowLock::KeyShare));
    at_once(row(&locks, 2, 5, RowLock::NoKeyUpdate));
    for txn in [3, 4] {
        at_once(row(&locks, txn, 6, RowLock::Share));
    }
    let mut front = blocked(row(&locks, 3, 5, RowLock::Share));
    let _middle = blocked(row(&locks, 5, 5, RowLock::Update));
    let mut back = blocked(row(&locks, 4, 5, RowLock::Share));
    // 1 waits for 3, which waits for 2 alone, and for 4, which is behind 5, which waits for 1.
    let mut request = blocked(row(&locks, 1, 6, RowLock::Update));
    locks.release_all(TxnId(2));
    granted(&mut front);
    granted(&mut back);
    locks.release_all(TxnId(3));
    locks.release_all(TxnId(4));
    granted(&mut request);
}

#[test]
fn rows_nobody_waits_for_are_not_listed() {
    let locks = manager();
    at_once(row(&locks, 1, 5, RowLock::Update));
    at_once(row(&locks, 1, 6, RowLock::Update));
    at_once(table(&locks, 1, TableLock::RowExclusive));
    let _waiting = blocked(row(&locks, 2, 5, RowLock::Share));
    let listed: Vec<_> = locks
        .list()
        .into_iter()
        .map(|lock| (lock.resource, lock.txn.0, lock.mode.postgres_name(), lock.waiting_since_us.is_some()))
        .collect();
    assert_eq!(
        listed,
        [
            (Resource::Table(TABLE), 1, "RowExclusiveLock", false),
            (Resource::Row(TABLE, RowId(5)), 1, "AccessExclusiveLock", false),
            (Resource::Row(TABLE, RowId(5)), 2, "RowShareLock", true),
        ]
    );
}

#[test]
fn a_thousand_waiters_of_one_row_get_it_in_turn() {
    let locks = manager();
    at_once(row(&locks, 0, 5, RowLock::Update));
    let mut waiting: Vec<_> = (1..1000).map(|txn| blocked(row(&locks, txn, 5, RowLock::Update))).collect();
    for (txn, request) in (0..).zip(&mut waiting) {
        locks.release_all(TxnId(txn));
        granted(request);
    }
    locks.release_all(TxnId(999));
    assert!(locks.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn threads_that_take_turns_never_meet() {
    use std::sync::atomic::{AtomicU64, Ordering};
    const ROWS: u64 = 3;
    let locks = Arc::new(manager());
    let inside: Arc<Vec<AtomicU64>> = Arc::new((0..ROWS).map(|_| AtomicU64::new(0)).collect());
    let tasks: Vec<_> = (0..8_u64)
        .map(|task| {
            let (locks, inside) = (Arc::clone(&locks), Arc::clone(&inside));
            tokio::spawn(async move {
                for round in 0..2000 {
                    let txn = TxnId(task * 2000 + round);
                    let rows: Vec<_> = (round % ROWS..ROWS).map(RowId).collect();
                    locks.lock_rows(txn, TABLE, &rows, RowLock::Update, BLOCK).await.expect("taken in one order");
                    for row in &rows {
                        assert_eq!(inside[usize::try_from(row.0).unwrap()].fetch_add(1, Ordering::SeqCst), 0);
                    }
                    if round % 3 == 0 {
                        tokio::task::yield_now().await;
                    }
                    for row in &rows {
                        inside[usize::try_from(row.0).unwrap()].fetch_sub(1, Ordering::SeqCst);
                    }
                    locks.release_all(txn);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert!(locks.is_empty());
}
