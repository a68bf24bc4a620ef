//! `pg_stat_activity`, `pg_stat_progress_copy` and the other views of the server's current activity.

use super::super::row_builder::{RowBuilder, row};
use super::super::row_source::RowSource;
use super::super::table_definition::{TableDefinition, no_rows};
use super::database::DATABASE_OID;
use super::definition_constructors::view;

pub(super) const TABLES: &[TableDefinition] = &[
    view(
        12_223,
        "pg_stat_activity",
        "Sessions: role, client, state and statement.",
        "datid oid, datname name, pid int4, leader_pid int4, usesysid oid, usename name, application_name text, \
         client_addr inet, client_hostname text, client_port int4, backend_start timestamptz, xact_start timestamptz, \
         query_start timestamptz, state_change timestamptz, wait_event_type text, wait_event text, state text, \
         backend_xid xid, backend_xmin xid, query_id int8, query text, backend_type text = 'client backend'",
        sessions,
    ),
    view(
        12_302,
        "pg_stat_progress_copy",
        "COPY statements that run, with the bytes and rows so far.",
        "pid int4, datid oid, datname name, relid oid, command text, type text, bytes_processed int8, bytes_total int8, \
         tuples_processed int8, tuples_excluded int8",
        copies,
    ),
    view(
        12_073,
        "pg_locks",
        "Locks; always empty.",
        "locktype text, database oid, relation oid, page int4, tuple int2, virtualxid text, transactionid xid, \
         classid oid, objid oid, objsubid int2, virtualtransaction text, pid int4, mode text, granted bool, \
         fastpath bool, waitstart timestamptz",
        no_rows,
    ),
    view(
        12_240,
        "pg_stat_database",
        "The database with its number of sessions; counters are NULL.",
        "datid oid, datname name, numbackends int4, xact_commit int8, xact_rollback int8, blks_read int8, blks_hit int8, \
         tup_returned int8, tup_fetched int8, tup_inserted int8, tup_updated int8, tup_deleted int8, conflicts int8, \
         temp_files int8, temp_bytes int8, deadlocks int8, checksum_failures int8, checksum_last_failure timestamptz, \
         blk_read_time float8, blk_write_time float8, session_time float8, active_time float8, \
         idle_in_transaction_time float8, sessions int8, sessions_abandoned int8, sessions_fatal int8, \
         sessions_killed int8, stats_reset timestamptz",
        databases,
    ),
    view(
        12_231,
        "pg_stat_ssl",
        "Use of TLS by sessions; always empty.",
        "pid int4, ssl bool, version text, cipher text, bits int4, client_dn text, client_serial int8, issuer_dn text",
        no_rows,
    ),
    view(
        12_236,
        "pg_stat_gssapi",
        "Use of GSSAPI by sessions; always empty.",
        "pid int4, gss_authenticated bool, principal text, encrypted bool",
        no_rows,
    ),
    view(12_130, "pg_config", "Options of the build; always empty.", "name text, setting text", no_rows),
];

fn sessions(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for session in source.context.activity.sessions() {
        let wait_event_type = session.wait_event.map(|_| "IPC");
        row!(rows, datid: DATABASE_OID, datname: &session.database, wait_event_type: wait_event_type,
            wait_event: session.wait_event, pid: session.pid, usesysid: session.role_oid,
            usename: &session.role, application_name: &session.application_name, client_addr: session.client_addr,
            client_port: session.client_port, backend_start: session.backend_start_us, xact_start: session.transaction_start_us,
            query_start: session.query_start_us, state_change: session.state_change_us, state: session.state,
            query_id: session.query_id, query: &session.query);
    }
}

fn copies(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for copy in source.context.activity.copies() {
        row!(rows, pid: copy.pid, datid: DATABASE_OID, datname: &source.context.database, relid: copy.table,
            command: copy.command, r#type: copy.source, bytes_processed: copy.bytes_processed,
            bytes_total: copy.bytes_total, tuples_processed: copy.rows_processed, tuples_excluded: copy.rows_excluded);
    }
}

fn databases(source: &RowSource<'_>, rows: &mut RowBuilder) {
    row!(rows, datid: DATABASE_OID, datname: &source.context.database, numbackends: source.context.activity.sessions().len());
}
