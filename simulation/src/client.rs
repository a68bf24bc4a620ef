//! Simulated actors: clients, readers, and the background services that flush, compact, clean and archive.

use std::sync::Arc;
use std::time::Duration;

use catalog::{Role, Table, TableShards};
use history::HistoryError;
use storage_error::from_txn;
use txn::locks::LockWait;
use txn::{Claim, ClaimError, CleanReport, Isolation, StatementHasher, StatementOutcome, Token, Transaction};
use types::random::SeededRandom;
use types::{CommitTs, Random, ShardId, TimeTravelTarget};

use super::history::Writes;
use super::life::{Life, TABLE};
use super::statement::Statement;

/// Client that runs random transactions.
pub(super) struct Client {
    pub(super) number: u64,
    pub(super) life: Arc<Life>,
    pub(super) random: SeededRandom,
}

/// Draws a number below `end`.
pub(super) fn below(random: &SeededRandom, end: u64) -> u64 {
    random.next_u64() % end
}

impl Client {
    /// Runs transactions until the server dies.
    pub(super) async fn work(self) {
        loop {
            self.life.stop("client").await;
            self.transaction().await;
        }
    }

    async fn transaction(&self) {
        let life = &*self.life;
        let one = below(&self.random, 2) == 0;
        let isolation = if one { Isolation::ReadCommitted } else { Isolation::RepeatableRead };
        let mut transaction = life.transactions.begin(isolation);
        let mut writes = Writes::default();
        let mut savepoint: Option<Writes> = None;
        self.note(&format!("begins, {isolation:?}, at {}", transaction.view().ts.0));
        let token = (below(&self.random, 2) == 0).then(|| life.world.token(&self.random));
        if let Some(token) = token
            && !self.claim(token, &mut transaction).await
        {
            return;
        }
        for _ in 0..=below(&self.random, 4) {
            life.stop("statement").await;
            match below(&self.random, 10) {
                0 => {
                    transaction.set_savepoint("s");
                    savepoint = Some(writes.clone());
                    self.note("sets a savepoint");
                }
                1 if savepoint.is_some() => {
                    transaction.rollback_to_savepoint("s").expect("the savepoint is there");
                    writes = savepoint.clone().expect("there is one");
                    self.note("goes back to the savepoint");
                }
                _ => {
                    let statement = Statement::draw(self);
                    if let Err(error) = self.run(statement, &mut transaction, &mut writes).await {
                        self.note(&format!("{statement:?}: {}", error.message));
                        life.expect_fit(&error);
                        // The transaction may continue from the savepoint.
                        let Some(before) = savepoint.clone().filter(|_| below(&self.random, 2) == 0) else { return };
                        transaction.rollback_to_savepoint("s").expect("the savepoint is there");
                        writes = before;
                    } else {
                        self.note(&format!("{statement:?}"));
                        if token.is_some() {
                            transaction.record_statement(written());
                            writes.token = token;
                        }
                    }
                }
            }
            let view = transaction.view();
            let seen = life.world.look.rows(&life.table, view.state.rows(TABLE)).await;
            let expected = writes.over(&life.world.history.lock().at(view.ts));
            assert_eq!(expected, seen, "client {}'s own view of commit {}", self.number, view.ts.0);
        }
        if below(&self.random, 8) == 0 {
            transaction.rollback();
            self.note("rolls back");
            return;
        }
        life.stop("commit").await;
        let is_dirty = transaction.is_dirty();
        self.note("asks for a commit");
        life.world.history.lock().ask(self.number, &writes);
        let committed = transaction.commit().await;
        life.world.history.lock().answered(self.number);
        match committed {
            Ok(ts) => {
                self.note(&format!("has committed {}", ts.0));
                if is_dirty && !writes.is_empty() {
                    life.world.history.lock().acknowledge(ts, writes);
                }
            }
            Err(error @ txn::Error::InDoubt(_)) => {
                self.note(&format!("is in doubt: {error}"));
                life.world.history.lock().doubt(writes);
            }
            Err(error) => {
                self.note(&format!("could not commit: {error}"));
                life.expect_fit(&from_txn(error));
            }
        }
    }

    /// Claims an idempotency token; returns false if it is committed already or the claim failed.
    async fn claim(&self, token: u64, transaction: &mut Transaction) -> bool {
        let history = &self.life.world.history;
        match transaction.claim(&named(token), written().digest, LockWait::Block { timeout: None }).await {
            Ok(Claim::Run) => {
                history.lock().claimed(token, None);
                self.note(&format!("has token {token}"));
                true
            }
            Ok(Claim::Repeat { commit, .. }) => {
                history.lock().claimed(token, Some(commit));
                self.note(&format!("is told that commit {} has token {token}", commit.0));
                false
            }
            Err(ClaimError::Failed(error)) => {
                self.life.expect_fit(&from_txn(error));
                false
            }
            Err(error) => panic!("token {token}: {error}"),
        }
    }

    fn note(&self, line: &str) {
        self.life.world.note(format!("client {} {line}", self.number));
    }
}

fn named(token: u64) -> Token {
    Token { role: Role::BOOTSTRAP, text: token.to_string().into() }
}

/// All statements under tokens are the same.
fn written() -> StatementOutcome {
    StatementOutcome {
        digest: StatementHasher::new().digest(),
        data_digest: None,
        tag: "MERGE 1".to_owned(),
        rows: 1,
        returned_rows: false,
    }
}

