//! Measures planning for a table of very many shards: `cargo bench -p execution --bench planning [-- SHARDS]`, by
//! default 10,000,000. Prints planning times, the memory of the table's catalog entry, and the size of messages to
//! workers. The shards do not exist in storage.

#![expect(clippy::print_stdout, reason = "a benchmark speaks to its user")]
#![expect(clippy::disallowed_methods, reason = "a benchmark asks for the machine's own time")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use binder::StatementPlan;
use catalog::{
    CatalogState, Change, Column, Distribution, Role, Schema, ShardList, Storage, Table, TableOrder, TableShards,
};
use exchange::message_bytes;
use execution::Execution;
use objects::Objects;
use planner::Planner;
use scheduler::ResourceConfig;
use session_context::{NoActivity, StatementContext};
use settings::Settings;
use shards::{ColumnStats, Datum, Hll, PackedShards, RowGroupMeta, RowIds, ShardMeta};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use txn::Transactions;
use types::random::SeededRandom;
use types::{CachePolicy, Clock, ColumnId, Oid, QueryId, Random, RowId, ShardId, SqlType, SystemClock, SystemRandom};

const TABLE: Oid = Oid(20_000);
/// Shards per day.
const OF_DAY: u64 = 100;
const ROWS: u64 = 1_000_000;
const BYTES: u64 = 100 << 20;
const AT_ONCE: u64 = 100_000;

fn main() {
    let count = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(10_000_000);
    let random = SeededRandom::new(1);
    let before = resident_bytes();
    let begun = Instant::now();
    let mut state = CatalogState::new_warehouse().apply(&Change::PutTable(Arc::new(events()))).expect("a new table");
    for first in (0..count).step_by(100_000) {
        let shards = (first..count.min(first + AT_ONCE)).map(|number| shard(number, count, &random)).collect();
        state = append(&state, shards);
    }
    println!("{count} shards made and added one hundred thousand at a time: {:.1} s", begun.elapsed().as_secs_f64());
    memory(&state.shards(TABLE).shards, before);

    let bench = Bench::new();
    bench
        .query(&state, "the first query of a state", |_| "select count(*) from events where day = '1970-03-01'".into());
    let of = |number: u64| number * 7_919 % count;
    bench.query(&state, "a day, which follows the order of loading", |run| {
        format!("select sum(customer) from events where day = date '1970-01-01' + {}", run * 13 % (count / OF_DAY))
    });
    bench.query(&state, "a range of ids, which do", |run| {
        let first = of(run + 1) * ROWS + 5;
        format!("select sum(customer) from events where id between {first} and {}", first + 2 * ROWS)
    });
    bench.query(&state, "a customer: narrow ranges in no order", |run| {
        format!("select sum(id) from events where customer = {}", of(run + 11) * 1_000 + 7)
    });
    bench.query(&state, "a text: narrow ranges in no order", |run| {
        format!("select sum(id) from events where region = 'region {:010} m'", of(run + 13))
    });
    bench.query(&state, "customers and days", |run| {
        let low = of(run + 17) * 1_000;
        format!("select sum(id) from events where customer between {low} and {} and day > '1970-02-01'", low + 9_000)
    });
    bench.query(&state, "ten customers", |run| {
        let customers: Vec<_> = (0..10).map(|each| (of(run * 10 + each + 19) * 1_000 + 7).to_string()).collect();
        format!("select sum(id) from events where customer in ({})", customers.join(", "))
    });
    // A customer that the packed statistics of every group of neighbouring shards may contain.
    let customer = count / 2 * 1_000 + 7;
    let same = |_| format!("select sum(id) from events where customer = {customer}");
    bench.query(&state, "the same customer again", same);
    bench.query(&state, "no shard", |run| format!("select sum(id) from events where customer = -{}", run + 1));

    let begun = Instant::now();
    let next = append(&state, vec![shard(count, count, &random)]);
    println!("one shard more: {:.3} ms", begun.elapsed().as_secs_f64() * 1e3);
    bench.query(&next, "the first query after it", same);
    let begun = Instant::now();
    let prune = |shards: &TableShards| pruned(shards, customer.cast_signed());
    assert_eq!(prune(state.shards(TABLE)), prune(next.shards(TABLE)));
    println!("two looks through the index alone: {:.3} ms", begun.elapsed().as_secs_f64() * 1e3);
}

