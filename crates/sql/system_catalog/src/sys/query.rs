//! Running statements and the log of completed ones.

use std::time::Duration;

use session_context::SessionRow;

use super::super::row_builder::{RowBuilder, row};
use super::super::row_source::RowSource;
use super::super::table_definition::TableDefinition;
use super::view;

pub(super) const TABLES: &[TableDefinition] = &[
    view(
        15_005,
        "query",
        "A statement that runs, or has just ended and still uses memory.",
        &[
            ("pid int4", "Number of its session, for `pg_cancel_backend`."),
            ("query_id int8", "Number of the statement, in hexadecimal in the log."),
            ("query text", "Text."),
            ("memory_bytes int8", "Memory that it uses now."),
            ("memory_bytes_most int8", "Most memory that it used."),
            ("memory_bytes_max int8", "Its memory limit; NULL without a limit of its own."),
            ("cluster name", "Cluster that runs it; NULL if it needs none."),
            ("worker text", "Worker that runs it; NULL before it has one."),
            ("state text", "State: `queued` while it waits for its cluster, else `running`."),
            ("waiting_ms float8", "Time that it waited for its cluster and its client, in milliseconds."),
            ("working_ms float8", "Time that it worked, in milliseconds."),
        ],
        queries,
    ),
    view(
        15_009,
        "log_query",
        "A statement that has ended; `--query-log-rows` of them are remembered.",
        &[
            ("started timestamptz", "Start."),
            ("query_id int8", "Number of the statement, in hexadecimal in the log."),
            ("pid int4", "Number of its session."),
            ("user_name name", "Role."),
            ("database_name name", "Database."),
            ("application_name text", "Name that the client gave itself."),
            ("cluster name", "Cluster that ran it; NULL if it needed none."),
            ("worker text", "Worker that ran it."),
            ("query text", "Text, cut after 1,024 bytes, without passwords."),
            ("parse_ms float8", "Time of parsing, in milliseconds."),
            ("plan_ms float8", "Time of name resolution and optimization."),
            ("assemble_ms float8", "Time in which its operators were made."),
            ("compile_ms float8", "Time in which its plan was compiled for the engine."),
            ("acquire_resources_ms float8", "Time that it waited for its cluster."),
            ("run_ms float8", "Time that it ran."),
            ("client_ms float8", "Time that it waited for its client to take rows."),
            ("waiting_ms float8", "`acquire_resources_ms` and `client_ms` together."),
            ("working_ms float8", "All other phases together."),
            ("total_ms float8", "`waiting_ms` and `working_ms` together."),
            ("thread_ms float8", "Time on query threads, of all threads together."),
            ("memory_bytes_most int8", "Most memory that it used."),
            ("outcome text", "Outcome: `DONE`, `CANCEL` or `ERROR`."),
            ("sqlstate text", "SQLSTATE of its error; NULL if it succeeded."),
        ],
        log,
    ),
];

/// Adds running statements, and completed ones whose memory is not released yet.
fn queries(source: &RowSource<'_>, rows: &mut RowBuilder) {
    let is_there = |session: &SessionRow| session.state == "active" || 0 < session.memory_bytes;
    for session in source.context.activity.sessions().into_iter().filter(is_there) {
        let statement = session.statement.as_ref();
        row!(rows, pid: session.pid, query_id: session.query_id, query: &session.query, memory_bytes: session.memory_bytes,
            memory_bytes_most: session.memory_bytes_peak, memory_bytes_max: session.memory_bytes_max,
            cluster: statement.and_then(|statement| statement.cluster.clone()),
            worker: statement.and_then(|statement| statement.worker.clone()),
            state: statement.map(|statement| statement.state),
            waiting_ms: statement.map(|statement| milliseconds(statement.waiting_time)),
            working_ms: statement.map(|statement| milliseconds(statement.working_time)));
    }
}

fn log(source: &RowSource<'_>, rows: &mut RowBuilder) {
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
