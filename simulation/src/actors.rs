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

use super::model::TransactionWrites;
use super::statement::Statement;
use super::world::{SimulatedServer, TABLE};

/// Client that runs random transactions.
pub(super) struct Client {
    pub(super) number: u64,
    pub(super) life: Arc<SimulatedServer>,
    pub(super) random: SeededRandom,
}

/// Draws a number below `end`.
pub(super) fn draw_below(random: &SeededRandom, end: u64) -> u64 {
    random.next_u64() % end
}

impl Client {
    /// Runs transactions until the server dies.
    pub(super) async fn run_transactions(self) {
        loop {
            self.life.block("client").await;
            self.run_transaction().await;
        }
    }

    async fn run_transaction(&self) {
        let life = &*self.life;
        let one = draw_below(&self.random, 2) == 0;
        let isolation = if one { Isolation::ReadCommitted } else { Isolation::RepeatableRead };
        let mut transaction = life.transactions.begin(isolation);
        let mut writes = TransactionWrites::default();
        let mut savepoint: Option<TransactionWrites> = None;
        self.note(&format!("begins, {isolation:?}, at {}", transaction.view().ts.0));
        let token = (draw_below(&self.random, 2) == 0).then(|| life.world.draw_token(&self.random));
        if let Some(token) = token
            && !self.claim(token, &mut transaction).await
        {
            return;
        }
        for _ in 0..=draw_below(&self.random, 4) {
            life.block("statement").await;
            match draw_below(&self.random, 10) {
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
                        life.assert_allowed_error(&error);
                        // The transaction may continue from the savepoint.
                        let Some(before) = savepoint.clone().filter(|_| draw_below(&self.random, 2) == 0) else {
                            return;
                        };
                        transaction.rollback_to_savepoint("s").expect("the savepoint is there");
                        writes = before;
                    } else {
                        self.note(&format!("{statement:?}"));
                        if token.is_some() {
                            transaction.record_statement(token_outcome());
                            writes.token = token;
                        }
                    }
                }
            }
            let view = transaction.view();
            let seen = life.world.state_reader.rows(&life.table, view.state.rows(TABLE)).await;
            let expected = writes.apply_to(&life.world.history.lock().rows_at(view.ts));
            assert_eq!(expected, seen, "client {}'s own view of commit {}", self.number, view.ts.0);
        }
        if draw_below(&self.random, 8) == 0 {
            transaction.rollback();
            self.note("rolls back");
            return;
        }
        life.block("commit").await;
        let is_dirty = transaction.is_dirty();
        self.note("asks for a commit");
        life.world.history.lock().record_commit_request(self.number, &writes);
        let committed = transaction.commit().await;
        life.world.history.lock().remove_commit_request(self.number);
        match committed {
            Ok(ts) => {
                self.note(&format!("has committed {}", ts.0));
                if is_dirty && !writes.is_empty() {
                    life.world.history.lock().acknowledge(ts, writes);
                }
            }
            Err(error @ txn::Error::InDoubt(_)) => {
                self.note(&format!("is in doubt: {error}"));
                life.world.history.lock().record_in_doubt(writes);
            }
            Err(error) => {
                self.note(&format!("could not commit: {error}"));
                life.assert_allowed_error(&from_txn(error));
            }
        }
    }

    /// Claims an idempotency token; returns false if it is committed already or the claim failed.
    async fn claim(&self, token: u64, transaction: &mut Transaction) -> bool {
        let history = &self.life.world.history;
        match transaction.claim(&token_of(token), token_outcome().digest, LockWait::Block { timeout: None }).await {
            Ok(Claim::Run) => {
                history.lock().check_claim(token, None);
                self.note(&format!("has token {token}"));
                true
            }
            Ok(Claim::Repeat { commit, .. }) => {
                history.lock().check_claim(token, Some(commit));
                self.note(&format!("is told that commit {} has token {token}", commit.0));
                false
            }
            Err(ClaimError::Failed(error)) => {
                self.life.assert_allowed_error(&from_txn(error));
                false
            }
            Err(error) => panic!("token {token}: {error}"),
        }
    }

    fn note(&self, line: &str) {
        self.life.world.note(format!("client {} {line}", self.number));
    }
}

fn token_of(token: u64) -> Token {
    Token { role: Role::BOOTSTRAP, text: token.to_string().into() }
}

/// All statements under tokens are the same.
fn token_outcome() -> StatementOutcome {
    StatementOutcome {
        digest: StatementHasher::new().digest(),
        data_digest: None,
        tag: "MERGE 1".to_owned(),
        rows: 1,
        returned_rows: false,
    }
}

/// Flushes or compacts in a loop.
pub(super) async fn flush_and_compact(life: Arc<SimulatedServer>, random: SeededRandom) {
    loop {
        life.block("settler").await;
        let settled = if draw_below(&random, 3) == 0 {
            compact(&life, &random).await
        } else {
            life.execution.maintenance().flush(TABLE).await.map(|rows| format!("settled {rows} rows"))
        };
        life.world.note(format!("{settled:?}"));
        if let Err(error) = settled {
            life.assert_allowed_error(&error);
        }
    }
}

