//! The definitions of all settings: name, built-in value, valid values and description.

use std::collections::HashMap;
use std::sync::LazyLock;

#[cfg(test)]
mod tests;

/// Definition of a setting.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) name: &'static str,
    /// Built-in value, in canonical form.
    pub(super) boot: &'static str,
    pub(super) kind: ValueKind,
    pub(super) source: ChangeLevel,
    pub(super) description: &'static str,
}

/// Values that a setting can have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ValueKind {
    Bool,
    Integer {
        min: i64,
        max: i64,
        unit: Option<&'static str>,
    },
    Enum(&'static [&'static str]),
    Text,
    /// Text whose characters other than printable ASCII become `?`.
    PrintableText,
    /// Text of at most so many bytes.
    ShortText(usize),
    /// List of names.
    Names,
    Zone,
    DateStyle,
    /// Encoding UTF8 only, under any of its names.
    Encoding,
    /// Only the built-in value, in one of these spellings: Kiln supports no other.
    Fixed(&'static [&'static str]),
}

/// Level at which a setting can be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeLevel {
    /// By a session.
    Session,
    /// Read-only for sessions.
    Internal,
}

/// Finds the setting with this name in lower case.
pub(super) fn find(lower: &str) -> Option<&'static Definition> {
    static BY_NAME: LazyLock<HashMap<String, &'static Definition>> = LazyLock::new(|| {
        DEFINITIONS.iter().map(|definition| (definition.name.to_ascii_lowercase(), definition)).collect()
    });
    BY_NAME.get(lower).copied()
}

impl Definition {
    /// Returns `vartype` of `pg_settings`.
    pub(super) fn vartype(&self) -> &'static str {
        match self.kind {
            ValueKind::Bool => "bool",
            ValueKind::Integer { .. } => "integer",
            ValueKind::Enum(_) => "enum",
            ValueKind::Fixed(["on" | "off", ..]) => "bool",
            ValueKind::Fixed(_) if self.boot.parse::<i64>().is_ok() => "integer",
            _ => "string",
        }
    }

    pub(super) fn unit(&self) -> Option<&'static str> {
        match self.kind {
            ValueKind::Integer { unit, .. } => unit,
            _ => None,
        }
    }

    /// Returns `context` of `pg_settings`.
    pub(super) fn context(&self) -> &'static str {
        match self.source {
            ChangeLevel::Session => "user",
            ChangeLevel::Internal => "internal",
        }
    }
}

const fn setting(name: &'static str, boot: &'static str, kind: ValueKind, description: &'static str) -> Definition {
    Definition { name, boot, kind, source: ChangeLevel::Session, description }
}

const fn internal(name: &'static str, boot: &'static str, description: &'static str) -> Definition {
    Definition { name, boot, kind: ValueKind::Text, source: ChangeLevel::Internal, description }
}

const ISOLATION: ValueKind =
    ValueKind::Enum(&["read uncommitted", "read committed", "repeatable read", "serializable"]);
const MILLISECONDS: ValueKind = ValueKind::Integer { min: 0, max: 2_147_483_647, unit: Some("ms") };
const KILOBYTES: ValueKind = ValueKind::Integer { min: 0, max: 2_147_483_647, unit: Some("kB") };
const FIXED_ON: ValueKind = ValueKind::Fixed(&["on"]);
const FIXED_OFF: ValueKind = ValueKind::Fixed(&["off"]);