/// Returns how many shards an equality on `customer` leaves, without a cached result.
fn pruned(shards: &TableShards, customer: i64) -> usize {
    let test = shards::Test::Compare(shards::CompareOp::Eq, Datum::Int(customer));
    let predicates = [shards::Predicate { column: ColumnId(3), test }];
    shards.shards.matching(&shards::Pruner::new(&predicates, &[])).len()
}

fn append(state: &CatalogState, shards: Vec<Arc<ShardMeta>>) -> CatalogState {
    state.apply(&Change::AddShards { table: TABLE, shards, sample: None }).expect("the table has these columns")
}

fn memory(shards: &ShardList, before: u64) {
    let (bytes, packed) = shards.packed_memory();
    println!("{packed} of {} shards are packed, {} at a time", shards.len(), PackedShards::COUNT_MAX);
    println!("memory of the index: {} MB, {} bytes for a shard", bytes >> 20, bytes / packed.max(1));
    let resident = resident_bytes().saturating_sub(before);
    println!("memory of the process beside it: {} MB", resident.saturating_sub(bytes as u64) >> 20);
}

/// Returns the resident memory of the process; 0 if the system does not report it.
fn resident_bytes() -> u64 {
    let told = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    told.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or_default() * 4_096
}

struct Bench {
    planner: Planner,
    _execution: Arc<Execution>,
    _spill: tempfile::TempDir,
    runtime: Runtime,
}

impl Bench {
    fn new() -> Self {
        let runtime = Runtime::new().expect("threads start");
        let entered = runtime.enter();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let random: Arc<dyn Random> = Arc::new(SystemRandom);
        let objects = Objects::open("memory:///", Arc::clone(&clock), Arc::clone(&random)).expect("memory is there");
        let kv = Arc::new(kv::sim::SimDisk::new(1).open().expect("an empty disk"));
        let transactions = Transactions::open(kv, objects.clone(), Arc::clone(&clock)).expect("an empty store");
        let spill = tempfile::tempdir().expect("there is a place for files");
        let config = ResourceConfig { spill_folder: spill.path().join("spill"), ..ResourceConfig::default() };
        let execution = Execution::new(objects, transactions, clock, random, config).expect("threads start");
        let planner = Planner::new(
            execution.scan_planner(),
            operators::operator_planning(),
            execution.executor().runtime(),
            execution.executor().default_partitions(),
        );
        drop(entered);
        Self { planner, _execution: execution, _spill: spill, runtime }
    }

    /// Plans several queries from text to operators. Prints the median and the longest time, the remaining shards and
    /// the size of the message.
    fn query(&self, state: &CatalogState, what: &str, text: impl Fn(u64) -> String) {
        let state = Arc::new(state.clone());
        let runs = if what.contains("first") { 1 } else { 15 };
        let mut times = Vec::new();
        let mut last = (String::new(), 0);
        for run in 0..runs {
            let text = text(run);
            let context = Arc::new(statement(&state));
            let begun = Instant::now();
            let parsed = self.planner.parse(&text).expect("a statement");
            let planned = self.planner.plan(&parsed[0], &[], &context).expect("a plan");
            let StatementPlan::Query(plan) = planned else { unreachable!("{text} is a query") };
            let stop = CancellationToken::new();
            let operators = self.runtime.block_on(operators::plan_query(&plan, &stop)).expect("operators");
            times.push(begun.elapsed());
            let shown = datafusion::physical_plan::displayable(operators.as_ref()).indent(false).to_string();
            let shards = shown.split("shards=").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or("?");
            last = (shards.to_owned(), message_bytes(&operators).expect("it travels"));
        }
        times.sort_unstable();
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let (median, most) = (ms(times[times.len() / 2]), ms(times[times.len() - 1]));
        println!("{what:<44} {median:>9.2} ms (at most {most:>8.2} ms) {:>6} shards {:>8} bytes", last.0, last.1);
    }
}

