//! Clusters, their workers, and events of both.

use super::super::definition::TableDefinition;
use super::super::rows::{Rows, row};
use super::super::source::Source;
use super::query::milliseconds;
use super::view;

pub(super) const TABLES: &[TableDefinition] = &[
    view(
        15_006,
        "cluster",
        "name name, state text, node_count int4, ready_workers int4, hardware_instance text, wlm_profile text, \
         auto_suspend int4, auto_resume bool, max_spill_pct int4, max_cache_pct int4, owner name, max_running int4, \
         running int4, queued int4, admitted int8, waited int8, longest_wait_ms float8, created timestamptz, \
         created_by name, changed timestamptz, changed_by name",
        clusters,
    ),
    view(
        15_007,
        "worker",
        "cluster name, worker text, slot int4, state text, hung bool, address text, version text, cores float8, \
         memory_bytes int8, memory_bytes_used int8, cache_bytes int8, cache_hits int8, cache_misses int8, \
         ahead_shards int8, ahead_blocks int8, ahead_dropped int8, running int4, detail text",
        workers,
    ),
    view(15_008, "cluster_event", "at timestamptz, cluster name, what text, by name, detail text", events),
];

fn clusters(source: &Source<'_>, rows: &mut Rows) {
    for cluster in source.context.activity.clusters() {
        let spec = cluster.spec;
        row!(rows, name: spec.name, state: cluster.state.map(|state| state.to_string()),
            node_count: spec.node_count, ready_workers: cluster.ready, hardware_instance: spec.hardware_instance,
            wlm_profile: spec.wlm_profile, auto_suspend: spec.auto_suspend, auto_resume: spec.auto_resume,
            max_spill_pct: spec.max_spill_pct, max_cache_pct: spec.max_cache_pct, owner: source.role_name(spec.owner),
            max_running: cluster.max_running, running: cluster.running, queued: cluster.queued,
            admitted: cluster.admitted, waited: cluster.waited, longest_wait_ms: milliseconds(cluster.longest_wait),
            created: cluster.created_us, created_by: cluster.created_by, changed: cluster.changed_us,
            changed_by: cluster.changed_by);
    }
}

/// Adds a row for each worker; workers that are threads of one process share its cache.
fn workers(source: &Source<'_>, rows: &mut Rows) {
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

fn events(source: &Source<'_>, rows: &mut Rows) {
    for event in source.context.activity.cluster_events() {
        row!(rows, at: event.at, cluster: event.cluster, what: event.what.to_string(), by: event.who, detail: event.detail);
    }
}
