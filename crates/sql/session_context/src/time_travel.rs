//! Time travel: earlier catalog states for AS OF, drops that can be reverted, outcomes of transactions with a token.

use std::any::Any;
use std::fmt::{self, Debug};
use std::sync::Arc;

use catalog::CatalogState;
use types::{CommitTs, Oid, SqlResult};

/// Guard that keeps the objects of an earlier snapshot from being deleted while it lives.
pub type SnapshotPin = Arc<dyn Any + Send + Sync>;

/// Earlier snapshot of the catalog; its objects exist at least as long as the pin lives.
#[derive(Clone)]
pub struct HistoricalState {
    pub state: Arc<CatalogState>,
    pub pin: SnapshotPin,
}

impl Debug for HistoricalState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HistoricalState").finish_non_exhaustive()
    }
}

/// Source of information about earlier commits: drops, the archived log, and outcomes of transactions with a token.
pub trait TimeTravel: Debug + Send + Sync {
    /// Returns the latest drop of a table of that name within the retention, if there was one.
    ///
    /// # Errors
    /// Errors of the storage, if the log of drops cannot be read.
    fn last_drop(&self, schema: Oid, name: &str) -> SqlResult<Option<LastDrop>>;

    /// Returns the state of the archived write-ahead log; `None` if there is no archive.
    fn history(&self) -> Option<HistoryRow>;

    /// Returns the outcomes of transactions with a token, of one role and one token or of all.
    ///
    /// # Errors
    /// Errors of the storage, if outcomes cannot be read: a missing row would mean that nothing was committed.
    fn statement_outcomes(&self, role: Option<Oid>, token: Option<&str>) -> SqlResult<Vec<StatementOutcomeRow>>;
}

/// Row of `sys.statement_outcome`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementOutcomeRow {
    pub token: String,
    pub role: Oid,
    /// Committed transaction; `None` while it runs.
    pub committed: Option<CommittedTransaction>,
}

/// Transaction that was committed under a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedTransaction {
    /// Command tag of the last writing statement.
    pub command_tag: String,
    /// Rows that all writing statements wrote.
    pub rows: u64,
    /// Number of writing statements.
    pub statements: usize,
    /// Time of the commit, in microseconds since 1970.
    pub at_us: i64,
    pub commit: CommitTs,
}

/// Row of `sys.history`. Times are microseconds since 1970.
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

/// Latest drop of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastDrop {
    pub table: Oid,
    /// Commit that dropped the table.
    pub commit: CommitTs,
}

/// Source without earlier commits, for tests and tools.
#[derive(Debug, Default)]
pub struct NoTimeTravel;

impl TimeTravel for NoTimeTravel {
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
