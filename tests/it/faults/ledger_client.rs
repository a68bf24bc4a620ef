//! Client that writes rows of its own and remembers the acknowledged ones.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::SinkExt;
use tokio_postgres::{Client, Error};
use types::random::SeededRandom;
use types::{Clock, Random, SystemClock};

/// Distance between the first keys of two workers.
pub(super) const RANGE: i64 = 1_000_000;
/// Number of keys that are written one by one.
const KEYS: u64 = 60;
/// Keys that are loaded together: their number and first key.
const BLOCK: i64 = 150;
const BLOCK_START: i64 = 1_000;

/// New value of each key; `None` for a deleted one.
pub(super) type Change = BTreeMap<i64, Option<i64>>;

/// State of one worker.
#[derive(Debug, Clone)]
pub(super) struct LedgerClient {
    pub(super) number: i64,
    /// Rows as acknowledged.
    pub(super) rows: BTreeMap<i64, i64>,
    /// Earlier states, and until when each was current.
    earlier_states: Vec<(Duration, BTreeMap<i64, i64>)>,
    clock: Arc<SystemClock>,
    /// Transaction with an unknown outcome: it took effect entirely or not at all.
    doubt: Option<Change>,
    next_value: i64,
    /// Numbers of acknowledged transactions, of those in doubt, and of the latter that took effect.
    pub(super) acknowledged: u64,
    pub(super) doubted: u64,
    pub(super) happened: u64,
}

impl LedgerClient {
    pub(super) fn new(number: i64, clock: Arc<SystemClock>) -> Self {
        let (rows, past) = (BTreeMap::new(), Vec::new());
        Self {
            number,
            rows,
            earlier_states: past,
            clock,
            doubt: None,
            next_value: 1,
            acknowledged: 0,
            doubted: 0,
            happened: 0,
        }
    }

    /// Writes until the server is gone, at most `transactions` times.
    pub(super) async fn work(&mut self, client: &Client, seed: u64, transactions: u64) {
        let random = SeededRandom::new(seed.wrapping_mul(31).wrapping_add(self.number.unsigned_abs()));
        // A hundred rows are enough to write a shard directly.
        if client.batch_execute("SET kiln.direct_load_rows = 100").await.is_err() {
            return;
        }
        for _ in 0..transactions {
            let mut change = Change::new();
            let done = match random.next_u64() % 12 {
                0 => self.replace_block(client, &mut change).await,
                1 => {
                    let sql = format!("BEGIN; {} ROLLBACK", self.statement(&random, &mut Change::new()));
                    client.batch_execute(&sql).await
                }
                2..5 => {
                    let mut sql = "BEGIN; ".to_owned();
                    for _ in 0..3 {
                        sql += &self.statement(&random, &mut change);
                    }
                    sql += "SAVEPOINT s; ";
                    sql += &self.statement(&random, &mut change.clone());
                    sql += "ROLLBACK TO s; COMMIT";
                    self.doubt = Some(change.clone());
                    client.batch_execute(&sql).await
                }
                5 => {
                    let (from, to) = (self.first(), self.first() + BLOCK_START);
                    let own = self.rows.range(from..to);
                    change.extend(own.map(|(key, value)| (*key, Some(value + 1))));
                    self.doubt = Some(change.clone());
                    let sql = format!("UPDATE ledger SET v = v + 1 WHERE k >= {from} AND k < {to}");
                    client.batch_execute(&sql).await
                }
                _ => {
                    let sql = self.statement(&random, &mut change);
                    self.doubt = Some(change.clone());
                    client.batch_execute(&sql).await
                }
            };
            match done {
                Ok(()) => {
                    self.doubt = None;
                    self.acknowledged += 1;
                    self.apply(&change);
                }
                Err(error) if self.resolve_failure(client, &error).await => {}
                Err(_) => return,
            }
        }
    }

    /// Determines what happened after a failure; false if the connection is gone.
    async fn resolve_failure(&mut self, client: &Client, error: &Error) -> bool {
        let Some(refusal) = error.as_db_error() else { return false };
        let code = refusal.code().code();
        assert!(
            ["40", "57", "58"].contains(&&code[..2]),
            "worker {}: nobody else has its keys: {refusal:?}",
            self.number
        );
        if client.batch_execute("ROLLBACK").await.is_err() {
            return false;
        }
        let sql = format!("SELECT k, v FROM ledger WHERE k >= {} AND k < {}", self.first(), self.first() + RANGE);
        let Ok(found) = client.query(&sql, &[]).await else { return false };
        self.check_recovered(&found.iter().map(|row| (row.get(0), row.get(1))).collect(), "after an error");
        true
    }

