//! Running statements and the log of completed ones.

use std::time::Duration;

use session_context::SessionRow;

use super::super::definition::TableDefinition;
use super::super::rows::{Rows, row};
use super::super::source::Source;
use super::view;

pub(super) const TABLES: &[TableDefinition] = &[
    view(
        15_005,
        "query",
        "pid int4, query_id int8, query text, memory_bytes int8, memory_bytes_most int8, memory_bytes_max int8, \
         cluster name, worker text, state text, waiting_ms float8, working_ms float8",
        queries,
    ),
    view(
        15_009,
        "log_query",
        "started timestamptz, query_id int8, pid int4, user_name name, database_name name, application_name text, \
         cluster name, worker text, query text, parse_ms float8, plan_ms float8, assemble_ms float8, compile_ms float8, \
         acquire_resources_ms float8, run_ms float8, client_ms float8, waiting_ms float8, working_ms float8, \
         total_ms float8, thread_ms float8, memory_bytes_most int8, outcome text, sqlstate text",
        log,
    ),
];

/// Adds running statements, and completed ones whose memory is not released yet.
fn queries(source: &Source<'_>, rows: &mut Rows) {
    let is_there = |session: &SessionRow| session.state == "active" || 0 < session.memory_bytes;
    for session in source.context.activity.sessions().into_iter().filter(is_there) {
        let statement = session.statement.as_ref();
        row!(rows, pid: session.pid, query_id: session.query_id, query: &session.query, memory_bytes: session.memory_bytes,
            memory_bytes_most: session.memory_bytes_peak, memory_bytes_max: session.memory_bytes_max,
            cluster: statement.and_then(|statement| statement.cluster.clone()),
            worker: statement.and_then(|statement| statement.worker.clone()),
            state: statement.map(|statement| statement.state),
            waiting_ms: statement.map(|statement| milliseconds(statement.waiting)),
            working_ms: statement.map(|statement| milliseconds(statement.working)));
    }
}

fn log(source: &Source<'_>, rows: &mut Rows) {
    for ended in source.context.activity.log() {
        let [parse, plan, assemble, compile, acquire, run, client] = ended.phases;
        let (waiting, working) = (acquire + client, parse + plan + assemble + compile + run);
        row!(rows, started: ended.started_us, query_id: ended.query_id, pid: ended.pid, user_name: ended.role,
            database_name: ended.database, application_name: ended.application_name, cluster: ended.cluster,
            worker: ended.worker, query: ended.query, parse_ms: milliseconds(parse), plan_ms: milliseconds(plan),
            assemble_ms: milliseconds(assemble), compile_ms: milliseconds(compile),
            acquire_resources_ms: milliseconds(acquire), run_ms: milliseconds(run), client_ms: milliseconds(client),
            waiting_ms: milliseconds(waiting), working_ms: milliseconds(working),
            total_ms: milliseconds(waiting + working), thread_ms: milliseconds(ended.thread_time),
            memory_bytes_most: ended.memory_bytes_peak, outcome: ended.outcome, sqlstate: ended.sqlstate);
    }
}

pub(super) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
