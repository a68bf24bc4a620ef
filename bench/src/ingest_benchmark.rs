//! Ingestion benchmark: COPY, multi-row VALUES, INSERT from arrays, and single-row INSERT with 1, 8 and 64 clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio_postgres::{Client, Statement};
use types::Clock;

use crate::Error;
use crate::measure::server_connection::{CopyIn, Server, Storage, Value, execute, prepare, run_statements};
use crate::measure::{self, CompletedOperation, MeasurementReport, MeasurementTime, run_clients};
use crate::random::RandomGenerator;

/// Rows per COPY.
const COPY_ROWS: i64 = 100_000;
/// Rows per multi-row INSERT.
const BATCH_ROWS: i64 = 1_000;
/// Numbers of clients for single-row INSERT.
const SINGLE_CLIENTS: [usize; 3] = [1, 8, 64];

/// Options of the ingestion benchmark.
#[derive(Debug, Clone)]
pub struct IngestOptions {
    /// Warm-up and measured time of each method.
    pub duration: MeasurementTime,
    /// Clients of the methods that insert many rows at a time.
    pub clients: usize,
    pub storage: Storage,
}

/// Method of inserting rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IngestMethod {
    Copy,
    Values,
    Unnest,
    Single,
}

/// Measures every method on an empty table; `say` receives progress lines.
pub async fn run(
    server: &Server,
    options: &IngestOptions,
    clock: &Arc<dyn Clock>,
    say: &mut dyn FnMut(&str),
) -> Result<MeasurementReport, Error> {
    let mut report = MeasurementReport {
        benchmark: "ingest",
        server: server.version.clone(),
        setting: format!("{} clients where not said otherwise, storage {:?}", options.clients, options.storage),
        measurements: Vec::new(),
        figures: Vec::new(),
        violations: Vec::new(),
    };
    let many = [("copy", IngestMethod::Copy), ("values", IngestMethod::Values), ("unnest", IngestMethod::Unnest)];
    let many = many.map(|(name, method)| (name.to_owned(), method, options.clients));
    let single = SINGLE_CLIENTS.map(|clients| (format!("single, {clients} clients"), IngestMethod::Single, clients));
    for (name, method, clients) in many.into_iter().chain(single) {
        let outcome = measure(server, options, method, clients, clock, &mut report.violations).await?;
        say(&MeasurementReport::table(&name, &outcome));
        report.figures.push((name.clone(), outcome.rows_per_second()));
        report.measurements.push((name, outcome));
    }
    Ok(report)
}

async fn measure(
    server: &Server,
    options: &IngestOptions,
    method: IngestMethod,
    clients: usize,
    clock: &Arc<dyn Clock>,
    violations: &mut Vec<String>,
) -> Result<measure::MeasurementOutcome, Error> {
    let client = server.connect().await?;
    let create = format!(
        "DROP TABLE IF EXISTS readings; CREATE TABLE readings (id bigint PRIMARY KEY, device integer NOT NULL, \
         at timestamptz NOT NULL, value double precision, note text){}",
        server.storage_clause(options.storage)
    );
    run_statements(&client, "creating the table", &create).await?;
    let next = Arc::new(AtomicI64::new(0));
    let mut sources = Vec::with_capacity(clients);
    for number in 0..clients {
        sources.push(IngestClient::connect(server, method, &next, number as u64).await?);
    }
    let outcome = run_clients(sources, options.duration, clock).await;
    let counted = client.query_one("SELECT count(*), count(DISTINCT id) FROM readings", &[]).await;
    let counted = counted.map_err(|source| Error::Server { action: "counting the rows".to_owned(), source })?;
    let (rows, ids): (i64, i64) = (counted.get(0), counted.get(1));
    let given = next.load(Ordering::Relaxed);
    if outcome.errors.is_empty() && outcome.aborted_clients == 0 && (rows, ids) != (given, given) {
        violations.push(format!("{method:?}: {given} rows were acknowledged, {rows} with {ids} ids are there"));
    }
    Ok(outcome)
}

/// Client that inserts rows.
struct IngestClient {
    client: Client,
    method: IngestMethod,
    next: Arc<AtomicI64>,
    random: RandomGenerator,
    /// Prepared INSERT; `None` for COPY.
    insert: Option<Statement>,
}