/// Flushes or compacts in a loop.
pub(super) async fn settle(life: Arc<Life>, random: SeededRandom) {
    loop {
        life.stop("settler").await;
        let settled = if below(&random, 3) == 0 {
            compact(&life, &random).await
        } else {
            life.execution.maintenance().flush(TABLE).await.map(|rows| format!("settled {rows} rows"))
        };
        life.world.note(format!("{settled:?}"));
        if let Err(error) = settled {
            life.expect_fit(&error);
        }
    }
}

/// Compacts random shards: the real policy would wait for more of them.
async fn compact(life: &Life, random: &SeededRandom) -> types::SqlResult<String> {
    let mut chosen = 0;
    let choose = |_: &Table, shards: &TableShards| {
        let some: Vec<ShardId> = shards.shards.ids().filter(|_| below(random, 3) != 0).collect();
        chosen = some.len();
        some
    };
    let count = life.execution.maintenance().compact_chosen(TABLE, choose).await?;
    if chosen == 0 {
        return Ok("nothing to compact".to_owned());
    }
    Ok(format!("compacted {count} of {chosen} shards"))
}

/// Deletes garbage and orphaned objects in a loop.
pub(super) async fn clean(life: Arc<Life>, random: SeededRandom) {
    loop {
        life.stop("cleaner").await;
        let cleaned = if below(&random, 3) == 0 {
            life.transactions.delete_orphans(Duration::ZERO).await
        } else {
            life.transactions.clean_once().await
        };
        match cleaned {
            Ok(report) => {
                let left = life.world.left_behind.lock().len();
                assert!(report.orphans <= left, "an object that nothing knew of");
                if report != CleanReport::default() {
                    life.world.note(format!("{report:?}"));
                }
            }
            Err(txn::Error::List(_)) => {}
            Err(txn::Error::History(error)) => life.expect_history_fit(&error),
            Err(error) => life.expect_fit(&from_txn(error)),
        }
    }
}

/// Archives the write-ahead log, and sometimes makes a checkpoint, in a loop.
pub(super) async fn keep_history(life: Arc<Life>, random: SeededRandom) {
    loop {
        life.stop("historian").await;
        // The archive lags behind, most of all where garbage is deleted immediately.
        let (turn, turns) = (below(&random, 24), if life.world.forgets() { 3 } else { 9 });
        if turns <= turn {
            continue;
        }
        let before = life.newest().ts;
        let is_checkpoint = turn < 2;
        let kept = if is_checkpoint {
            life.transactions.write_checkpoint().await
        } else {
            life.transactions.archive_log().await
        };
        match kept {
            Ok(()) => {
                let mut copied = life.world.copied.lock();
                *copied = before.max(*copied);
                drop(copied);
                life.world.note(format!("copied up to {}, with a checkpoint: {is_checkpoint}", before.0));
            }
            Err(error) => life.expect_history_fit(&error),
        }
    }
}

/// Reads historical snapshots in a loop.
pub(super) async fn look_back(life: Arc<Life>, random: SeededRandom) {
    loop {
        life.stop("historian's reader").await;
        // Rebuilding a historical state is slow and archives the log.
        if below(&random, if life.world.forgets() { 16 } else { 4 }) != 0 {
            continue;
        }
        let newest = life.newest().ts;
        let Some(oldest) = life.world.history.lock().oldest() else { continue };
        let commit = CommitTs(oldest.0 + below(&random, 1 + newest.0.saturating_sub(oldest.0)));
        match life.transactions.as_of(TimeTravelTarget::Commit(commit)).await {
            Ok(past) => {
                for _ in 0..below(&random, 4) {
                    life.stop("historian's reader waits").await;
                }
                // Commits of one group become visible together.
                let next = life.world.visible.lock().range(..=commit).next_back().copied();
                assert!(
                    past.ts <= commit && next <= Some(past.ts),
                    "as of {} is {}, not {next:?}",
                    commit.0,
                    past.ts.0
                );
                let seen = life.world.look.rows(&life.table, past.state.rows(TABLE)).await;
                let expected = life.world.history.lock().at(past.ts);
                assert_eq!(expected, seen, "what was as of commit {}", past.ts.0);
                life.world.note(format!("looked at commit {}", past.ts.0));
            }
            Err(HistoryError::TooOld) if life.world.forgets() => {}
            Err(error) => life.expect_history_fit(&error),
        }
    }
}

/// Holds a snapshot for a while, then scans it, in a loop.
pub(super) async fn read(life: Arc<Life>, random: SeededRandom) {
    loop {
        life.stop("reader").await;
        let snapshot = life.newest();
        for _ in 0..below(&random, 12) {
            life.stop("reader waits").await;
        }
        let rows = snapshot.state.rows(TABLE);
        match life.scanner.scan(&life.execution, &life.table, rows).await {
            Ok(seen) => {
                let expected = life.world.history.lock().at(snapshot.ts);
                assert_eq!(expected.len(), seen.len(), "no row is there twice: {seen:?}");
                let seen = seen.iter().map(|seen| (seen.number, seen.row)).collect();
                assert_eq!(expected, seen, "a reader of commit {}", snapshot.ts.0);
            }
            Err(error) => life.expect_fit(&error),
        }
    }
}
