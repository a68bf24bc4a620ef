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

use super::random_statement::Statement;
use super::reference_model::TransactionWrites;
use super::simulated_world::{SimulatedServer, TABLE_ID};

/// Client that runs random transactions.
pub(super) struct Client {
    pub(super) number: u64,
    pub(super) server: Arc<SimulatedServer>,
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
            self.server.block("client").await;
            self.run_transaction().await;
        }
    }

    async fn run_transaction(&self) {
        let server = &*self.server;
        let one = draw_below(&self.random, 2) == 0;
        let isolation = if one { Isolation::ReadCommitted } else { Isolation::RepeatableRead };
        let mut transaction = server.transactions.begin(isolation);
        let mut writes = TransactionWrites::default();
        let mut savepoint: Option<TransactionWrites> = None;
        self.log_event(&format!("begins, {isolation:?}, at {}", transaction.view().ts.0));
        let token = (draw_below(&self.random, 2) == 0).then(|| server.world.draw_token(&self.random));
        if let Some(token) = token
            && !self.claim_token(token, &mut transaction).await
        {
            return;
        }
        for _ in 0..=draw_below(&self.random, 4) {
            server.block("statement").await;
            match draw_below(&self.random, 10) {
                0 => {
                    transaction.set_savepoint("s");
                    savepoint = Some(writes.clone());
                    self.log_event("sets a savepoint");
                }
                1 if savepoint.is_some() => {
                    transaction.rollback_to_savepoint("s").expect("the savepoint is there");
                    writes = savepoint.clone().expect("there is one");
                    self.log_event("goes back to the savepoint");
                }
                _ => {
                    let statement = Statement::draw(self);
                    if let Err(error) = self.run(statement, &mut transaction, &mut writes).await {
                        self.log_event(&format!("{statement:?}: {}", error.message));
                        server.assert_allowed_error(&error);
                        // The transaction may continue from the savepoint.
                        let Some(before) = savepoint.clone().filter(|_| draw_below(&self.random, 2) == 0) else {
                            return;
                        };
                        transaction.rollback_to_savepoint("s").expect("the savepoint is there");
                        writes = before;
                    } else {
                        self.log_event(&format!("{statement:?}"));
                        if token.is_some() {
                            transaction.record_statement(token_outcome());
                            writes.token = token;
                        }
                    }
                }
            }
            let view = transaction.view();
            let seen = server.world.state_reader.rows(&server.table, view.state.rows(TABLE_ID)).await;
            let expected = writes.apply_to(&server.world.reference_model.lock().rows_at(view.ts));
            assert_eq!(expected, seen, "client {}'s own view of commit {}", self.number, view.ts.0);
        }
        if draw_below(&self.random, 8) == 0 {
            transaction.rollback();
            self.log_event("rolls back");
            return;
        }
        server.block("commit").await;
        let is_dirty = transaction.is_dirty();
        self.log_event("asks for a commit");
        server.world.reference_model.lock().record_commit_request(self.number, &writes);
        let committed = transaction.commit().await;
        server.world.reference_model.lock().remove_commit_request(self.number);
        match committed {
            Ok(ts) => {
                self.log_event(&format!("has committed {}", ts.0));
                if is_dirty && !writes.is_empty() {
                    server.world.reference_model.lock().acknowledge(ts, writes);
                }
            }
            Err(error @ txn::Error::InDoubt(_)) => {
                self.log_event(&format!("is in doubt: {error}"));
                server.world.reference_model.lock().record_in_doubt(writes);
            }
            Err(error) => {
                self.log_event(&format!("could not commit: {error}"));
                server.assert_allowed_error(&from_txn(error));
            }
        }
    }

    /// Claims an idempotency token; returns false if it is committed already or the claim failed.
    async fn claim_token(&self, token: u64, transaction: &mut Transaction) -> bool {
        let history = &self.server.world.reference_model;
        match transaction.claim(&to_token(token), token_outcome().digest, LockWait::Block { timeout: None }).await {
            Ok(Claim::Run) => {
                history.lock().check_claim(token, None);
                self.log_event(&format!("has token {token}"));
                true
            }
            Ok(Claim::Repeat { commit, .. }) => {
                history.lock().check_claim(token, Some(commit));
                self.log_event(&format!("is told that commit {} has token {token}", commit.0));
                false
            }
            Err(ClaimError::Failed(error)) => {
                self.server.assert_allowed_error(&from_txn(error));
                false
            }
            Err(error) => panic!("token {token}: {error}"),
        }
    }

    fn log_event(&self, line: &str) {
        self.server.world.log_event(format!("client {} {line}", self.number));
    }
}

fn to_token(token: u64) -> Token {
    Token { role: Role::BOOTSTRAP, text: token.to_string().into() }
}

/// All statements under tokens are the same.
fn token_outcome() -> StatementOutcome {
    StatementOutcome {
        digest: StatementHasher::new().digest(),
        data_digest: None,
        command_tag: "MERGE 1".to_owned(),
        rows: 1,
        returned_rows: false,
    }
}

/// Flushes or compacts in a loop.
pub(super) async fn flush_and_compact(server: Arc<SimulatedServer>, random: SeededRandom) {
    loop {
        server.block("settler").await;
        let settled = if draw_below(&random, 3) == 0 {
            compact(&server, &random).await
        } else {
            server.execution.maintenance().flush(TABLE_ID).await.map(|rows| format!("settled {rows} rows"))
        };
        server.world.log_event(format!("{settled:?}"));
        if let Err(error) = settled {
            server.assert_allowed_error(&error);
        }
    }
}

