//! Simulated world, which survives crashes, and a server in it, which does not.

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use catalog::{
    Change, Column, Constraint, ConstraintKind, Distribution, Role, Schema, SortColumn, Storage, Table, TableOrder,
};
use execution::Execution;
use executor::RunContext;
use history::{HistoryError, HistorySettings};
use kv::logical_log::RecordingStore;
use kv::sim::{SimDisk, SimStore};
use kv::{Batch, Direction, KeyRange, Space, TxKv};
use objects::{Fault, FaultStore, Objects};
use parking_lot::Mutex;
use scheduler::ResourceConfig;
use settings::Settings;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use txn::{Committer, Isolation, Snapshot, Transactions};
use types::random::SeededRandom;
use types::{
    CachePolicy, ColumnId, CommitTs, Condition, ObjectNames, Oid, QueryId, Random, SqlError, SqlType, TimeTravelTarget,
};
use uuid::Uuid;

use super::actor_scheduler::ActorScheduler;
use super::actors::draw_below;
use super::reference_model::{ReferenceModel, Tokens};
use super::state_reader::{Scanner, StateReader};

/// The only table.
pub(super) const TABLE_ID: Oid = Oid(20_000);
/// Primary key of the table, on the second column.
pub(super) const PRIMARY_KEY: Oid = Oid(20_001);
pub(super) const PRIMARY_KEY_COLUMNS: [ColumnId; 1] = [ColumnId(2)];
/// Number of log lines printed for a failed run.
const LOG_LINES_MAX: usize = 60;
/// Number of stops after which no fault can surface any more: a statement with concurrent requests reports a failure
/// only after the others have ended.
const FAULT_REPORT_BLOCKS: u64 = 100;
/// Retention longer than any run.
const RETENTION_UNLIMITED: Duration = Duration::from_secs(24 * 3_600);
/// Retention periods of snapshots, one of which the seed selects.
const SNAPSHOT_RETENTIONS: [Duration; 3] = [Duration::ZERO, Duration::from_millis(100), RETENTION_UNLIMITED];

/// Disk, bucket, clock, and what the checks know about them.
#[derive(Debug)]
pub(super) struct SimulatedWorld {
    pub(super) scheduler: Arc<ActorScheduler>,
    disk: Mutex<SimDisk>,
    /// Bucket without faults.
    pub(super) bucket: Objects,
    /// Bucket with injected faults, as servers see it.
    storage: Objects,
    pub(super) faults: Arc<FaultStore>,
    is_faulty: AtomicBool,
    /// Number of stops when requests last ceased to fail.
    faults_ended: Mutex<Option<u64>>,
    pub(super) reference_model: Mutex<ReferenceModel>,
    pub(super) state_reader: StateReader,
    pub(super) log: Mutex<VecDeque<String>>,
    /// Newest commit at the time of the last log archiving: no loss of the disk may lose it.
    pub(super) archived_commit: Mutex<CommitTs>,
    /// Older copy of the disk, and its newest commit.
    older_disk: Mutex<Option<(CommitTs, SimDisk)>>,
    /// Commits that have been the newest ones.
    pub(super) visible_commits: Mutex<BTreeSet<CommitTs>>,
    /// Objects written by commits that a lost disk has undone.
    pub(super) orphaned_objects: Mutex<BTreeSet<String>>,
    next_number: AtomicI64,
    /// Next new token.
    next_token: AtomicU64,
    /// Counter for folders and disks.
    folder_count: AtomicU64,
    folder: TempDir,
    seed: u64,
    retention: Duration,
    random: Arc<SeededRandom>,
}

/// Creates a folder in memory if possible: writing to a disk would take nine tenths of the time.
fn folder_in_memory() -> TempDir {
    let memory = std::path::Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a folder can be made")
}

impl SimulatedWorld {
    pub(super) fn new(seed: u64) -> Arc<Self> {
        let pace = Arc::new(ActorScheduler::default());
        let random = Arc::new(SeededRandom::new(seed));
        let bucket = Objects::open("memory:///", Arc::clone(&pace) as _, Arc::clone(&random) as _);
        let bucket = bucket.expect("memory opens");
        let (storage, faults) = bucket.with_faults(seed, Arc::clone(&pace) as _, Arc::clone(&pace) as _);
        Arc::new(Self {
            scheduler: pace,
            disk: Mutex::new(SimDisk::new(seed)),
            state_reader: StateReader::new(bucket.clone()),
            bucket,
            storage,
            faults,
            is_faulty: AtomicBool::new(false),
            faults_ended: Mutex::default(),
            reference_model: Mutex::default(),
            log: Mutex::default(),
            archived_commit: Mutex::default(),
            older_disk: Mutex::default(),
            visible_commits: Mutex::default(),
            orphaned_objects: Mutex::default(),
            next_number: AtomicI64::new(1),
            next_token: AtomicU64::new(1),
            folder_count: AtomicU64::new(0),
            folder: folder_in_memory(),
            seed,
            retention: SNAPSHOT_RETENTIONS[usize::try_from(seed % 3).expect("small")],
            random,
        })
    }

