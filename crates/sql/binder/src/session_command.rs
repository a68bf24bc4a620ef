//! Statements that concern the session or its transaction alone: the session runs them, no plan is involved.

use cluster_model::Change;
use datafusion::sql::sqlparser::ast;
use syntax::Parsed;
use syntax::statement::{Discard, FetchDirection, TransactionModes};
use types::{Oid, SqlType};

use crate::query_plan::{OutputColumn, QueryPlan};

/// A command to the session.
#[derive(Debug, Clone)]
pub enum SessionCommand {
    /// `SET name = value`; `None` is DEFAULT. The name is known and the value valid when this is made.
    Set {
        name: String,
        value: Option<String>,
        local: bool,
    },
    /// `RESET name`, and all settings without a name.
    Reset(Option<String>),
    /// `SET TRANSACTION`, or with `session` `SET SESSION CHARACTERISTICS AS TRANSACTION`.
    SetTransaction {
        modes: TransactionModes,
        session: bool,
    },
    /// `SET ROLE`; `None` is NONE.
    SetRole {
        role: Option<String>,
        local: bool,
    },
    /// `SET SESSION AUTHORIZATION`; `None` is DEFAULT.
    SetSessionAuthorization {
        role: Option<String>,
        local: bool,
    },
    /// `SHOW`: the rows to answer with; its command tag is `SHOW`.
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
    /// `PREPARE name (types) AS statement`; `None` for a type that is not given.
    Prepare {
        name: String,
        types: Vec<Option<SqlType>>,
        statement: Box<Parsed>,
    },
    /// `EXECUTE name (arguments)`: the planner gives their values once the types are known.
    Execute {
        name: String,
        arguments: Vec<ast::Expr>,
    },
    /// `None` is ALL.
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
    /// `None` is ALL.
    Close(Option<String>),
    Discard(Discard),
    /// Fresh rows are to settle and shards to be made better: those of these tables, or of all that the role owns.
    Vacuum {
        tables: Option<Vec<Oid>>,
    },
    /// A statement about clusters.
    Cluster(ClusterCommand),
    /// CHECK STORAGE: the bucket against the catalog, in rows of [`check_storage_columns`].
    CheckStorage,
    /// A statement that has nothing to do here and says so by succeeding: its command tag (`ANALYZE`, `CHECKPOINT`).
    Nothing(&'static str),
}

/// What is to be done about clusters: no part of the transaction, and none of the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterCommand {
    /// To be made in this order; none of them where one is refused.
    Change { changes: Vec<Change>, tag: &'static str },
    /// Statements of the session run there from now on; `None`: where its role's do.
    Use(Option<String>),
}

/// The columns of CHECK STORAGE.
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
