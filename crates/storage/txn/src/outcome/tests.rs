use catalog::Change;
use kv::sim::SimDisk;

use super::*;
use crate::fixtures::{put, *};
use crate::locks::LockError;

const NOW: LockWait = LockWait::NoWait;
const LONG: LockWait = LockWait::Block { timeout: None };

fn token(text: &str) -> Token {
    Token { role: Oid(10), text: text.into() }
}

fn work(text: &str) -> StatementDigest {
    StatementHasher::new().with_part(text.as_bytes()).digest()
}

fn written(text: &str, tag: &str) -> StatementOutcome {
    StatementOutcome {
        digest: work(text),
        data_digest: None,
        command_tag: tag.to_owned(),
        rows: 1,
        returned_rows: false,
    }
}

/// Runs a statement that adds a shard under a token; returns the claim.
async fn run(transaction: &mut Transaction, text: &str, shard: u128) -> Result<Claim, ClaimError> {
    let claim = transaction.claim(&token("t"), work(text), NOW).await?;
    if claim == Claim::Run {
        transaction.stage(vec![load(100, &[shard])]).expect("the table is there");
        transaction.record_statement(written(text, "INSERT 0 1"));
    }
    Ok(claim)
}

fn tag(claim: &Claim) -> Option<&str> {
    match claim {
        Claim::Run => None,
        Claim::Repeat { written, .. } => Some(&written.command_tag),
    }
}

async fn with_table(disk: &SimDisk) -> Arc<Transactions> {
    let transactions = open(disk, &bucket());
    if transactions.current().state.table(Oid(100)).is_none() {
        commit(&transactions, vec![put(table(100, "t"))]).await;
    }
    transactions
}

#[tokio::test]
async fn a_repeat_is_told_of_the_first_and_does_not_run() {
    let disk = SimDisk::new(1);
    let transactions = with_table(&disk).await;
    let mut first = begin(&transactions);
    assert_eq!(run(&mut first, "insert", 1).await.expect("nobody has the token"), Claim::Run);
    let ts = first.commit().await.expect("nothing is in the way");
    for restart in [false, true] {
        if restart {
            disk.crash();
        }
        let transactions = if restart { with_table(&disk).await } else { Arc::clone(&transactions) };
        let mut again = begin(&transactions);
        let claim = run(&mut again, "insert", 2).await.expect("it is the same statement");
        assert_eq!(tag(&claim), Some("INSERT 0 1"));
        assert!(!again.is_dirty());
        again.commit().await.expect("there is nothing to commit");
        assert_eq!(shard_ids(&transactions.current().state, 100), [1]);
        let known = transactions.outcomes(None, Some("t")).expect("the store reads");
        let outcome = known[0].outcome.as_ref().expect("it is committed");
        assert_eq!((known.len(), outcome.commit, outcome.statements.len()), (1, ts, 1));
    }
}

#[tokio::test]
async fn what_was_rolled_back_or_refused_leaves_the_token_free() {
    let transactions = with_table(&SimDisk::new(1)).await;
    let mut first = begin(&transactions);
    run(&mut first, "insert", 1).await.expect("nobody has the token");
    first.rollback();
    let mut second = begin(&transactions);
    run(&mut second, "insert", 2).await.expect("nobody has the token");
    second.stage(vec![put(table(100, "renamed"))]).expect("the table is there");
    commit(&transactions, vec![Change::DropTable(Oid(100))]).await;
    assert!(second.commit().await.is_err(), "its table is gone");
    assert!(transactions.outcomes(None, None).expect("the store reads").is_empty());
    commit(&transactions, vec![put(table(100, "t"))]).await;
    let mut third = begin(&transactions);
    assert_eq!(run(&mut third, "insert", 3).await.expect("nobody has the token"), Claim::Run);
}