    /// Returns a unique number for a row or a version.
    pub(super) fn draw_number(&self) -> i64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns a new token, or a recent one that others may use.
    pub(super) fn draw_token(&self, random: &SeededRandom) -> u64 {
        if draw_below(random, 2) == 0 {
            self.next_token.fetch_add(1, Ordering::Relaxed)
        } else {
            self.next_token.load(Ordering::Relaxed)
        }
    }

    /// Makes one in `fail_one_in` requests fail; `None` ends the faults.
    pub(super) fn set_fault_rate(&self, fail_one_in: Option<u64>) {
        match fail_one_in {
            Some(count) => self.faults.fail_one_in(count, &Fault::DETECTABLE),
            None => {
                self.faults.clear_faults();
                *self.faults_ended.lock() = Some(self.scheduler.block_count());
            }
        }
        self.is_faulty.store(fail_one_in.is_some(), Ordering::Relaxed);
    }

    pub(super) fn is_faulty(&self) -> bool {
        self.is_faulty.load(Ordering::Relaxed)
    }

    /// Returns true if an error reported now may come from an injected fault.
    fn may_have_failed(&self) -> bool {
        self.is_faulty()
            || self
                .faults_ended
                .lock()
                .is_some_and(|healed| self.scheduler.block_count() < healed + FAULT_REPORT_BLOCKS)
    }

    pub(super) fn disk(&self) -> SimDisk {
        self.disk.lock().clone()
    }

    fn new_folder(&self) -> PathBuf {
        self.folder.path().join(self.folder_count.fetch_add(1, Ordering::Relaxed).to_string())
    }

    /// Returns true if snapshots expire during the run.
    pub(super) fn expires_snapshots(&self) -> bool {
        self.retention != RETENTION_UNLIMITED
    }

    /// Advances the clock until all historical snapshots have expired.
    pub(super) fn expire_all_snapshots(&self) {
        self.scheduler.advance(RETENTION_UNLIMITED * 3);
    }

    /// Replaces the disk by a new one restored from the bucket as of `moment`; returns its newest commit.
    pub(super) async fn restore_disk(&self, moment: TimeTravelTarget) -> CommitTs {
        let folder = self.new_folder();
        let restored = history::restore(&self.bucket, &folder, moment, false, &|_| ()).await;
        let restored = restored.unwrap_or_else(|error| panic!("the bucket holds what was copied: {error:?}"));
        let commit = restored.commit;
        let file = folder.join("catalog");
        restored.install(&file).expect("the folder is ours");
        let kv = kv::redb::open(&file).expect("it was just written");
        let mut batch = Batch::new();
        for space in Space::ALL {
            for entry in kv.scan(space, KeyRange::all(), Direction::Forward).expect("it reads") {
                let (key, value) = entry.expect("it reads");
                batch.put(space, key, value);
            }
        }
        drop(kv);
        std::fs::remove_dir_all(&folder).expect("the folder is ours");
        let disk = SimDisk::new(self.seed + self.folder_count.load(Ordering::Relaxed));
        disk.open().and_then(|store| store.write(batch)).expect("a new disk does not fail");
        *self.disk.lock() = disk;
        // Copies of the lost disk belong to an earlier timeline.
        *self.older_disk.lock() = None;
        commit
    }

    /// Copies the disk, together with its newest commit.
    pub(super) fn copy_disk(&self, newest: CommitTs) {
        *self.older_disk.lock() = Some((newest, self.disk().duplicate(self.seed)));
    }

    /// Replaces the disk and returns the previous one.
    pub(super) fn replace_disk(&self, other: SimDisk) -> SimDisk {
        std::mem::replace(&mut *self.disk.lock(), other)
    }

    /// Returns an empty disk or an older copy, if the bucket has commits that it lacks.
    pub(super) fn stale_disk(&self, is_empty: bool) -> Option<SimDisk> {
        let copied = *self.archived_commit.lock();
        if is_empty {
            return (CommitTs(0) < copied).then(|| SimDisk::new(self.seed));
        }
        let copy = self.older_disk.lock();
        copy.as_ref().filter(|(newest, _)| *newest < copied).map(|(_, disk)| disk.duplicate(self.seed))
    }

