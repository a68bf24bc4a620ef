//! YCSB client: a connection with prepared operations.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio_postgres::{Client, Statement};

use super::load::{FIELD_LENGTH, FIELDS, POSTS, fields, key};
use super::workload::Operation;
use super::{SharedState, Workload};
use crate::Error;
use crate::measure::server::{self, Server, execute, prepare, rows};
use crate::measure::{self, CompletedOperation};
use crate::random::RandomGenerator;

/// Maximum number of rows per scan.
const SCAN_ROWS_MAX: i64 = 100;

pub(super) struct YcsbClient {
    client: Client,
    workload: Workload,
    shared: Arc<SharedState>,
    chance: RandomGenerator,
    read: Statement,
    /// One UPDATE per field.
    updates: Vec<Statement>,
    insert: Statement,
    scan: Statement,
    insert_post: Statement,
}

impl YcsbClient {
    pub(super) async fn connect(
        server: &Server,
        workload: Workload,
        shared: &Arc<SharedState>,
        seed: u64,
    ) -> Result<Self, Error> {
        let client = server.connect().await?;
        let names = fields("");
        let values = |first: usize| {
            let places = (first..first + FIELDS).map(|place| format!("${place}"));
            places.collect::<Vec<_>>().join(", ")
        };
        let mut updates = Vec::with_capacity(FIELDS);
        for field in 0..FIELDS {
            let update = format!("UPDATE usertable SET field{field} = $1 WHERE ycsb_key = $2");
            if matches!(workload, Workload::A | Workload::B | Workload::F) {
                updates.push(prepare(&client, &update).await?);
            }
        }
        let scan = format!("SELECT k1, k2, {names} FROM userposts WHERE k1 = $1 AND k2 >= $2 ORDER BY k2 LIMIT $3");
        Ok(Self {
            read: prepare(&client, &format!("SELECT ycsb_key, {names} FROM usertable WHERE ycsb_key = $1")).await?,
            updates,
            insert: prepare(&client, &format!("INSERT INTO usertable (ycsb_key, {names}) VALUES ($1, {})", values(2)))
                .await?,
            scan: prepare(&client, &scan).await?,
            insert_post: prepare(
                &client,
                &format!("INSERT INTO userposts (k1, k2, {names}) VALUES ($1, $2, {})", values(3)),
            )
            .await?,
            client,
            workload,
            shared: Arc::clone(shared),
            chance: RandomGenerator::new(seed),
        })
    }

    async fn read(&self, number: u64) -> Result<(), Error> {
        let found = rows(&self.client, &self.read, &[&key(number)]).await?.len();
        // A row whose insert has not committed yet may be missing.
        if found == 1 || number >= self.shared.rows { Ok(()) } else { Err(Error::Rows { wanted: 1, found }) }
    }

    async fn update(&self, number: u64) -> Result<(), Error> {
        let field = self.chance.below(FIELDS as u64) as usize;
        let value = self.chance.text(FIELD_LENGTH);
        let changed = execute(&self.client, &self.updates[field], &[&value, &key(number)]).await?;
        if changed == 1 { Ok(()) } else { Err(Error::Rows { wanted: 1, found: changed as usize }) }
    }

    async fn insert(&self) -> Result<(), Error> {
        let number = self.shared.next_row.fetch_add(1, Ordering::Relaxed);
        let values: Vec<String> = (0..FIELDS).map(|_| self.chance.text(FIELD_LENGTH)).collect();
        if self.workload == Workload::E {
            let user = self.user();
            // Numbers above the loaded posts are unique to this insert.
            let post = (POSTS + number) as i64;
            let mut given: Vec<&(dyn server::Value + Sync)> = vec![&user, &post];
            given.extend(values.iter().map(|value| value as &(dyn server::Value + Sync)));
            execute(&self.client, &self.insert_post, &given).await?;
            return Ok(());
        }
        let key = key(number);
        let mut given: Vec<&(dyn server::Value + Sync)> = vec![&key];
        given.extend(values.iter().map(|value| value as &(dyn server::Value + Sync)));
        execute(&self.client, &self.insert, &given).await?;
        Ok(())
    }

    async fn scan(&self) -> Result<u64, Error> {
        let (user, post) = (self.user(), self.chance.below(POSTS) as i64);
        let limit = self.chance.in_range(1, SCAN_ROWS_MAX);
        Ok(rows(&self.client, &self.scan, &[&user, &post, &limit]).await?.len() as u64)
    }

    /// Draws a user of `userposts`.
    fn user(&self) -> i64 {
        (self.shared.zipf.draw_scrambled(&self.chance) / POSTS) as i64
    }
}

impl measure::BenchmarkClient for YcsbClient {
    async fn step(&mut self) -> Result<CompletedOperation, Error> {
        match self.workload.draw_operation(&self.chance) {
            Operation::Read => {
                self.read(self.shared.zipf.draw_scrambled(&self.chance)).await?;
                Ok(CompletedOperation::single_row("read"))
            }
            Operation::ReadLatest => {
                let newest = self.shared.next_row.load(Ordering::Relaxed) - 1;
                self.read(newest - self.shared.zipf.draw(&self.chance)).await?;
                Ok(CompletedOperation::single_row("read latest"))
            }
            Operation::Update => {
                self.update(self.shared.zipf.draw_scrambled(&self.chance)).await?;
                Ok(CompletedOperation::single_row("update"))
            }
            Operation::Insert => self.insert().await.map(|()| CompletedOperation::single_row("insert")),
            Operation::Scan => self.scan().await.map(|rows| CompletedOperation { kind: "scan", retries: 0, rows }),
            Operation::ReadModifyWrite => {
                let number = self.shared.zipf.draw_scrambled(&self.chance);
                self.read(number).await?;
                self.update(number).await?;
                Ok(CompletedOperation::single_row("read-modify-write"))
            }
        }
    }
}