/// Compacts random shards: the real policy would wait for more of them.
async fn compact(server: &SimulatedServer, random: &SeededRandom) -> types::SqlResult<String> {
    let mut chosen = 0;
    let choose = |_: &Table, shards: &TableShards| {
        let some: Vec<ShardId> = shards.shards.ids().filter(|_| draw_below(random, 3) != 0).collect();
        chosen = some.len();
        some
    };
    let count = server.execution.maintenance().compact_chosen(TABLE_ID, choose).await?;
    if chosen == 0 {
        return Ok("nothing to compact".to_owned());
    }
    Ok(format!("compacted {count} of {chosen} shards"))
}

/// Deletes garbage and orphaned objects in a loop.
pub(super) async fn collect_garbage(server: Arc<SimulatedServer>, random: SeededRandom) {
    loop {
        server.block("cleaner").await;
        let cleaned = if draw_below(&random, 3) == 0 {
            server.transactions.delete_orphans(Duration::ZERO).await
        } else {
            server.transactions.clean_once().await
        };
        match cleaned {
            Ok(report) => {
                let left = server.world.orphaned_objects.lock().len();
                assert!(report.orphans <= left, "an object that nothing knew of");
                if report != CleanReport::default() {
                    server.world.log_event(format!("{report:?}"));
                }
            }
            Err(txn::Error::ListObjects(_)) => {}
            Err(txn::Error::ArchiveLog(error)) => server.assert_allowed_history_error(&error),
            Err(error) => server.assert_allowed_error(&from_txn(error)),
        }
    }
}

/// Archives the write-ahead log, and sometimes makes a checkpoint, in a loop.
pub(super) async fn archive_log(server: Arc<SimulatedServer>, random: SeededRandom) {
    loop {
        server.block("historian").await;
        // The archive lags behind, most of all where garbage is deleted immediately.
        let (turn, turns) = (draw_below(&random, 24), if server.world.expires_snapshots() { 3 } else { 9 });
        if turns <= turn {
            continue;
        }
        let before = server.current_snapshot().ts;
        let is_checkpoint = turn < 2;
        let kept = if is_checkpoint {
            server.transactions.write_checkpoint().await
        } else {
            server.transactions.archive_log().await
        };
        match kept {
            Ok(()) => {
                let mut copied = server.world.archived_commit.lock();
                *copied = before.max(*copied);
                drop(copied);
                server.world.log_event(format!("copied up to {}, with a checkpoint: {is_checkpoint}", before.0));
            }
            Err(error) => server.assert_allowed_history_error(&error),
        }
    }
}

/// Reads historical snapshots in a loop.
pub(super) async fn read_history(server: Arc<SimulatedServer>, random: SeededRandom) {
    loop {
        server.block("historian's reader").await;
        // Rebuilding a historical state is slow and archives the log.
        if draw_below(&random, if server.world.expires_snapshots() { 16 } else { 4 }) != 0 {
            continue;
        }
        let newest = server.current_snapshot().ts;
        let Some(oldest) = server.world.reference_model.lock().oldest_commit() else { continue };
        let commit = CommitTs(oldest.0 + draw_below(&random, 1 + newest.0.saturating_sub(oldest.0)));
        match server.transactions.as_of(TimeTravelTarget::Commit(commit)).await {
            Ok(past) => {
                for _ in 0..draw_below(&random, 4) {
                    server.block("historian's reader waits").await;
                }
                // Commits of one group become visible together.
                let next = server.world.visible_commits.lock().range(..=commit).next_back().copied();
                assert!(
                    past.ts <= commit && next <= Some(past.ts),
                    "as of {} is {}, not {next:?}",
                    commit.0,
                    past.ts.0
                );
                let seen = server.world.state_reader.rows(&server.table, past.state.rows(TABLE_ID)).await;
                let expected = server.world.reference_model.lock().rows_at(past.ts);
                assert_eq!(expected, seen, "what was as of commit {}", past.ts.0);
                server.world.log_event(format!("looked at commit {}", past.ts.0));
            }
            Err(HistoryError::TooOld) if server.world.expires_snapshots() => {}
            Err(error) => server.assert_allowed_history_error(&error),
        }
    }
}

/// Holds a snapshot for a while, then scans it, in a loop.
pub(super) async fn read_snapshots(server: Arc<SimulatedServer>, random: SeededRandom) {
    loop {
        server.block("reader").await;
        let snapshot = server.current_snapshot();
        for _ in 0..draw_below(&random, 12) {
            server.block("reader waits").await;
        }
        let rows = snapshot.state.rows(TABLE_ID);
        match server.scanner.scan(&server.execution, &server.table, rows).await {
            Ok(seen) => {
                let expected = server.world.reference_model.lock().rows_at(snapshot.ts);
                assert_eq!(expected.len(), seen.len(), "no row is there twice: {seen:?}");
                let seen = seen.iter().map(|seen| (seen.number, seen.row)).collect();
                assert_eq!(expected, seen, "a reader of commit {}", snapshot.ts.0);
            }
            Err(error) => server.assert_allowed_error(&error),
        }
    }
}