    /// Checks that a restore refuses a bucket to which two servers on copies of the disk have written.
    pub(super) async fn check_divergence_detection(&self) {
        for writes in [1, 2] {
            let store = self.disk().duplicate(self.seed + writes).open().expect("nobody has the copy");
            let clock: Arc<dyn types::Clock> = Arc::clone(&self.scheduler) as _;
            let log = Arc::new(RecordingStore::open(Arc::new(store), Arc::clone(&clock), u64::MAX).expect("it reads"));
            for write in 0..writes {
                let mut batch = Batch::new();
                batch.put(
                    Space::StoreMetadata,
                    &b"server"[..],
                    vec![u8::try_from(writes * 10 + write).expect("small")],
                );
                log.write(batch).expect("a new disk does not fail");
            }
            let settings = self.history_settings();
            let (transactions, _committer) =
                Transactions::open_without_thread(log, self.bucket.clone(), clock, settings)
                    .expect("a new disk does not fail");
            transactions.archive_log().await.expect("the bucket does not fail");
        }
        let restored =
            history::restore(&self.bucket, &self.new_folder(), TimeTravelTarget::Newest, false, &|_| ()).await;
        assert!(
            matches!(restored, Err(HistoryError::TwoHistories { .. })),
            "two histories are restored as one: {restored:?}"
        );
    }

    fn history_settings(&self) -> HistorySettings {
        HistorySettings {
            instance: Uuid::from_u128(1),
            work_folder: self.new_folder(),
            store_file: PathBuf::new(),
            reserve: None,
            upload_interval: Duration::from_millis(400),
            checkpoint_interval: Duration::from_secs(3_600),
            retention: self.retention,
            claim: None,
        }
    }

    pub(super) fn log_event(&self, line: String) {
        let mut log = self.log.lock();
        if log.len() == LOG_LINES_MAX {
            log.pop_front();
        }
        log.push_back(line);
    }
}

/// Running server.
pub(super) struct SimulatedServer {
    pub(super) world: Arc<SimulatedWorld>,
    pub(super) execution: Arc<Execution>,
    pub(super) transactions: Arc<Transactions>,
    pub(super) store: Arc<SimStore>,
    pub(super) scanner: Scanner,
    pub(super) table: Arc<Table>,
}

impl SimulatedServer {
    /// Starts a server on the current disk and bucket; `None` if the disk fails during the start.
    ///
    /// # Errors
    /// [`HistoryError`] if disk and bucket have diverged.
    pub(super) async fn start(
        world: &Arc<SimulatedWorld>,
        sorted: bool,
    ) -> Result<Option<(Arc<Self>, Committer)>, HistoryError> {
        let store = Arc::new(world.disk().open().expect("nobody else has the disk"));
        match history::compare_with_storage(&*store, &world.bucket).await {
            Ok(()) => {}
            Err(error) if error.is_divergence() => return Err(error),
            Err(HistoryError::Store(_) | HistoryError::DamagedStore { .. }) => return Ok(None),
            Err(error) => panic!("the bucket does not fail: {error:?}"),
        }
        drop(store);
        Ok(Self::start_compared(world, sorted).await)
    }

    async fn start_compared(world: &Arc<SimulatedWorld>, sorted: bool) -> Option<(Arc<Self>, Committer)> {
        let store = Arc::new(world.disk().open().expect("nobody else has the disk"));
        let clock: Arc<dyn types::Clock> = Arc::clone(&world.scheduler) as _;
        let kv = Arc::clone(&store) as Arc<dyn TxKv>;
        history::begin_timeline(&kv, &world.bucket).await.ok()?;
        let log = Arc::new(RecordingStore::open(kv, Arc::clone(&clock), u64::MAX).ok()?);
        let settings = world.history_settings();
        let (transactions, committer) =
            Transactions::open_without_thread(log, world.storage.clone(), Arc::clone(&clock), settings).ok()?;
        let random: Arc<dyn Random> = Arc::clone(&world.random) as _;
        let config =
            ResourceConfig { spill_folder: world.folder.path().join("spill"), threads: 0, ..ResourceConfig::default() };
        let execution = Execution::new(world.storage.clone(), Arc::clone(&transactions), clock, random, config);
        let execution = execution.expect("nothing is in the way of a server");
        if transactions.current().state.table(TABLE_ID).is_none() {
            let mut transaction = transactions.begin(Isolation::ReadCommitted);
            transaction.stage(vec![Change::PutTable(table_definition(sorted))]).expect("the table is new");
            let commit = tokio::spawn(transaction.commit());
            while !commit.is_finished() {
                committer.serve_queued();
                tokio::task::yield_now().await;
            }
            commit.await.expect("it does not panic").ok()?;
        }
        let table = Arc::clone(transactions.current().state.table(TABLE_ID).expect("it is there"));
        let scanner = Scanner::new(&execution);
        let world = Arc::clone(world);
        Some((Arc::new(Self { world, execution, transactions, store, scanner, table }), committer))
    }

