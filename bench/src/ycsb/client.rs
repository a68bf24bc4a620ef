//! YCSB client: a connection with prepared operations.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio_postgres::{Client, Statement};

use super::load::{FIELD_COUNT, FIELD_LENGTH, POSTS_PER_USER, draw_fields, user_key};
use super::workload::Operation;
use super::{SharedState, Workload};
use crate::Error;
use crate::measure::server_connection::{self, Server, execute, prepare, query_rows};
use crate::measure::{self, CompletedOperation};
use crate::random::RandomGenerator;

/// Maximum number of rows per scan.
const SCAN_ROWS_MAX: i64 = 100;

pub(super) struct YcsbClient {
    client: Client,
    workload: Workload,
    shared: Arc<SharedState>,
    random: RandomGenerator,
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
        let names = draw_fields("");
        let values = |first: usize| {
            let places = (first..first + FIELD_COUNT).map(|place| format!("${place}"));
            places.collect::<Vec<_>>().join(", ")
        };
        let mut updates = Vec::with_capacity(FIELD_COUNT);
        for field in 0..FIELD_COUNT {
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
            random: RandomGenerator::new(seed),
        })
    }

    async fn read(&self, number: u64) -> Result<(), Error> {
        let found = query_rows(&self.client, &self.read, &[&user_key(number)]).await?.len();
        // A row whose insert has not committed yet may be missing.
        if found == 1 || number >= self.shared.rows { Ok(()) } else { Err(Error::Rows { expected: 1, found }) }
    }

    async fn update(&self, number: u64) -> Result<(), Error> {
        let field = self.random.next_below(FIELD_COUNT as u64) as usize;
        let value = self.random.next_text(FIELD_LENGTH);
        let changed = execute(&self.client, &self.updates[field], &[&value, &user_key(number)]).await?;
        if changed == 1 { Ok(()) } else { Err(Error::Rows { expected: 1, found: changed as usize }) }
    }

    async fn insert(&self) -> Result<(), Error> {
        let number = self.shared.next_row.fetch_add(1, Ordering::Relaxed);
        let values: Vec<String> = (0..FIELD_COUNT).map(|_| self.random.next_text(FIELD_LENGTH)).collect();
        if self.workload == Workload::E {
            let user = self.draw_user();
            // Numbers above the loaded posts are unique to this insert.
            let post = (POSTS_PER_USER + number) as i64;
            let mut given: Vec<&(dyn server_connection::Value + Sync)> = vec![&user, &post];
            given.extend(values.iter().map(|value| value as &(dyn server_connection::Value + Sync)));
            execute(&self.client, &self.insert_post, &given).await?;
            return Ok(());
        }
        let key = user_key(number);
        let mut given: Vec<&(dyn server_connection::Value + Sync)> = vec![&key];
        given.extend(values.iter().map(|value| value as &(dyn server_connection::Value + Sync)));
        execute(&self.client, &self.insert, &given).await?;
        Ok(())
    }

    async fn scan(&self) -> Result<u64, Error> {
        let (user, post) = (self.draw_user(), self.random.next_below(POSTS_PER_USER) as i64);
        let limit = self.random.next_in_range(1, SCAN_ROWS_MAX);
        Ok(query_rows(&self.client, &self.scan, &[&user, &post, &limit]).await?.len() as u64)
    }

    /// Draws a user of `userposts`.
    fn draw_user(&self) -> i64 {
        (self.shared.zipf.draw_scrambled(&self.random) / POSTS_PER_USER) as i64
    }
}

impl measure::BenchmarkClient for YcsbClient {
    async fn run_operation(&mut self) -> Result<CompletedOperation, Error> {
        match self.workload.draw_operation(&self.random) {
            Operation::Read => {
                self.read(self.shared.zipf.draw_scrambled(&self.random)).await?;
                Ok(CompletedOperation::single_row("read"))
            }
            Operation::ReadLatest => {
                let newest = self.shared.next_row.load(Ordering::Relaxed) - 1;
                self.read(newest - self.shared.zipf.draw(&self.random)).await?;
                Ok(CompletedOperation::single_row("read latest"))
            }
            Operation::Update => {
                self.update(self.shared.zipf.draw_scrambled(&self.random)).await?;
                Ok(CompletedOperation::single_row("update"))
            }
            Operation::Insert => self.insert().await.map(|()| CompletedOperation::single_row("insert")),
            Operation::Scan => self.scan().await.map(|rows| CompletedOperation { kind: "scan", retries: 0, rows }),
            Operation::ReadModifyWrite => {
                let number = self.shared.zipf.draw_scrambled(&self.random);
                self.read(number).await?;
                self.update(number).await?;
                Ok(CompletedOperation::single_row("read-modify-write"))
            }
        }
    }
}