#[tokio::test]
async fn who_comes_second_waits_for_the_first() {
    let transactions = with_table(&SimDisk::new(1)).await;
    let mut first = begin(&transactions);
    run(&mut first, "insert", 1).await.expect("nobody has the token");
    let known = transactions.outcomes(Some(Oid(10)), None).expect("the store reads");
    assert_eq!(known, [TokenStatus { token: token("t"), outcome: None }]);
    assert!(transactions.outcomes(Some(Oid(11)), None).expect("the store reads").is_empty());
    let mut hasty = begin(&transactions);
    assert!(matches!(run(&mut hasty, "insert", 2).await, Err(ClaimError::Lock(LockError::NotAvailable { .. }))));
    let second = tokio::spawn({
        let transactions = Arc::clone(&transactions);
        async move { begin(&transactions).claim(&token("t"), work("insert"), LONG).await }
    });
    while transactions.core.locks.list().iter().all(|lock| lock.waiting_since_us.is_none()) {
        tokio::task::yield_now().await;
    }
    first.commit().await.expect("nothing is in the way");
    let claim = second.await.expect("it does not panic").expect("the lock is free then");
    assert_eq!(tag(&claim), Some("INSERT 0 1"));
}

#[tokio::test]
async fn another_statement_and_another_role_are_not_the_same() {
    let transactions = with_table(&SimDisk::new(1)).await;
    let mut first = begin(&transactions);
    run(&mut first, "insert", 1).await.expect("nobody has the token");
    first.commit().await.expect("nothing is in the way");
    let mut other = begin(&transactions);
    let refused = run(&mut other, "delete", 2).await;
    assert!(matches!(refused, Err(ClaimError::OtherStatements { committed: 1, number: 1 })), "{refused:?}");
    let of_other = Token { role: Oid(11), ..token("t") };
    let mut other = begin(&transactions);
    assert_eq!(other.claim(&of_other, work("delete"), NOW).await.expect("it is another's"), Claim::Run);
}

#[tokio::test]
async fn all_statements_of_a_transaction_are_repeated_in_their_order() {
    let transactions = with_table(&SimDisk::new(1)).await;
    let mut first = begin(&transactions);
    for (text, shard) in [("one", 1), ("two", 2), ("two", 3)] {
        assert_eq!(run(&mut first, text, shard).await.expect("nobody has the token"), Claim::Run);
    }
    first.commit().await.expect("nothing is in the way");
    let mut again = begin(&transactions);
    for text in ["one", "two", "two"] {
        assert!(again.is_committed(&token("t"), work(text)).await.expect("the store reads"));
        assert!(run(&mut again, text, 4).await.expect("it is the same").ne(&Claim::Run));
    }
    assert!(!again.is_committed(&token("t"), work("two")).await.expect("the store reads"));
    assert!(matches!(run(&mut again, "two", 4).await, Err(ClaimError::OtherStatements { committed: 3, number: 4 })));
    assert_eq!(shard_ids(&transactions.current().state, 100), [1, 2, 3]);
}

#[tokio::test]
async fn a_savepoint_takes_back_statements_and_the_token() {
    let transactions = with_table(&SimDisk::new(1)).await;
    let mut transaction = begin(&transactions);
    transaction.set_savepoint("before");
    run(&mut transaction, "one", 1).await.expect("nobody has the token");
    transaction.set_savepoint("between");
    run(&mut transaction, "two", 2).await.expect("it has the token");
    transaction.rollback_to_savepoint("between").expect("it is there");
    let mut other = begin(&transactions);
    assert!(run(&mut other, "one", 3).await.is_err(), "the token is taken");
    transaction.rollback_to_savepoint("before").expect("it is there");
    assert!(!transaction.is_dirty());
    assert_eq!(run(&mut other, "one", 3).await.expect("the token is free"), Claim::Run);
    other.commit().await.expect("nothing is in the way");
    let claim = run(&mut transaction, "one", 1).await.expect("the same was committed");
    assert_eq!(tag(&claim), Some("INSERT 0 1"));
    transaction.rollback_to_savepoint("before").expect("it is there");
    assert_eq!(tag(&run(&mut transaction, "one", 1).await.expect("again")), Some("INSERT 0 1"));
    assert_eq!(shard_ids(&transactions.current().state, 100), [3]);
}