/// Compacts random shards: the real policy would wait for more of them.
async fn compact(life: &SimulatedServer, random: &SeededRandom) -> types::SqlResult<String> {
    let mut chosen = 0;
    let choose = |_: &Table, shards: &TableShards| {
        let some: Vec<ShardId> = shards.shards.ids().filter(|_| draw_below(random, 3) != 0).collect();
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
pub(super) async fn collect_garbage(life: Arc<SimulatedServer>, random: SeededRandom) {
    loop {
        life.block("cleaner").await;
        let cleaned = if draw_below(&random, 3) == 0 {
            life.transactions.delete_orphans(Duration::ZERO).await
        } else {
            life.transactions.clean_once().await
        };
        match cleaned {
            Ok(report) => {
                let left = life.world.orphaned_objects.lock().len();
                assert!(report.orphans <= left, "an object that nothing knew of");
                if report != CleanReport::default() {
                    life.world.note(format!("{report:?}"));
                }
            }
            Err(txn::Error::List(_)) => {}
            Err(txn::Error::History(error)) => life.assert_allowed_history_error(&error),
            Err(error) => life.assert_allowed_error(&from_txn(error)),
        }
    }
}

/// Archives the write-ahead log, and sometimes makes a checkpoint, in a loop.
pub(super) async fn archive_log(life: Arc<SimulatedServer>, random: SeededRandom) {
    loop {
        life.block("historian").await;
        // The archive lags behind, most of all where garbage is deleted immediately.
        let (turn, turns) = (draw_below(&random, 24), if life.world.expires_snapshots() { 3 } else { 9 });
        if turns <= turn {
            continue;
        }
        let before = life.current_snapshot().ts;
        let is_checkpoint = turn < 2;
        let kept = if is_checkpoint {
            life.transactions.write_checkpoint().await
        } else {
            life.transactions.archive_log().await
        };
        match kept {
            Ok(()) => {
                let mut copied = life.world.archived_commit.lock();
                *copied = before.max(*copied);
                drop(copied);
                life.world.note(format!("copied up to {}, with a checkpoint: {is_checkpoint}", before.0));
            }
            Err(error) => life.assert_allowed_history_error(&error),
        }
    }
}

/// Reads historical snapshots in a loop.
pub(super) async fn read_history(life: Arc<SimulatedServer>, random: SeededRandom) {
    loop {
        life.block("historian's reader").await;
        // Rebuilding a historical state is slow and archives the log.
        if draw_below(&random, if life.world.expires_snapshots() { 16 } else { 4 }) != 0 {
            continue;
        }
        let newest = life.current_snapshot().ts;
        let Some(oldest) = life.world.history.lock().oldest_commit() else { continue };
        let commit = CommitTs(oldest.0 + draw_below(&random, 1 + newest.0.saturating_sub(oldest.0)));
        match life.transactions.as_of(TimeTravelTarget::Commit(commit)).await {
            Ok(past) => {
                for _ in 0..draw_below(&random, 4) {
                    life.block("historian's reader waits").await;
                }
                // Commits of one group become visible together.
                let next = life.world.visible_commits.lock().range(..=commit).next_back().copied();
                assert!(
                    past.ts <= commit && next <= Some(past.ts),
                    "as of {} is {}, not {next:?}",
                    commit.0,
                    past.ts.0
                );
                let seen = life.world.state_reader.rows(&life.table, past.state.rows(TABLE)).await;
                let expected = life.world.history.lock().rows_at(past.ts);
                assert_eq!(expected, seen, "what was as of commit {}", past.ts.0);
                life.world.note(format!("looked at commit {}", past.ts.0));
            }
            Err(HistoryError::TooOld) if life.world.expires_snapshots() => {}
            Err(error) => life.assert_allowed_history_error(&error),
        }
    }
}

/// Holds a snapshot for a while, then scans it, in a loop.
pub(super) async fn read_snapshots(life: Arc<SimulatedServer>, random: SeededRandom) {
    loop {
        life.block("reader").await;
        let snapshot = life.current_snapshot();
        for _ in 0..draw_below(&random, 12) {
            life.block("reader waits").await;
        }
        let rows = snapshot.state.rows(TABLE);
        match life.scanner.scan(&life.execution, &life.table, rows).await {
            Ok(seen) => {
                let expected = life.world.history.lock().rows_at(snapshot.ts);
                assert_eq!(expected.len(), seen.len(), "no row is there twice: {seen:?}");
                let seen = seen.iter().map(|seen| (seen.number, seen.row)).collect();
                assert_eq!(expected, seen, "a reader of commit {}", snapshot.ts.0);
            }
            Err(error) => life.assert_allowed_error(&error),
        }
    }
}
