//! Earlier states of the catalog, which AS OF reads.

use std::any::Any;
use std::fmt::{self, Debug};
use std::sync::Arc;

use catalog::CatalogState;
use types::{CommitTs, Oid, SqlResult};

/// Keeps the objects of an earlier snapshot from being deleted while it lives.
pub type Pin = Arc<dyn Any + Send + Sync>;

/// An earlier snapshot of the catalog; its objects are there as long as the pin lives.
#[derive(Clone)]
pub struct PastState {
    pub state: Arc<CatalogState>,
    pub pin: Pin,
}

impl Debug for PastState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PastState").finish_non_exhaustive()
    }
}

/// Knows what was committed and dropped before.
pub trait Past: Debug + Send + Sync {
    /// The latest drop of a table of that name within the retention, if there was one.
    ///
    /// # Errors
    /// The storage's, if the log of drops cannot be read.
    fn last_drop(&self, schema: Oid, name: &str) -> SqlResult<Option<LastDrop>>;

    /// The state of the archived log; `None` where none is kept.
    fn history(&self) -> Option<HistoryRow>;

    /// The outcomes of transactions with a token: those of one role and one token, or of all.
    ///
    /// # Errors
    /// The storage's, if outcomes cannot be read: no row would mean that nothing was committed.
    fn statement_outcomes(&self, role: Option<Oid>, token: Option<&str>) -> SqlResult<Vec<StatementOutcomeRow>>;
}

/// A row of `sys.statement_outcome`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementOutcomeRow {
    pub token: String,
    pub role: Oid,
    /// `None` while its transaction runs.
    pub committed: Option<CommittedRow>,
}

/// A transaction that was committed under a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedRow {
    /// The tag of the last writing statement.
    pub command_tag: String,
    /// Rows that all its writing statements wrote.
    pub rows: u64,
    pub statements: usize,
    /// Microseconds since 1970.
    pub at_us: i64,
    pub commit: CommitTs,
}

/// The row of `sys.history`. Times are microseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryRow {
    pub newest_record: u64,
    pub copied_record: u64,
    pub waiting_bytes: u64,
    pub last_upload_us: Option<i64>,
    pub failures: u64,
    pub last_error: Option<String>,
    pub checkpoint_record: Option<u64>,
    pub last_checkpoint_us: Option<i64>,
}

/// When a table was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastDrop {
    pub table: Oid,
    /// By this commit.
    pub commit: CommitTs,
}

/// No earlier snapshots, for tests and tools.
#[derive(Debug, Default)]
pub struct NoPast;

impl Past for NoPast {
    fn last_drop(&self, _schema: Oid, _name: &str) -> SqlResult<Option<LastDrop>> {
        Ok(None)
    }

    fn history(&self) -> Option<HistoryRow> {
        None
    }

    fn statement_outcomes(&self, _role: Option<Oid>, _token: Option<&str>) -> SqlResult<Vec<StatementOutcomeRow>> {
        Ok(Vec::new())
    }
}
