//! Clusters, their workers, and events of both.

use super::super::row_builder::{Cell, RowBuilder, row};
use super::super::row_source::RowSource;
use super::super::table_definition::{Columns, TableDefinition};
use super::query::milliseconds;
use super::view;

pub(super) const TABLES: &[TableDefinition] = &[
    TableDefinition {
        schema: "sys",
        name: "cluster",
        description: "A cluster.",
        oid: 15_006,
        kind: "v",
        columns: Columns::WithClusterOptions(
            &[
                ("name name", "Name."),
                ("state text", "State: `running`, `resizing`, `starting`, `suspending`, `suspended` or `dropping`."),
                ("node_count int4", "Workers that it should have while it is not suspended."),
                ("ready_workers int4", "Workers that take statements."),
            ],
            &[
                ("owner name", "Role that may change and drop it."),
                ("max_running int4", "Statements that run at once at most; others wait."),
                ("running int4", "Statements that run."),
                ("queued int4", "Statements that wait."),
                ("admitted int8", "Statements admitted since the server started."),
                ("waited int8", "Admitted statements that had to wait."),
                ("longest_wait_ms float8", "Longest wait, in milliseconds."),
                ("created timestamptz", "Time of its creation."),
                ("created_by name", "Role that created it."),
                ("changed timestamptz", "Time of its last change."),
                ("changed_by name", "Role that changed it last."),
            ],
        ),
        rows: clusters,
    },
    view(
        15_007,
        "worker",
        "A worker of a cluster, also one that left recently.",
        &[
            ("cluster name", "Cluster; NULL if it was dropped."),
            ("worker text", "Identifier."),
            ("slot int4", "Number of its place in the cluster, from 0."),
            ("state text", "State: `starting`, `ready`, `draining` or `gone`."),
            ("hung bool", "True if it does not answer."),
            ("address text", "Network address; NULL for a worker in the server."),
            ("version text", "Version of Kiln that it runs."),
            ("cores float8", "Cores that it may use."),
            ("memory_bytes int8", "Memory for its statements."),
            ("memory_bytes_used int8", "Memory that its statements use now."),
            ("cache_bytes int8", "Bytes in its memory cache."),
            ("cache_hits int8", "Block reads that its memory cache answered, since its start."),
            ("cache_misses int8", "Block reads that it did not answer."),
            ("ahead_shards int8", "Shards that cache pre-warming opened."),
            ("ahead_blocks int8", "Blocks that cache pre-warming read."),
            (
                "ahead_dropped int8",
                "Shards that cache pre-warming skipped, because the worker was busy or unreachable.",
            ),
            ("running int4", "Statements that run on it."),
            ("detail text", "Why it does not start, or why it ended."),
        ],
        workers,
    ),
    view(
        15_008,
        "cluster_event",
        "An event of a cluster or worker.",
        &[
            ("at timestamptz", "Time."),
            ("cluster name", "Cluster."),
            ("what text", "Event, such as `created`, `resumed`, `worker_ready` or `worker_failed`."),
            ("by name", "Role or program that caused it; NULL for the server itself."),
            ("detail text", "Details."),
        ],
        events,
    ),
];

fn clusters(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for cluster in source.context.activity.clusters() {
        let spec = cluster.spec;
        let options = spec.options().map(|(option, value)| (option.name, Cell::from(value)));
        row!(rows, name: &spec.name, state: cluster.state.map(|state| state.to_string()), ready_workers: cluster.ready_workers,
            owner: source.role_name(spec.owner), max_running: cluster.max_running, running: cluster.running_statements, queued: cluster.queued_statements,
            admitted: cluster.admitted_statements, waited: cluster.waited_statements, longest_wait_ms: milliseconds(cluster.longest_wait),
            created: cluster.created_us, created_by: cluster.created_by, changed: cluster.changed_us,
            changed_by: cluster.changed_by, ..options);
    }
}

/// Adds a row for each worker; workers that are threads of one process share its cache.
fn workers(source: &RowSource<'_>, rows: &mut RowBuilder) {
    let tiers = source.context.activity.cache_tiers();
    let tables = tiers.iter().filter(|tier| tier.tier == "memory").flat_map(|tier| tier.tables.iter());
    let cached: u64 = tables.map(|(_, counts)| counts.bytes).sum();
    for known in source.context.activity.workers() {
        let (worker, uses) = (known.worker, known.cache_uses);
        let has_cached = if known.shares_cache { cached } else { worker.cache_bytes };
        row!(rows, cluster: known.cluster, worker: worker.id.to_string(), slot: worker.slot, state: worker.state.to_string(),
            hung: worker.hung, address: worker.address, version: worker.version,
            cores: f64::from(worker.spec.share.millicores) / 1e3, memory_bytes: worker.spec.share.memory_bytes,
            memory_bytes_used: known.memory_used, cache_bytes: has_cached, cache_hits: uses.map(|uses| uses.hits),
            cache_misses: uses.map(|uses| uses.misses), ahead_shards: uses.map(|uses| uses.prewarmed_shards),
            ahead_blocks: uses.map(|uses| uses.prewarmed_blocks), ahead_dropped: uses.map(|uses| uses.prewarming_skipped),
            running: worker.running, detail: worker.detail);
    }
}

fn events(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for event in source.context.activity.cluster_events() {
        row!(rows, at: event.at, cluster: event.cluster, what: event.kind.to_string(), by: event.author, detail: event.detail);
    }
}
