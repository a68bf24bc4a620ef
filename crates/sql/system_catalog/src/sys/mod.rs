//! `sys`: Kiln's own system tables.
//!
//! - `mod.rs`: tables, shards and their statistics, the history in object storage, the cache,
//! - `query.rs`: running and completed statements; `outcome.rs`: transactions with client tokens,
//! - `cluster.rs`: clusters and workers; `service.rs`: background services.

mod cluster;
mod outcome;
mod query;
mod service;

use catalog::{Distribution, TableOrder};
use shards::{CacheStats, Datum};
use types::SqlType;

use super::definition::TableDefinition;
use super::rows::{Rows, row};
use super::source::{Source, column_names, find_column};

const fn view(
    oid: u32,
    name: &'static str,
    columns: &'static str,
    rows: fn(&Source<'_>, &mut Rows),
) -> TableDefinition {
    TableDefinition { schema: "sys", name, oid, kind: "v", columns, rows }
}

const TABLES: &[TableDefinition] = &[
    view(
        15_000,
        "table",
        "schema_name name, table_name name, table_oid oid, rows int8, bytes int8, shards int8, sample_rows int8, \
         distribution text, row_order text",
        tables,
    ),
    view(
        15_001,
        "shard",
        "schema_name name, table_name name, shard text, object text, rows int8, bytes int8, row_groups int4",
        shards,
    ),
    view(
        15_002,
        "shard_column",
        "schema_name name, table_name name, shard text, column_name name, nulls int8, min text, max text, \
         bounds_exact bool, distinct_estimate int8, ascending bool, strictly_ascending bool, average_run float4, bytes int8",
        shard_columns,
    ),
    view(
        15_003,
        "history",
        "newest_record int8, copied_record int8, waiting_bytes int8, last_upload timestamptz, \
         upload_failures int8, last_error text, checkpoint_record int8, last_checkpoint timestamptz",
        history,
    ),
    view(
        15_004,
        "cache",
        "tier text, schema_name name, table_name name, blocks int8, bytes int8, bytes_max int8, hits int8, misses int8, \
         evictions int8",
        cache,
    ),
];

pub(super) fn definitions() -> impl Iterator<Item = &'static TableDefinition> {
    TABLES.iter().chain(query::TABLES).chain(cluster::TABLES).chain(outcome::TABLES).chain(service::TABLES)
}

fn tables(source: &Source<'_>, rows: &mut Rows) {
    for table in source.state().tables() {
        let (all, stored) = (source.state().rows(table.oid), source.state().shards(table.oid));
        let order = match &table.order {
            TableOrder::None => None,
            TableOrder::Sort(_) => {
                Some(format!("SORT ON ({})", column_names(table, &table.order_columns()).join(", ")))
            }
            TableOrder::Cluster(ids) => Some(format!("CLUSTER ON ({})", column_names(table, ids).join(", "))),
        };
        let distribution = match &table.distribution {
            Distribution::Random => "RANDOM".to_owned(),
            Distribution::Replicate => "REPLICATE".to_owned(),
            Distribution::On(ids) => format!("DISTRIBUTE ON ({})", column_names(table, ids).join(", ")),
        };
        row!(rows, schema_name: source.schema_name(table.schema), table_name: &table.name, table_oid: table.oid,
            rows: all.len(), bytes: stored.bytes, shards: stored.shards.len(),
            sample_rows: stored.sample.as_ref().map_or(0, |sample| sample.rows), distribution: distribution, row_order: order);
    }
}

fn shards(source: &Source<'_>, rows: &mut Rows) {
    for table in source.state().tables() {
        for shard in source.state().shards(table.oid).shards.iter() {
            row!(rows, schema_name: source.schema_name(table.schema), table_name: &table.name,
                shard: shard.id.to_string(), object: &shard.object, rows: shard.rows, bytes: shard.bytes,
                row_groups: shard.row_groups.len());
        }
    }
}

fn shard_columns(source: &Source<'_>, rows: &mut Rows) {
    for table in source.state().tables() {
        let shards = &source.state().shards(table.oid).shards;
        for (number, shard) in shards.iter().enumerate() {
            for stats in &shard.columns {
                // Columns dropped since the shard was written have no name any more.
                let Some(column) = find_column(table, stats.column) else { continue };
                let text = |bound: &Option<Datum>| bound.as_ref().map(|value| format_datum(value, &column.sql_type));
                row!(rows, schema_name: source.schema_name(table.schema), table_name: &table.name,
                    shard: shard.id.to_string(), column_name: &column.name, nulls: stats.nulls, min: text(&stats.min),
                    max: text(&stats.max), bounds_exact: stats.bounds_exact, distinct_estimate: shards.distinct(number, stats.column),
                    ascending: stats.ascending, strictly_ascending: stats.strictly_ascending,
                    average_run: f64::from(stats.average_run), bytes: stats.bytes);
            }
        }
    }
}

fn history(source: &Source<'_>, rows: &mut Rows) {
    if let Some(status) = source.context.time_travel.history() {
        row!(rows, newest_record: status.newest_record,
            copied_record: status.copied_record, waiting_bytes: status.waiting_bytes, last_upload: status.last_upload_us,
            upload_failures: status.failures, last_error: status.last_error, checkpoint_record: status.checkpoint_record,
            last_checkpoint: status.last_checkpoint_us);
    }
}

/// Adds a row for each tier and table, and one without a table for the totals of dropped tables.
fn cache(source: &Source<'_>, rows: &mut Rows) {
    for tier in source.context.activity.cache_tiers() {
        let mut dropped = CacheStats::default();
        let mut add = |names: Option<(&str, &str)>, counts: CacheStats| {
            row!(rows, tier: tier.tier, schema_name: names.map(|names| names.0), table_name: names.map(|names| names.1),
                blocks: counts.blocks, bytes: counts.bytes, bytes_max: tier.bytes_max, hits: counts.hits,
                misses: counts.misses, evictions: counts.evictions);
        };
        for (table, counts) in &tier.tables {
            match source.state().table(*table) {
                Some(table) => add(Some((source.schema_name(table.schema), &table.name)), *counts),
                None => dropped += *counts,
            }
        }
        add(None, dropped);
    }
}

/// Formats a value of the statistics as SQL text.
pub(super) fn format_datum(value: &Datum, sql_type: &SqlType) -> String {
    use types::text;
    let mut out = String::new();
    match (value, sql_type) {
        (Datum::Bool(value), _) => return value.to_string(),
        (Datum::Int(value), SqlType::Date) => text::format_date(i32::try_from(*value).unwrap_or(i32::MAX), &mut out),
        (Datum::Int(value), SqlType::Time) => text::format_time(*value, &mut out),
        (Datum::Int(value), SqlType::Timestamp | SqlType::TimestampTz) => text::format_timestamp(*value, &mut out),
        (Datum::Int(value), _) => return value.to_string(),
        (Datum::Decimal(value), SqlType::Numeric { scale, .. }) => text::format_numeric(*value, *scale, &mut out),
        (Datum::Decimal(value), _) => return value.to_string(),
        (Datum::Float(value), _) => text::format_float8(*value, &mut out),
        (Datum::Text(value), _) => return value.clone(),
        (Datum::Bytes(value), _) => text::format_bytea(value, &mut out),
    }
    out
}