#[tokio::test]
async fn a_transaction_has_one_token_for_all_it_writes_or_none() {
    let transactions = with_table(&SimDisk::new(1)).await;
    let mut named = begin(&transactions);
    run(&mut named, "one", 1).await.expect("nobody has the token");
    assert!(matches!(named.begin_write_without_token(), Err(ClaimError::OtherToken)));
    assert!(matches!(named.claim(&token("u"), work("two"), NOW).await, Err(ClaimError::OtherToken)));
    let mut unnamed = begin(&transactions);
    unnamed.set_savepoint("s");
    unnamed.begin_write_without_token().expect("it has no token");
    assert!(matches!(unnamed.claim(&token("u"), work("two"), NOW).await, Err(ClaimError::WrittenWithoutToken)));
    unnamed.rollback_to_savepoint("s").expect("it is there");
    assert_eq!(unnamed.claim(&token("u"), work("two"), NOW).await.expect("it has written nothing"), Claim::Run);
}

#[tokio::test]
async fn a_statement_that_changed_nothing_has_an_outcome_too() {
    let transactions = with_table(&SimDisk::new(1)).await;
    let mut first = begin(&transactions);
    first.claim(&token("t"), work("update"), NOW).await.expect("nobody has the token");
    first.record_statement(StatementOutcome {
        rows: 0,
        data_digest: Some(StatementDigest(7)),
        returned_rows: true,
        ..written("update", "UPDATE 0")
    });
    first.commit().await.expect("nothing is in the way");
    let mut again = begin(&transactions);
    let claim = again.claim(&token("t"), work("update"), NOW).await.expect("it is the same");
    let Claim::Repeat { written, .. } = claim else { panic!("it was committed") };
    assert_eq!((written.rows, written.data_digest, written.returned_rows), (0, Some(StatementDigest(7)), true));
}

#[tokio::test]
async fn outcomes_go_when_their_time_is_over_and_not_before() {
    let disk = SimDisk::new(1);
    let transactions = with_table(&disk).await;
    transactions.set_outcome_settings(OutcomeSettings { retention: Duration::from_secs(3_600), max_outcomes: 2 });
    for (text, shard) in [("a", 1), ("b", 2)] {
        let mut transaction = begin(&transactions);
        let token = Token { text: text.into(), ..token("t") };
        transaction.claim(&token, work(text), NOW).await.expect("there is room");
        transaction.stage(vec![load(100, &[shard])]).expect("the table is there");
        transaction.record_statement(written(text, "INSERT 0 1"));
        transaction.commit().await.expect("nothing is in the way");
    }
    let mut third = begin(&transactions);
    assert!(matches!(run(&mut third, "insert", 3).await, Err(ClaimError::TooManyTokens { limit: 2 })));
    drop(third);
    transactions.clean_once().await.expect("nothing fails");
    assert_eq!(transactions.outcomes(None, None).expect("the store reads").len(), 2);
    transactions.set_outcome_settings(OutcomeSettings { retention: Duration::ZERO, max_outcomes: 2 });
    // The clock may not have advanced since the last commit.
    while !transactions.outcomes(None, None).expect("the store reads").is_empty() {
        transactions.clean_once().await.expect("nothing fails");
    }
    let mut third = begin(&transactions);
    assert_eq!(run(&mut third, "insert", 3).await.expect("there is room again"), Claim::Run);
    third.commit().await.expect("nothing is in the way");
    drop(transactions);
    disk.crash();
    let transactions = with_table(&disk).await;
    transactions.set_outcome_settings(OutcomeSettings { max_outcomes: 1, ..OutcomeSettings::default() });
    let mut fourth = begin(&transactions);
    let refused = fourth.claim(&token("u"), work("insert"), NOW).await;
    assert!(
        matches!(refused, Err(ClaimError::TooManyTokens { limit: 1 })),
        "a start counts what is there: {refused:?}"
    );
}

#[test]
fn work_is_told_apart_by_its_parts() {
    let all = [
        StatementHasher::new().with_part(b"ab").with_part(b"c"),
        StatementHasher::new().with_part(b"a").with_part(b"bc"),
        StatementHasher::new().with_part(b"abc"),
        StatementHasher::new().with_part(b"abc").with_absent_part(),
        StatementHasher::new().with_part(b"abc").with_part(b""),
    ];
    let digests: Vec<u128> = all.iter().map(|work| work.digest().0).collect();
    let mut sorted = digests.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), digests.len());
    let (mut whole, mut cut) = (StatementHasher::new(), StatementHasher::new());
    whole.add_data(b"some data");
    [&b"some"[..], b" ", b"data"].iter().for_each(|piece| cut.add_data(piece));
    assert_eq!(whole.digest(), cut.digest());
}
