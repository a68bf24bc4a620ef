//! `pg_stats` and `pg_stat_user_tables`: column statistics and row counts, from the statistics of the shards.

use super::super::row_builder::{Cell, RowBuilder, row};
use super::super::row_source::RowSource;
use super::super::sys::format_datum;
use super::super::table_definition::{TableDefinition, no_rows};
use super::definition_constructors::view;

const TABLE_ACTIVITY_COLUMNS: &str = "relid oid, schemaname name, relname name, seq_scan int8, seq_tup_read int8, idx_scan int8, \
     idx_tup_fetch int8, n_tup_ins int8, n_tup_upd int8, n_tup_del int8, n_tup_hot_upd int8, n_live_tup int8, \
     n_dead_tup int8 = 0, n_mod_since_analyze int8 = 0, n_ins_since_vacuum int8 = 0, last_vacuum timestamptz, \
     last_autovacuum timestamptz, last_analyze timestamptz, last_autoanalyze timestamptz, vacuum_count int8 = 0, \
     autovacuum_count int8 = 0, analyze_count int8 = 0, autoanalyze_count int8 = 0";
const INDEX_ACTIVITY_COLUMNS: &str = "relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_scan int8, \
     idx_tup_read int8, idx_tup_fetch int8";

pub(super) const TABLES: &[TableDefinition] = &[
    view(
        12_053,
        "pg_stats",
        "Statistics of columns, from the statistics of the shards.",
        "schemaname name, tablename name, attname name, inherited bool = f, null_frac float4, avg_width int4, \
         n_distinct float4, most_common_vals anyarray, most_common_freqs float4[], histogram_bounds anyarray, \
         correlation float4, most_common_elems anyarray, most_common_elem_freqs float4[], elem_count_histogram float4[]",
        column_statistics,
    ),
    view(
        12_146,
        "pg_stat_all_tables",
        "Tables with their numbers of rows; counters of activity are NULL.",
        TABLE_ACTIVITY_COLUMNS,
        table_activity,
    ),
    view(
        12_155,
        "pg_stat_user_tables",
        "Tables with their numbers of rows; counters of activity are NULL.",
        TABLE_ACTIVITY_COLUMNS,
        table_activity,
    ),
    view(12_151, "pg_stat_sys_tables", "Activity of system tables; always empty.", TABLE_ACTIVITY_COLUMNS, no_rows),
    view(12_186, "pg_stat_all_indexes", "Activity of indexes; always empty.", INDEX_ACTIVITY_COLUMNS, no_rows),
    view(12_191, "pg_stat_user_indexes", "Activity of indexes; always empty.", INDEX_ACTIVITY_COLUMNS, no_rows),
    view(
        12_168,
        "pg_statio_user_tables",
        "Block reads of tables; always empty.",
        "relid oid, schemaname name, relname name, heap_blks_read int8, heap_blks_hit int8, idx_blks_read int8, \
         idx_blks_hit int8, toast_blks_read int8, toast_blks_hit int8, tidx_blks_read int8, tidx_blks_hit int8",
        no_rows,
    ),
];

#[expect(clippy::cast_precision_loss, reason = "fractions and counts shown as float4 are estimates")]
fn column_statistics(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for table in source.state().tables() {
        let shards = source.state().shards(table.oid);
        for column in table.columns.iter().filter(|_| shards.rows > 0) {
            let summary = shards.summary(column);
            let total = shards.rows as f64;
            // PostgreSQL represents a number of distinct values that grows with the table as a negative fraction of its
            // rows.
            let distinct = if summary.unique { -1.0 } else { summary.distinct as f64 };
            let (values, counts): (Vec<String>, Vec<f64>) = summary
                .heavy_hitters
                .iter()
                .map(|(value, n)| (format_datum(value, &column.sql_type), *n as f64 / total))
                .unzip();
            let common = (!values.is_empty()).then(|| (format!("{{{}}}", values.join(",")), Cell::from(counts)));
            let (values, counts) = common.map_or((Cell::Null, Cell::Null), |(values, counts)| (values.into(), counts));
            row!(rows, schemaname: source.schema_name(table.schema), tablename: &table.name, attname: &column.name,
                null_frac: summary.nulls as f64 / total, avg_width: summary.bytes / shards.rows.max(1),
                n_distinct: distinct, most_common_vals: values, most_common_freqs: counts,
                correlation: summary.ascending.then_some(1.0));
        }
    }
}

fn table_activity(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for table in source.state().tables().filter(|table| table.external.is_none()) {
        row!(rows, relid: table.oid, schemaname: source.schema_name(table.schema), relname: &table.name,
            n_live_tup: source.state().rows(table.oid).len());
    }
}
