//! Earlier states of the catalog, which AS OF reads.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use catalog::CatalogState;
use types::{CommitTs, Moment, Oid, SqlResult};

/// Keeps what a state of the past names from being deleted.
pub type Pin = Arc<dyn Any + Send + Sync>;

/// A state of the past; its objects are there as long as the pin lives.
pub struct PastState {
    pub state: Arc<CatalogState>,
    pub pin: Pin,
}

/// Where a statement finds the states of the past that it names.
pub trait Past: Debug + Send + Sync {
    /// The state at the moment. `None` where it is not at hand: planning fails then, and whoever plans gets the state and plans again.
    fn state(&self, moment: Moment) -> Option<PastState>;

    /// The latest drop of a table of that name within the retention, if there was one.
    ///
    /// # Errors
    /// Where it cannot be found out.
    fn last_drop(&self, schema: Oid, name: &str) -> SqlResult<Option<LastDrop>>;

    /// How the past is kept; `None` where it is not.
    fn history(&self) -> Option<HistoryRow>;

    /// What became of transactions that clients have named: of a role's, or of all; of those with a token, or of all.
    ///
    /// # Errors
    /// Where it cannot be found out: that there is no row would mean that nothing was committed.
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

/// What was committed under a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedRow {
    /// Of the last writing statement.
    pub command_tag: String,
    /// Of all writing statements together.
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

/// No past, for tests and tools.
#[derive(Debug, Default)]
pub struct NoPast;

impl Past for NoPast {
    fn state(&self, _moment: Moment) -> Option<PastState> {
        None
    }

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
