//! `sys`: Kiln's own system tables.
//!
//! - `mod.rs`: tables, shards and their statistics, the history in object storage, the cache,
//! - `datum_text.rs`: values of statistics as text,
//! - `query.rs`: running and completed statements; `transaction_outcome.rs`: transactions with client tokens,
//! - `cluster.rs`: clusters and workers; `service.rs`: background services.

mod cluster;
mod datum_text;
mod query;
mod service;
mod transaction_outcome;

use catalog::{Distribution, TableOrder};
use shards::{CacheStats, Datum};

use super::row_builder::{RowBuilder, row};
use super::row_source::{RowSource, column_names, find_column};
use super::table_definition::{Columns, TableDefinition};

pub(super) use datum_text::format_datum;

const fn view(
    oid: u32,
    name: &'static str,
    description: &'static str,
    columns: &'static [(&'static str, &'static str)],
    rows: fn(&RowSource<'_>, &mut RowBuilder),
) -> TableDefinition {
    TableDefinition {
        schema: "sys",
        name,
        description,
        oid,
        kind: "v",
        columns: Columns::WithDescriptions(columns),
        rows,
    }
}

const TABLES: &[TableDefinition] = &[
    view(
        15_000,
        "table",
        "A table, with its size and layout.",
        &[
            ("schema_name name", "Schema."),
            ("table_name name", "Table."),
            ("table_oid oid", "OID of the table, as in `pg_class`."),
            ("rows int8", "Rows, flushed or not."),
            ("bytes int8", "Bytes of its Parquet files."),
            ("shards int8", "Parquet files."),
            ("sample_rows int8", "Rows in the sample that the optimizer estimates with."),
            (
                "distribution text",
                "How rows are distributed among workers: `RANDOM`, `REPLICATE` or `DISTRIBUTE ON (…)`.",
            ),
            ("row_order text", "Order of rows in files: `SORT ON (…)`, `CLUSTER ON (…)`, or NULL for none."),
        ],
        tables,
    ),
    view(
        15_001,
        "shard",
        "A shard: one Parquet file of a table.",
        &[
            ("schema_name name", "Schema."),
            ("table_name name", "Table."),
            ("shard text", "Identifier of the shard."),
            ("object text", "Name of the file in the storage."),
            ("rows int8", "Rows, deleted ones included."),
            ("bytes int8", "Bytes of the file."),
            ("row_groups int4", "Row groups of the file."),
        ],
        shards,
    ),
    view(
        15_002,
        "shard_column",
        "A column of a shard, with its statistics.",
        &[
            ("schema_name name", "Schema."),
            ("table_name name", "Table."),
            ("shard text", "Identifier of the shard."),
            ("column_name name", "Column."),
            ("nulls int8", "NULLs."),
            ("min text", "Lower bound of the values; NULL if there is none."),
            ("max text", "Upper bound of the values; NULL if there is none."),
            ("bounds_exact bool", "True if the bounds are values of the column."),
            ("distinct_estimate int8", "Estimate of the number of distinct values."),
            ("ascending bool", "True if no value is smaller than the one before."),
            ("strictly_ascending bool", "True if every value is greater than the one before."),
            ("average_run float4", "Average number of equal values in succession."),
            ("bytes int8", "Bytes of the column in the file."),
        ],
        shard_columns,
    ),
    view(
        15_003,
        "history",
        "The archived log of the server: how far commits are copied to the storage.",
        &[
            ("newest_record int8", "Number of the newest commit record."),
            ("copied_record int8", "Number of the newest record that is in the storage."),
            ("waiting_bytes int8", "Bytes of records that are not in the storage yet."),
            ("last_upload timestamptz", "Time of the last copy."),
            ("upload_failures int8", "Failed copies and checkpoints since the start; each is retried."),
            ("last_error text", "Last failure; NULL after the next success."),
            ("checkpoint_record int8", "Newest record in the newest checkpoint."),
            ("last_checkpoint timestamptz", "Time of the last checkpoint."),
        ],
        history,
    ),
    view(
        15_004,
        "cache",
        "A table in a tier of the column cache; a row without a table has what dropped tables used.",
        &[
            ("tier text", "Tier: `memory` and `disk` for column blocks, `fragment` for cached aggregates of shards."),
            ("schema_name name", "Schema."),
            ("table_name name", "Table; NULL for dropped tables."),
            ("blocks int8", "Blocks in the cache."),
            ("bytes int8", "Bytes of these blocks."),
            ("bytes_max int8", "Size of the tier."),
            ("hits int8", "Reads that the tier answered, since the start."),
            ("misses int8", "Reads that it did not answer."),
            ("evictions int8", "Blocks that were removed to make room."),
        ],
        cache,
    ),
];

pub(super) fn definitions() -> impl Iterator<Item = &'static TableDefinition> {
    TABLES.iter().chain(query::TABLES).chain(cluster::TABLES).chain(transaction_outcome::TABLES).chain(service::TABLES)
}

fn tables(source: &RowSource<'_>, rows: &mut RowBuilder) {
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

fn shards(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for table in source.state().tables() {
        for shard in source.state().shards(table.oid).shards.iter() {
            row!(rows, schema_name: source.schema_name(table.schema), table_name: &table.name,
                shard: shard.id.to_string(), object: &shard.object, rows: shard.rows, bytes: shard.bytes,
                row_groups: shard.row_groups.len());
        }
    }
}

fn shard_columns(source: &RowSource<'_>, rows: &mut RowBuilder) {
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

fn history(source: &RowSource<'_>, rows: &mut RowBuilder) {
    if let Some(status) = source.context.time_travel.history() {
        row!(rows, newest_record: status.newest_record,
            copied_record: status.copied_record, waiting_bytes: status.waiting_bytes, last_upload: status.last_upload_us,
            upload_failures: status.failures, last_error: status.last_error, checkpoint_record: status.checkpoint_record,
            last_checkpoint: status.last_checkpoint_us);
    }
}

/// Adds a row for each tier and table, and one without a table for the totals of dropped tables.
fn cache(source: &RowSource<'_>, rows: &mut RowBuilder) {
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