    pub(super) fn current_snapshot(&self) -> Snapshot {
        self.transactions.current()
    }

    /// Returns the committed tokens and their commits.
    pub(super) fn tokens(&self) -> Tokens {
        let known = self.transactions.outcomes(None, None).expect("memory does not fail");
        let committed =
            known.into_iter().filter_map(|known| known.outcome.map(|outcome| (known.token, outcome.commit)));
        committed.map(|(token, commit)| (token.text.parse().expect("tokens are numbers"), commit)).collect()
    }

    /// Blocks until the driver resumes the actor.
    pub(super) async fn block(&self, what: &'static str) {
        self.world.scheduler.block(what).await;
    }

    /// Panics on an error of log archiving or time travel that no injected fault explains.
    pub(super) fn assert_allowed_history_error(&self, error: &HistoryError) {
        let is_fit = match error {
            // History beyond the retention period may be deleted while it is read.
            HistoryError::Objects(objects::Error::NotFound { .. }) | HistoryError::Gap { .. } => {
                self.world.expires_snapshots()
            }
            HistoryError::Objects(_) => self.world.may_have_failed() || self.transactions.is_poisoned(),
            HistoryError::Store(_) | HistoryError::DamagedStore { .. } => self.transactions.is_poisoned(),
            _ => false,
        };
        self.world.log_event(format!("the past: {error}"));
        assert!(is_fit, "{error:?}");
    }

    /// Panics on an error that neither concurrency nor an injected fault explains.
    pub(super) fn assert_allowed_error(&self, error: &SqlError) {
        let is_fit = match error.condition {
            Condition::SerializationFailure | Condition::DeadlockDetected | Condition::UniqueViolation => true,
            // A request with an injected fault may still be in progress after faults were switched off.
            Condition::IoError if error.message.contains("injected: ") => true,
            Condition::IoError | Condition::DataCorrupted => {
                self.world.may_have_failed() || self.transactions.is_poisoned()
            }
            Condition::CannotConnectNow => self.transactions.is_poisoned(),
            _ => false,
        };
        assert!(is_fit, "{error:?}");
    }
}

/// Returns the table `(number int8, key int4 PRIMARY KEY ENFORCED, version int8)`.
fn table_definition(sorted: bool) -> Arc<Table> {
    let key = SortColumn { column: ColumnId(2), descending: false, nulls_first: false };
    let order = if sorted { TableOrder::Sort(vec![key]) } else { TableOrder::None };
    let column = |id, name: &str, sql_type| Column {
        id: ColumnId(id),
        name: name.to_owned(),
        sql_type,
        not_null: true,
        default: None,
        missing: None,
        comment: None,
        identity: None,
        sequences: Vec::new(),
    };
    let key = Constraint {
        oid: PRIMARY_KEY,
        name: "t_pkey".to_owned(),
        kind: ConstraintKind::PrimaryKey { columns: PRIMARY_KEY_COLUMNS.to_vec() },
        enforced: true,
        comment: None,
    };
    Arc::new(Table {
        oid: TABLE_ID,
        schema: Schema::PUBLIC,
        name: "t".to_owned(),
        owner: Role::BOOTSTRAP,
        columns: vec![
            column(1, "number", SqlType::Int8),
            column(2, "key", SqlType::Int4),
            column(3, "version", SqlType::Int8),
        ],
        constraints: vec![key],
        distribution: Distribution::Random,
        order,
        comment: None,
        next_column: 4,
        storage: Storage::Hybrid,
        indexes: Vec::new(),
        options: Vec::new(),
        temporary: None,
        cache: CachePolicy::default(),
        external: None,
    })
}

/// Returns the context of a statement that is never cancelled.
pub(super) fn run_context() -> RunContext {
    RunContext {
        query_id: QueryId(1),
        cancel: CancellationToken::new(),
        settings: Arc::new(Settings::default()),
        names: Arc::new(NoObjectNames),
        progress: Arc::default(),
        thread_share: Arc::default(),
        first_plan: Arc::default(),
        memory: Arc::default(),
        lease: None,
        distribution: None,
    }
}

/// Catalog without names: no statement shows an object's name.
#[derive(Debug)]
struct NoObjectNames;

impl ObjectNames for NoObjectNames {
    fn format(&self, _: &SqlType, oid: u32) -> String {
        oid.to_string()
    }
}