pub(super) const DEFINITIONS: &[Definition] = &[
    setting("application_name", "", ValueKind::PrintableText, "Name of the application, shown in pg_stat_activity."),
    setting("array_nulls", "on", FIXED_ON, "NULL without quotes in an array's text is a NULL element."),
    setting(
        "backslash_quote",
        "safe_encoding",
        ValueKind::Fixed(&["safe_encoding"]),
        "Whether \\' is a quote in strings.",
    ),
    internal("block_size", "8192", "Size of a disk block; of no meaning here."),
    setting("bytea_output", "hex", ValueKind::Fixed(&["hex"]), "Text form of bytea."),
    setting("check_function_bodies", "on", ValueKind::Bool, "There are no functions to check."),
    setting("client_encoding", "UTF8", ValueKind::Encoding, "Encoding of the client's text."),
    setting(
        "client_min_messages",
        "notice",
        ValueKind::Enum(&["debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error"]),
        "Least severe messages that are sent to the client.",
    ),
    setting("cursor_tuple_fraction", "0.1", ValueKind::Fixed(&["0.1"]), "Of no effect here."),
    setting(
        "DateStyle",
        "ISO, MDY",
        ValueKind::DateStyle,
        "Text form of dates, and the order of day and month in input.",
    ),
    setting("default_statistics_target", "100", ValueKind::Fixed(&["100"]), "Statistics are exact here."),
    setting("default_table_access_method", "heap", ValueKind::Fixed(&["heap"]), "Tables are stored one way."),
    setting("default_tablespace", "", ValueKind::Fixed(&[""]), "There are no tablespaces."),
    setting(
        "default_text_search_config",
        "pg_catalog.simple",
        ValueKind::Fixed(&["pg_catalog.simple"]),
        "No text search.",
    ),
    setting("default_toast_compression", "pglz", ValueKind::Fixed(&["pglz"]), "Of no meaning here."),
    setting("default_transaction_deferrable", "off", ValueKind::Bool, "Of no effect here."),
    setting("default_transaction_isolation", "read committed", ISOLATION, "Isolation of new transactions."),
    setting("default_transaction_read_only", "off", ValueKind::Bool, "Whether new transactions may only read."),
    setting("enable_indexscan", "on", ValueKind::Bool, "Whether statements find rows of a few keys by an index."),
    setting("escape_string_warning", "on", ValueKind::Bool, "No such warning is given."),
    setting("extra_float_digits", "1", ValueKind::Integer { min: 1, max: 3, unit: None }, "Floats are shown exactly."),
    setting(
        "idle_in_transaction_session_timeout",
        "0",
        MILLISECONDS,
        "Longest time a session may wait for its client within a transaction; 0 is no limit.",
    ),
    setting(
        "idle_session_timeout",
        "0",
        MILLISECONDS,
        "Longest time a session may wait for its client outside of transactions; 0 is no limit.",
    ),
    internal("in_hot_standby", "off", "Whether the server is a standby."),
    internal("integer_datetimes", "on", "Times are integers."),
    setting("IntervalStyle", "postgres", ValueKind::Fixed(&["postgres"]), "Text form of intervals."),
    internal("is_superuser", "off", "Whether the current role is a superuser."),
    setting("jit", "off", ValueKind::Bool, "There is no JIT compiler; of no effect."),
    setting("kiln.batch_size", "8192", ValueKind::Integer { min: 256, max: 65_536, unit: None }, "Rows per batch."),
    setting(
        "kiln.direct_load_rows",
        "10000",
        // The upper bound limits memory: fresh rows are held there.
        ValueKind::Integer { min: 0, max: 10_000_000, unit: None },
        "Most rows that one statement adds or changes in memory, as fresh rows; more are written to shards directly.",
    ),
    setting("kiln.engine", "on", ValueKind::Bool, "Whether queries run on Kiln's own engine where it can."),
    setting(
        "kiln.fragment_cache",
        "on",
        ValueKind::Bool,
        "Whether queries cache their aggregates of each shard and reuse those of earlier queries.",
    ),
    setting(
        "kiln.join_exchange",
        "cost",
        ValueKind::Enum(&["cost", "shuffle", "broadcast"]),
        "Exchange of joins on the workers of a cluster: shuffle both sides, broadcast one side, or choose by cost.",
    ),
    setting("kiln.optimizer", "on", ValueKind::Bool, "Whether joins are ordered by cost."),
    setting(
        "kiln.priority",
        "normal",
        ValueKind::Enum(&["low", "normal", "high"]),
        "Share of the threads of a query: high priority gets four times the share of normal, low a quarter.",
    ),
    setting(
        "kiln.query_memory",
        "0",
        KILOBYTES,
        "Memory limit of the operators of one query, which spill beyond it; 0 is the memory that all queries share.",
    ),
    setting(
        super::STATEMENT_TOKEN,
        "",
        ValueKind::ShortText(200),
        "The client's token for the next transaction: a repetition returns the first outcome and writes nothing.",
    ),
    setting(
        "kiln.target_partitions",
        "0",
        ValueKind::Integer { min: 0, max: 1024, unit: None },
        "Partitions of a query that run in parallel; 0 is one per thread, or fewer if kiln.query_memory is small.",
    ),
    internal("lc_collate", "C", "Order of text: by code point."),
    internal("lc_ctype", "C", "Classes of characters."),
    setting("lc_messages", "C", ValueKind::Fixed(&["C", "en_US.UTF-8", "en_US.utf8", ""]), "Language of messages."),
    setting("lc_monetary", "C", ValueKind::Fixed(&["C"]), "Form of money."),
    setting("lc_numeric", "C", ValueKind::Fixed(&["C"]), "Form of numbers."),
    setting("lc_time", "C", ValueKind::Fixed(&["C"]), "Form of dates."),
    setting("lock_timeout", "0", MILLISECONDS, "Longest time a statement waits for a lock; 0 is no limit."),
    setting(
        "log_min_duration_statement",
        "-1",
        ValueKind::Integer { min: -1, max: 2_147_483_647, unit: Some("ms") },
        "Duration from which statements are logged; -1 is never.",
    ),
    internal("max_connections", "500", "Most sessions at a time."),
    internal("max_identifier_length", "63", "Longest name, in bytes."),
    internal("max_index_keys", "32", "Most columns of a key."),
    setting(
        "max_snapshot_age",
        "86400000",
        MILLISECONDS,
        "Longest time that a transaction, a statement or a cursor may use its snapshot; 0 is no limit.",
    ),
    setting(
        "min_parallel_table_scan_size",
        "8192",
        KILOBYTES,
        "Size from which a query's scans are divided among workers; a smaller query runs on one worker.",
    ),
    setting("password_encryption", "scram-sha-256", ValueKind::Fixed(&["scram-sha-256"]), "Hash of stored passwords."),
    setting(
        "plan_cache_mode",
        "auto",
        ValueKind::Enum(&["auto", "force_custom_plan"]),
        "Plans of queries without parameters are cached until the next commit, unless custom plans are forced.",
    ),
    setting("quote_all_identifiers", "off", FIXED_OFF, "Names are quoted where they need to be."),
    setting("row_security", "on", ValueKind::Bool, "There are no row policies."),
    setting("search_path", "\"$user\", public", ValueKind::Names, "Where names without a schema are looked up."),
    internal("server_encoding", "UTF8", "Encoding of the database."),
    internal("server_version", crate::SERVER_VERSION, "The PostgreSQL version that Kiln answers as."),
    internal("server_version_num", "150014", "The same as a number."),
    internal("session_authorization", "kiln", "The session's role."),
    setting("session_replication_role", "origin", ValueKind::Fixed(&["origin"]), "There are no triggers."),
    internal("ssl", "on", "Whether TLS is offered."),
    setting("standard_conforming_strings", "on", FIXED_ON, "Backslashes in strings are plain."),
    setting("statement_timeout", "0", MILLISECONDS, "Longest time a statement may run; 0 is no limit."),
    setting("synchronize_seqscans", "on", ValueKind::Bool, "Of no meaning here."),
    setting("synchronous_commit", "on", FIXED_ON, "Commits are durable when they are acknowledged."),
    setting("TimeZone", "UTC", ValueKind::Zone, "Zone in which timestamptz is shown and read."),
    setting("timezone_abbreviations", "Default", ValueKind::Fixed(&["Default"]), "Abbreviations of zones."),
    setting("transaction_deferrable", "off", ValueKind::Bool, "Of no effect here."),
    setting("transaction_isolation", "read committed", ISOLATION, "Isolation of the current transaction."),
    setting("transaction_read_only", "off", ValueKind::Bool, "Whether the current transaction may only read."),
    setting("transform_null_equals", "off", FIXED_OFF, "expr = NULL is NULL."),
    setting("vacuum_freeze_min_age", "50000000", ValueKind::Fixed(&["50000000"]), "Of no meaning here."),
    setting("xmloption", "content", ValueKind::Fixed(&["content"]), "There is no xml."),
];
