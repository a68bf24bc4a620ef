//! Tables of these tests, the clients that work on them concurrently, and the checks of their contents.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::Client;
use types::random::SeededRandom;
use types::{Random, SystemClock};

use super::ledger_client::{LedgerClient, RANGE};
use crate::server::Server;
use crate::time::until_copied;

const WORKERS: i64 = 4;
const MONEY_MOVERS: u64 = 2;
const ACCOUNTS: i64 = 20;
const MONEY: i64 = 1_000;

/// Expected contents of the tables.
#[derive(Debug, Clone)]
pub(super) struct Ledger {
    workers: Vec<LedgerClient>,
    clock: Arc<SystemClock>,
}

impl Ledger {
    /// Creates the tables.
    pub(super) async fn create(client: &Client) -> Self {
        let sql = format!(
            "CREATE TABLE ledger (k bigint PRIMARY KEY ENFORCED, v bigint NOT NULL); \
             CREATE TABLE account (id bigint PRIMARY KEY ENFORCED, money bigint NOT NULL); \
             INSERT INTO account SELECT g, {MONEY} FROM generate_series(1, {ACCOUNTS}) AS g"
        );
        client.batch_execute(&sql).await.expect("the tables are new");
        let clock = Arc::new(SystemClock::new());
        Self { workers: (1..=WORKERS).map(|number| LedgerClient::new(number, Arc::clone(&clock))).collect(), clock }
    }

    /// Runs all clients until the server is gone or each worker has done `transactions` transactions.
    pub(super) async fn work(&mut self, server: &Server, seed: u64, transactions: u64) {
        let mut working: Vec<JoinHandle<LedgerClient>> = Vec::new();
        for worker in &self.workers {
            let Ok(client) = server.connect_as("user=kiln dbname=kiln").await else { continue };
            let mut worker = worker.clone();
            working.push(tokio::spawn(async move {
                worker.work(&client, seed, transactions).await;
                worker
            }));
        }
        let mut helping = Vec::new();
        for number in 0..MONEY_MOVERS {
            if let Ok(client) = server.connect_as("user=kiln dbname=kiln").await {
                helping.push(tokio::spawn(async move { move_money(&client, seed + number).await }));
            }
        }
        if let Ok(client) = server.connect_as("user=kiln dbname=kiln").await {
            helping.push(tokio::spawn(async move { while client.batch_execute("VACUUM").await.is_ok() {} }));
        }
        if let Ok(client) = server.connect_as("user=kiln dbname=kiln").await {
            helping.push(tokio::spawn(async move { while check_money(&client).await {} }));
        }
        for worker in working {
            let worker = worker.await.expect("workers find what they remember");
            let known = self.workers.iter_mut().find(|known| known.number == worker.number);
            *known.expect("it is one of them") = worker;
        }
        for helper in helping {
            // Aborts helpers that never end by themselves; one that has found an error panics.
            if helper.is_finished() {
                helper.await.expect("money is neither lost nor made");
            } else {
                helper.abort();
            }
        }
    }

    /// Checks everything, by a scan and by key lookups.
    pub(super) async fn check(&mut self, client: &Client, moment: &str) {
        self.read_all(client, moment, |worker, found| worker.check_recovered(found, moment)).await;
    }

    /// Checks a restored warehouse: its state may be older, but not older than `since`.
    pub(super) async fn check_restored(&mut self, client: &Client, since: Duration, moment: &str) {
        self.read_all(client, moment, |worker, found| worker.check_restored(found, since, moment)).await;
    }

    /// Waits until all acknowledged changes are in the storage.
    pub(super) async fn wait_until_copied(&mut self, client: &Client) {
        until_copied(client).await;
        self.workers.iter_mut().for_each(LedgerClient::mark_archived);
    }

    /// Returns the clock of the workers' timestamps.
    pub(super) fn clock(&self) -> Arc<SystemClock> {
        Arc::clone(&self.clock)
    }

    async fn read_all(
        &mut self,
        client: &Client,
        moment: &str,
        judge: impl Fn(&mut LedgerClient, &BTreeMap<i64, i64>),
    ) {
        let mut found: BTreeMap<i64, BTreeMap<i64, i64>> = BTreeMap::new();
        for row in client.query("SELECT k, v FROM ledger", &[]).await.expect("the server answers") {
            let (key, value): (i64, i64) = (row.get(0), row.get(1));
            let twice = found.entry(key / RANGE).or_default().insert(key, value);
            assert_eq!(twice, None, "{moment}: key {key} is there twice");
        }
        for worker in &mut self.workers {
            judge(worker, &found.remove(&worker.number).unwrap_or_default());
        }
        assert!(found.is_empty(), "{moment}: rows that nobody wrote: {found:?}");
        for worker in &self.workers {
            for key in (worker.number * RANGE..).take(10) {
                let rows = client.query(&format!("SELECT v FROM ledger WHERE k = {key}"), &[]).await;
                let rows: Vec<i64> = rows.expect("the server answers").iter().map(|row| row.get(0)).collect();
                let known: Vec<i64> = worker.rows.get(&key).copied().into_iter().collect();
                assert_eq!(rows, known, "{moment}: key {key}");
            }
        }
        assert!(check_money(client).await, "{moment}: the server answers");
    }

    /// Returns the numbers of acknowledged transactions, of those in doubt, and of the latter that took effect.
    pub(super) fn counts(&self) -> (u64, u64, u64) {
        let sum = |count: fn(&LedgerClient) -> u64| self.workers.iter().map(count).sum();
        (sum(|worker| worker.acknowledged), sum(|worker| worker.doubted), sum(|worker| worker.happened))
    }
}

async fn move_money(client: &Client, seed: u64) {
    let random = SeededRandom::new(seed);
    let account = || i64::try_from(random.next_u64()).unwrap_or(7) % ACCOUNTS + 1;
    loop {
        let (from, to, money) = (account(), account(), account());
        let moved = client
            .batch_execute(&format!(
                "BEGIN; UPDATE account SET money = money - {money} WHERE id = {from}; \
                 UPDATE account SET money = money + {money} WHERE id = {to}; COMMIT"
            ))
            .await;
        if moved.is_err() && client.batch_execute("ROLLBACK").await.is_err() {
            return;
        }
    }
}

/// Returns false if the server is gone; checks the sum otherwise.
async fn check_money(client: &Client) -> bool {
    let sql = "SELECT sum(money)::bigint, count(*), count(DISTINCT id) FROM account";
    let Ok(row) = client.query_one(sql, &[]).await else { return false };
    let found: (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
    assert_eq!(found, (ACCOUNTS * MONEY, ACCOUNTS, ACCOUNTS), "money, accounts, different accounts");
    true
}
