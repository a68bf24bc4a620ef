//! The world that outlives crashes, and a server in it that does not.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use catalog::{Change, Constraint, ConstraintKind, SortColumn, Storage, Table, TableOrder};
use kv::TxKv;
use kv::sim::{Disk, Store};
use objects::{FaultStore, Objects};
use parking_lot::Mutex;
use tempfile::TempDir;
use txn::{Committer, Isolation, Snapshot, Transactions};
use types::random::SeededRandom;
use types::{ColumnId, Condition, Oid, Random, SqlError, SqlType};

use super::history::History;
use super::look::{Look, Scanner};
use super::pace::Pace;
use crate::fixtures::{self, TABLE};
use crate::{Config, Execution};

/// Its primary key, on the second column.
pub(super) const KEY: Oid = Oid(20_001);
pub(super) const KEY_COLUMNS: [ColumnId; 1] = [ColumnId(2)];
/// What is told of a failure.
const LOG_LINES: usize = 60;

/// Disk, bucket, time, and what is known of them.
#[derive(Debug)]
pub(super) struct World {
    pub(super) pace: Arc<Pace>,
    pub(super) disk: Disk,
    /// The bucket as it is.
    pub(super) bucket: Objects,
    /// The bucket as servers see it.
    storage: Objects,
    pub(super) faults: Arc<FaultStore>,
    pub(super) is_faulty: AtomicBool,
    pub(super) history: Mutex<History>,
    pub(super) look: Look,
    pub(super) log: Mutex<VecDeque<String>>,
    next: AtomicI64,
    spill: TempDir,
    random: Arc<SeededRandom>,
}

impl World {
    pub(super) fn new(seed: u64) -> Arc<Self> {
        let pace = Arc::new(Pace::default());
        let random = Arc::new(SeededRandom::new(seed));
        let bucket = Objects::open("memory:///", Arc::clone(&pace) as _, Arc::clone(&random) as _);
        let bucket = bucket.expect("memory opens");
        let (storage, faults) = bucket.with_faults(seed, Arc::clone(&pace) as _, Arc::clone(&pace) as _);
        Arc::new(Self {
            pace,
            disk: Disk::new(seed),
            look: Look::new(bucket.clone()),
            bucket,
            storage,
            faults,
            is_faulty: AtomicBool::new(false),
            history: Mutex::default(),
            log: Mutex::default(),
            next: AtomicI64::new(1),
            spill: tempfile::tempdir().expect("a folder can be made"),
            random,
        })
    }

    /// A number that nothing else has: of a row, or of a version of one.
    pub(super) fn number(&self) -> i64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn note(&self, line: String) {
        let mut log = self.log.lock();
        if log.len() == LOG_LINES {
            log.pop_front();
        }
        log.push_back(line);
    }
}

/// A server.
pub(super) struct Life {
    pub(super) world: Arc<World>,
    pub(super) execution: Arc<Execution>,
    pub(super) transactions: Arc<Transactions>,
    pub(super) store: Arc<Store>,
    pub(super) scanner: Scanner,
    pub(super) table: Arc<Table>,
}

impl Life {
    /// Starts a server on what is there; `None` where the disk fails meanwhile.
    pub(super) async fn start(world: &Arc<World>, sorted: bool) -> Option<(Arc<Self>, Committer)> {
        let store = Arc::new(world.disk.open().expect("nobody else has the disk"));
        let clock: Arc<dyn types::Clock> = Arc::clone(&world.pace) as _;
        let kv = Arc::clone(&store) as Arc<dyn TxKv>;
        let (transactions, committer) =
            Transactions::open_driven(kv, world.storage.clone(), Arc::clone(&clock)).ok()?;
        let random: Arc<dyn Random> = Arc::clone(&world.random) as _;
        let config = Config { spill_folder: world.spill.path().join("spill"), threads: 0, ..Config::default() };
        let execution = Execution::new(world.storage.clone(), Arc::clone(&transactions), clock, random, config);
        let execution = execution.expect("nothing is in the way of a server");
        if transactions.current().state.table(TABLE).is_none() {
            let mut transaction = transactions.begin(Isolation::ReadCommitted);
            transaction.stage(vec![Change::PutTable(table(sorted))]).expect("the table is new");
            let commit = tokio::spawn(transaction.commit());
            while !commit.is_finished() {
                committer.serve_waiting();
                tokio::task::yield_now().await;
            }
            commit.await.expect("it does not panic").ok()?;
        }
        let table = Arc::clone(transactions.current().state.table(TABLE).expect("it is there"));
        let scanner = Scanner::new(&execution);
        let world = Arc::clone(world);
        Some((Arc::new(Self { world, execution, transactions, store, scanner, table }), committer))
    }

    pub(super) fn newest(&self) -> Snapshot {
        self.transactions.current()
    }

    /// Waits until the driver says to go on.
    pub(super) async fn stop(&self, what: &'static str) {
        self.world.pace.stop(what).await;
    }

    /// Refuses what must not happen in whatever order things happen.
    pub(super) fn expect_fit(&self, error: &SqlError) {
        let is_fit = match error.condition {
            Condition::SerializationFailure | Condition::DeadlockDetected | Condition::UniqueViolation => true,
            // A request that was to fail may still be under way when none shall fail any more.
            Condition::IoError if error.message.contains("injected: ") => true,
            Condition::IoError | Condition::DataCorrupted => {
                self.world.is_faulty.load(Ordering::Relaxed) || self.transactions.is_poisoned()
            }
            Condition::CannotConnectNow => self.transactions.is_poisoned(),
            _ => false,
        };
        assert!(is_fit, "{error:?}");
    }
}

/// `(number int8, key int4 PRIMARY KEY ENFORCED, version int8)`.
fn table(sorted: bool) -> Arc<Table> {
    let key = SortColumn { column: ColumnId(2), descending: false, nulls_first: false };
    let order = if sorted { TableOrder::Sort(vec![key]) } else { TableOrder::None };
    let mut table = Table::clone(&fixtures::table(order));
    table.storage = Storage::Hybrid;
    let mut column = table.columns[0].clone();
    table.columns.clear();
    for (id, name, sql_type) in [(1, "number", SqlType::Int8), (2, "key", SqlType::Int4), (3, "version", SqlType::Int8)]
    {
        (column.id, column.name, column.sql_type) = (ColumnId(id), name.to_owned(), sql_type);
        table.columns.push(column.clone());
    }
    table.next_column = 4;
    table.constraints.push(Constraint {
        oid: KEY,
        name: "t_pkey".to_owned(),
        kind: ConstraintKind::PrimaryKey { columns: KEY_COLUMNS.to_vec() },
        enforced: true,
        comment: None,
    });
    Arc::new(table)
}
