//! Version, start time and state of the server.

use settings::SERVER_VERSION;

use super::function_declaration::{FunctionDeclaration, function};
use crate::row_builder::Cell;
use functions::catalog_entry;

pub(super) const FUNCTIONS: &[FunctionDeclaration] = &[
    function("version", "version of Kiln, and of the PostgreSQL that it follows", 0..=0, "text", |_| {
        let kiln = env!("CARGO_PKG_VERSION");
        Ok(Cell::Text(format!("PostgreSQL {SERVER_VERSION} (Kiln {kiln}) on {}", std::env::consts::ARCH)))
    })
    .in_catalog(&[catalog_entry(89, "", "text").stable()]),
    function("pg_is_in_recovery", "is the server in recovery?", 0..=0, "bool", |_| Ok(Cell::Bool(false)))
        .in_catalog(&[catalog_entry(3810, "", "bool").volatile()]),
    function("pg_is_wal_replay_paused", "is the replay of the write-ahead log paused?", 0..=0, "bool", |_| {
        Ok(Cell::Bool(false))
    })
    .in_catalog(&[catalog_entry(3073, "", "bool").volatile()]),
    function("pg_postmaster_start_time", "server start time", 0..=0, "timestamptz", |call| {
        Ok(call.context.activity.started_us().into())
    })
    .in_catalog(&[catalog_entry(2560, "", "timestamptz").stable()]),
    function("pg_conf_load_time", "configuration load time", 0..=0, "timestamptz", |call| {
        Ok(call.context.activity.started_us().into())
    })
    .in_catalog(&[catalog_entry(2034, "", "timestamptz").stable()]),
    function("kiln_current_snapshot", "number of the snapshot that the statement reads", 0..=0, "int8", |call| {
        Ok(Cell::Int(i64::try_from(call.context.commit.0).unwrap_or(i64::MAX)))
    }),
    function("txid_current", "get current transaction ID", 0..=0, "int8", |call| {
        Ok(Cell::Int(transaction_id(call.context.transaction_us)))
    })
    .in_catalog(&[catalog_entry(2943, "", "int8").stable()]),
    function("pg_current_xact_id", "get current transaction ID", 0..=0, "int8", |call| {
        Ok(Cell::Int(transaction_id(call.context.transaction_us)))
    }),
    function("pg_tablespace_location", "tablespace location", 1..=1, "text", |_| Ok(Cell::Text(String::new())))
        .in_catalog(&[catalog_entry(3778, "oid", "text").stable()]),
    function("pg_relation_filenode", "filenode identifier of relation", 1..=1, "oid", |call| {
        Ok(call.relation(0)?.map(|relation| relation.oid).into())
    })
    .in_catalog(&[catalog_entry(2999, "regclass", "oid").stable()]),
    function("pg_stat_get_numscans", "number of scans done for a table or index", 1..=1, "int8", |_| Ok(Cell::Int(0)))
        .in_catalog(&[catalog_entry(1928, "oid", "int8").stable()]),
    function("pg_blocking_pids", "process IDs of sessions that block a session", 1..=1, "int4[]", |_| {
        Ok(Cell::List(Vec::new()))
    })
    .in_catalog(&[catalog_entry(2561, "int4", "_int4").volatile()]),
];

/// Returns a number that identifies a transaction and increases: its start time, because Kiln numbers only commits.
fn transaction_id(transaction_us: i64) -> i64 {
    transaction_us
}