/// Row of the table `readings`.
struct Reading {
    id: i64,
    device: i32,
    measured_at: f64,
    value: f64,
    note: String,
}

impl IngestClient {
    async fn connect(server: &Server, method: IngestMethod, next: &Arc<AtomicI64>, seed: u64) -> Result<Self, Error> {
        let client = server.connect().await?;
        let sql = match method {
            IngestMethod::Copy => None,
            IngestMethod::Single => Some(insert_statement(1)),
            IngestMethod::Values => Some(insert_statement(BATCH_ROWS)),
            IngestMethod::Unnest => Some(
                "INSERT INTO readings SELECT id, device, to_timestamp(at), value, note FROM \
                 unnest($1::bigint[], $2::integer[], $3::double precision[], $4::double precision[], $5::text[]) \
                 AS r (id, device, at, value, note)"
                    .to_owned(),
            ),
        };
        let insert = match sql {
            Some(sql) => Some(prepare(&client, &sql).await?),
            None => None,
        };
        Ok(Self { client, method, next: Arc::clone(next), random: RandomGenerator::new(seed), insert })
    }

    fn draw_readings(&self, count: i64) -> Vec<Reading> {
        let first = self.next.fetch_add(count, Ordering::Relaxed);
        let reading = |id| Reading {
            id,
            device: self.random.next_below(10_000) as i32,
            measured_at: 1.7e9 + id as f64 / 100.0,
            value: self.random.next_fraction() * 100.0,
            note: self.random.next_text(20),
        };
        (first..first + count).map(reading).collect()
    }

    async fn copy(&self) -> Result<u64, Error> {
        let mut copy = CopyIn::begin(&self.client, "readings").await?;
        for row in self.draw_readings(COPY_ROWS) {
            let (seconds, hundredths) = (row.id / 100 % 60, row.id % 100);
            let (minute, hour, day) = (row.id / 6_000 % 60, row.id / 360_000 % 24, row.id / 8_640_000 % 28 + 1);
            copy.write_row(&format!(
                "{}\t{}\t2026-01-{day:02} {hour:02}:{minute:02}:{seconds:02}.{hundredths:02}+00\t{}\t{}",
                row.id, row.device, row.value, row.note
            ))
            .await?;
        }
        copy.finish().await
    }

    async fn insert(&self, insert: &Statement) -> Result<u64, Error> {
        let rows = self.draw_readings(if self.method == IngestMethod::Single { 1 } else { BATCH_ROWS });
        if self.method != IngestMethod::Unnest {
            let mut given: Vec<&(dyn Value + Sync)> = Vec::with_capacity(rows.len() * 5);
            for row in &rows {
                given.extend([&row.id as &(dyn Value + Sync), &row.device, &row.measured_at, &row.value, &row.note]);
            }
            return execute(&self.client, insert, &given).await;
        }
        let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
        let devices: Vec<i32> = rows.iter().map(|row| row.device).collect();
        let ats: Vec<f64> = rows.iter().map(|row| row.measured_at).collect();
        let numbers: Vec<f64> = rows.iter().map(|row| row.value).collect();
        let notes: Vec<&str> = rows.iter().map(|row| row.note.as_str()).collect();
        execute(&self.client, insert, &[&ids, &devices, &ats, &numbers, &notes]).await
    }
}

/// Returns an INSERT of `rows` rows of parameters.
fn insert_statement(rows: i64) -> String {
    let row = |row: i64| {
        let place = |column: i64| row * 5 + column;
        format!(
            "(${}, ${}, to_timestamp(${}::double precision), ${}, ${})",
            place(1),
            place(2),
            place(3),
            place(4),
            place(5)
        )
    };
    format!("INSERT INTO readings VALUES {}", (0..rows).map(row).collect::<Vec<_>>().join(", "))
}

impl measure::BenchmarkClient for IngestClient {
    async fn run_operation(&mut self) -> Result<CompletedOperation, Error> {
        let (kind, rows) = match &self.insert {
            None => ("copy", self.copy().await?),
            Some(insert) => {
                let kind = match self.method {
                    IngestMethod::Values => "values",
                    IngestMethod::Unnest => "unnest",
                    _ => "single",
                };
                (kind, self.insert(insert).await?)
            }
        };
        Ok(CompletedOperation { kind, retries: 0, rows })
    }
}
