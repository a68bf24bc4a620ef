//! Commands that the session runs itself, without a plan.

use cluster_model::Change;
use datafusion::sql::sqlparser::ast;
use syntax::ParsedStatement;
use syntax::statement::{Discard, FetchDirection, TransactionModes};
use types::{Oid, SqlType};

use crate::query_plan::{OutputColumn, QueryPlan};

/// Command to the session.
#[derive(Debug, Clone)]
pub enum SessionCommand {
    /// `SET name = value`; `None` means DEFAULT. Name and value have been validated.
    Set {
        name: String,
        value: Option<String>,
        local: bool,
    },
    /// `RESET name`; `None` resets all settings.
    Reset(Option<String>),
    /// `SET TRANSACTION`, or with `session` `SET SESSION CHARACTERISTICS AS TRANSACTION`.
    SetTransaction {
        modes: TransactionModes,
        session: bool,
    },
    /// `SET ROLE`; `None` means NONE.
    SetRole {
        role: Option<String>,
        local: bool,
    },
    /// `SET SESSION AUTHORIZATION`; `None` means DEFAULT.
    SetSessionAuthorization {
        role: Option<String>,
        local: bool,
    },
    /// `SHOW`: query of the result; the command tag is `SHOW`.
    Show(Box<QueryPlan>),
    Begin(TransactionModes),
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
    },
    Savepoint(String),
    RollbackTo(String),
    Release(String),
    /// `PREPARE name (types) AS statement`; `None` for a type that is not declared.
    Prepare {
        name: String,
        types: Vec<Option<SqlType>>,
        statement: Box<ParsedStatement>,
    },
    /// `EXECUTE name (arguments)`; the planner evaluates the arguments once the parameter types are resolved.
    Execute {
        name: String,
        arguments: Vec<ast::Expr>,
    },
    /// `DEALLOCATE`; `None` means ALL.
    Deallocate(Option<String>),
    Declare {
        name: String,
        query: Box<QueryPlan>,
        hold: bool,
        scroll: Option<bool>,
        binary: bool,
    },
    Fetch {
        cursor: String,
        direction: FetchDirection,
    },
    Move {
        cursor: String,
        direction: FetchDirection,
    },
    /// `CLOSE`; `None` means ALL.
    Close(Option<String>),
    Discard(Discard),
    /// `VACUUM`: flush rows to Parquet and compact shards, of these tables or of all that the role owns.
    Vacuum {
        tables: Option<Vec<Oid>>,
    },
    /// Statement about clusters.
    Cluster(ClusterCommand),
    /// `CHECK STORAGE`: compare the bucket with the catalog; rows as in [`check_storage_columns`].
    CheckStorage,
    /// Statement without an effect in Kiln, which succeeds: its command tag (`ANALYZE`, `CHECKPOINT`).
    NoEffect(&'static str),
}

/// Command about clusters, which is neither part of the transaction nor of the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterCommand {
    /// Changes applied in this order; all are rejected if one is.
    Change { changes: Vec<Change>, tag: &'static str },
    /// `USE CLUSTER`: cluster for the session's next statements; `None` means that of its role.
    Use(Option<String>),
}

/// Returns the columns of CHECK STORAGE.
#[must_use]
pub fn check_storage_columns() -> Vec<OutputColumn> {
    let columns = [
        ("class", SqlType::Text),
        ("object", SqlType::Text),
        ("objects", SqlType::Int8),
        ("bytes", SqlType::Int8),
        ("kept_until", SqlType::TimestampTz),
        ("modified", SqlType::TimestampTz),
    ];
    let column =
        |(name, sql_type): (&str, SqlType)| OutputColumn { name: name.to_owned(), sql_type, table: None, column: None };
    columns.into_iter().map(column).collect()
}
