//! A client that writes rows of its own and remembers what it was told about them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::SinkExt;
use tokio_postgres::{Client, Error};
use types::random::SeededRandom;
use types::{Clock, Random, SystemClock};

/// Keys from one worker's first to the next one's.
pub(super) const RANGE: i64 = 1_000_000;
/// Keys that are written one by one.
const KEYS: u64 = 60;
/// Keys that are loaded together, and where they begin.
const BLOCK: i64 = 150;
const BLOCK_START: i64 = 1_000;

/// A value for each key; `None` for one that is gone.
pub(super) type Change = BTreeMap<i64, Option<i64>>;

/// What one worker knows of its rows.
#[derive(Debug, Clone)]
pub(super) struct Worker {
    pub(super) number: i64,
    /// As acknowledged.
    pub(super) rows: BTreeMap<i64, i64>,
    /// As it was before that, and until when.
    past: Vec<(Duration, BTreeMap<i64, i64>)>,
    clock: Arc<SystemClock>,
    /// What may have happened or not, as a whole.
    doubt: Option<Change>,
    next_value: i64,
    /// Transactions that were acknowledged, that were in doubt, and those of the latter that did happen.
    pub(super) acknowledged: u64,
    pub(super) doubted: u64,
    pub(super) happened: u64,
}

impl Worker {
    pub(super) fn new(number: i64, clock: Arc<SystemClock>) -> Self {
        let (rows, past) = (BTreeMap::new(), Vec::new());
        Self { number, rows, past, clock, doubt: None, next_value: 1, acknowledged: 0, doubted: 0, happened: 0 }
    }

    /// Writes until the server is gone, or `transactions` times.
    pub(super) async fn work(&mut self, client: &Client, seed: u64, transactions: u64) {
        let random = SeededRandom::new(seed.wrapping_mul(31).wrapping_add(self.number.unsigned_abs()));
        // Few rows are enough for a shard.
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
                Err(error) if self.goes_on(client, &error).await => {}
                Err(_) => return,
            }
        }
    }

    /// After a failure: looks what happened; `false` where there is nobody left to ask.
    async fn goes_on(&mut self, client: &Client, error: &Error) -> bool {
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
        self.settle(&found.iter().map(|row| (row.get(0), row.get(1))).collect(), "after an error");
        true
    }

    /// One statement about one key, on top of what the transaction has changed.
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

    /// A load in the place of the last one.
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
        self.past.push((self.clock.monotonic(), std::mem::replace(&mut self.rows, rows)));
    }

    /// All that was acknowledged by now is in the storage.
    pub(super) fn copied(&mut self) {
        self.past.clear();
    }

    /// What was restored is what was acknowledged at one moment, not before `since`, and since it was last known to be copied.
    pub(super) fn go_back(&mut self, found: &BTreeMap<i64, i64>, since: Duration, moment: &str) {
        let with_doubt = self.doubt.take().map(|change| changed(&self.rows, &change));
        let was = self.past.iter().any(|(until, rows)| since <= *until && rows == found);
        if !was && *found != self.rows && with_doubt.as_ref() != Some(found) {
            let older = self.past.iter().position(|(_, rows)| rows == found);
            panic!(
                "{moment}: worker {}: restored {found:?}, acknowledged {:?}; so it was {older:?} of {} changes after the last copy",
                self.number,
                self.rows,
                self.past.len()
            );
        }
        self.rows.clone_from(found);
        self.past.clear();
    }

    /// What is found is what was acknowledged, and what was in doubt as a whole or not at all.
    pub(super) fn settle(&mut self, found: &BTreeMap<i64, i64>, moment: &str) {
        let doubt = self.doubt.take();
        self.doubted += u64::from(doubt.is_some());
        if *found == self.rows {
            return;
        }
        let with_doubt = doubt.as_ref().map(|change| changed(&self.rows, change));
        if with_doubt.as_ref() == Some(found) {
            self.happened += 1;
            let before = std::mem::replace(&mut self.rows, found.clone());
            self.past.push((self.clock.monotonic(), before));
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