    /// Builds a statement on one key, given the transaction's changes so far.
    fn statement(&mut self, random: &SeededRandom, change: &mut Change) -> String {
        let key = self.first() + i64::try_from(random.next_u64() % KEYS).expect("few keys");
        let value = self.next_value;
        self.next_value += 1;
        let is_there = change.get(&key).map_or_else(|| self.rows.contains_key(&key), Option::is_some);
        if !is_there {
            change.insert(key, Some(value));
            format!("INSERT INTO ledger VALUES ({key}, {value}); ")
        } else if random.next_u64().is_multiple_of(3) {
            change.insert(key, None);
            format!("DELETE FROM ledger WHERE k = {key}; ")
        } else {
            change.insert(key, Some(value));
            format!("UPDATE ledger SET v = {value} WHERE k = {key}; ")
        }
    }

    /// Replaces the rows of the last load by a new load.
    async fn replace_block(&mut self, client: &Client, change: &mut Change) -> Result<(), Error> {
        let (from, to) = (self.first() + BLOCK_START, self.first() + BLOCK_START + BLOCK);
        let value = self.next_value;
        self.next_value += 1;
        change.extend((from..to).map(|key| (key, Some(value))));
        let delete = format!("BEGIN; DELETE FROM ledger WHERE k >= {from} AND k < {to}");
        client.batch_execute(&delete).await?;
        let lines: String = (from..to).map(|key| format!("{key},{value}\n")).collect();
        let mut sink = std::pin::pin!(client.copy_in("COPY ledger FROM STDIN (FORMAT csv)").await?);
        sink.send(Bytes::from(lines)).await?;
        sink.finish().await?;
        self.doubt = Some(change.clone());
        client.batch_execute("COMMIT").await
    }

    fn apply(&mut self, change: &Change) {
        let rows = changed(&self.rows, change);
        self.earlier_states.push((self.clock.monotonic(), std::mem::replace(&mut self.rows, rows)));
    }

    /// Records that all acknowledged changes are in the storage.
    pub(super) fn mark_archived(&mut self) {
        self.earlier_states.clear();
    }

    /// Checks that the restored rows were acknowledged at some time not before `since`, and not before the last known
    /// archiving.
    pub(super) fn check_restored(&mut self, found: &BTreeMap<i64, i64>, since: Duration, moment: &str) {
        let with_doubt = self.doubt.take().map(|change| changed(&self.rows, &change));
        let was = self.earlier_states.iter().any(|(until, rows)| since <= *until && rows == found);
        if !was && *found != self.rows && with_doubt.as_ref() != Some(found) {
            let older = self.earlier_states.iter().position(|(_, rows)| rows == found);
            panic!(
                "{moment}: worker {}: restored {found:?}, acknowledged {:?}; so it was {older:?} of {} changes after the last copy",
                self.number,
                self.rows,
                self.earlier_states.len()
            );
        }
        self.rows.clone_from(found);
        self.earlier_states.clear();
    }

    /// Checks that the rows are the acknowledged ones, with or without the whole transaction in doubt.
    pub(super) fn check_recovered(&mut self, found: &BTreeMap<i64, i64>, moment: &str) {
        let doubt = self.doubt.take();
        self.doubted += u64::from(doubt.is_some());
        if *found == self.rows {
            return;
        }
        let with_doubt = doubt.as_ref().map(|change| changed(&self.rows, change));
        if with_doubt.as_ref() == Some(found) {
            self.happened += 1;
            let before = std::mem::replace(&mut self.rows, found.clone());
            self.earlier_states.push((self.clock.monotonic(), before));
            return;
        }
        let lost: Vec<_> = self.rows.iter().filter(|(key, value)| found.get(key) != Some(value)).collect();
        let invented: Vec<_> = found.iter().filter(|(key, value)| self.rows.get(key) != Some(value)).collect();
        panic!("{moment}: worker {}: lost {lost:?}, invented {invented:?}, in doubt {doubt:?}", self.number);
    }

    fn first(&self) -> i64 {
        self.number * RANGE
    }
}

fn changed(rows: &BTreeMap<i64, i64>, change: &Change) -> BTreeMap<i64, i64> {
    let mut rows = rows.clone();
    for (key, value) in change {
        match value {
            Some(value) => rows.insert(*key, *value),
            None => rows.remove(key),
        };
    }
    rows
}