fn statement(state: &Arc<CatalogState>) -> StatementContext {
    let role = Arc::clone(state.role(Role::BOOTSTRAP).expect("it is always there"));
    StatementContext {
        has_rows: true,
        commit: types::CommitTs(1),
        time_travel: Arc::new(session_context::NoTimeTravel),
        inputs: Arc::default(),
        arguments: Arc::default(),
        assignments: Arc::default(),
        sequences: Arc::new(session_context::NoSequenceNumbers),
        settings: Arc::new(Settings::default()),
        session_role: Arc::clone(&role),
        role,
        snapshot: Arc::clone(state),
        database: "kiln".to_owned(),
        query_id: QueryId(1),
        statement_us: 1_800_000_000_000_000,
        transaction_us: 1_800_000_000_000_000,
        backend_pid: 1,
        new_oid: Arc::new(|| Oid(30_000)),
        activity: Arc::new(NoActivity),
        random: Arc::new(SeededRandom::new(1)),
        clock: Arc::new(SystemClock::new()),
    }
}

/// Returns the table `events (id bigint, day date, customer bigint, region text)`.
fn events() -> Table {
    let column = |id, name: &str, sql_type| Column {
        id: ColumnId(id),
        name: name.to_owned(),
        sql_type,
        not_null: false,
        default: None,
        missing: None,
        comment: None,
        identity: None,
        sequences: Vec::new(),
    };
    Table {
        oid: TABLE,
        schema: Schema::PUBLIC,
        name: "events".to_owned(),
        owner: Role::BOOTSTRAP,
        columns: vec![
            column(1, "id", SqlType::Int8),
            column(2, "day", SqlType::Date),
            column(3, "customer", SqlType::Int8),
            column(4, "region", SqlType::Text),
        ],
        constraints: Vec::new(),
        distribution: Distribution::Random,
        order: TableOrder::None,
        comment: None,
        next_column: 5,
        storage: Storage::Column,
        indexes: Vec::new(),
        options: Vec::new(),
        temporary: None,
        cache: CachePolicy::default(),
        external: None,
    }
}

/// Returns the metadata of a shard with a million rows: ids and days follow the load order, customers and regions have
/// a narrow range of their own, in no order.
fn shard(number: u64, count: u64, random: &SeededRandom) -> Arc<ShardMeta> {
    let id = ShardId(random.uuid());
    let stats = |column, min: Datum, max: Datum| {
        let mut distinct = Hll::default();
        (0..4).for_each(|_| distinct.add_hash(random.next_u64()));
        ColumnStats {
            column: ColumnId(column),
            nulls: 0,
            nulls_guessed: false,
            min: Some(min),
            max: Some(max),
            bounds_exact: true,
            distinct,
            ascending: column == 1,
            strictly_ascending: column == 1,
            average_run: if column == 1 { 1.0 } else { 1.0 + (number % 97) as f32 },
            heavy_hitters: Vec::new(),
            bytes: BYTES / 4 + random.next_u64() % 1_000_000,
        }
    };
    let int = |value: u64| Datum::Int(value.cast_signed());
    let customer = number * 7_919 % count;
    let region = |end: &str| Datum::Text(format!("region {customer:010} {end}"));
    let bytes = BYTES + random.next_u64() % 1_000_000;
    Arc::new(ShardMeta {
        id,
        object: format!("tables/{TABLE}/{id}.parquet"),
        rows: ROWS,
        bytes,
        tail_bytes: 20_000 + random.next_u64() % 1_000,
        tail_checksum: random.next_u64(),
        columns: vec![
            stats(1, int(number * ROWS), int((number + 1) * ROWS - 1)),
            stats(2, int(number / OF_DAY), int(number / OF_DAY)),
            stats(3, int(customer * 1_000), int(customer * 1_000 + 999)),
            stats(4, region("a"), region("z")),
        ],
        row_groups: vec![RowGroupMeta { rows: ROWS, bytes: bytes - 20_000 }],
        row_ids: RowIds::From(RowId(number * ROWS)),
        buckets: None,
    })
}
