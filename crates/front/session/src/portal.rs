//! Portals: bound statements whose rows are fetched in parts. DECLARE CURSOR creates them too.

use std::sync::Arc;
use std::time::Duration;

use types::{Condition, SqlError};
use value_codec::encode::Format;

use crate::bound_statement::BoundStatement;
use crate::metrics::StatementKind;
use crate::prepared_statement::PreparedStatement;
use crate::result_rows::{Columns, Rows};
use crate::started_statement::OpenResult;

/// Bound statement and the progress of its execution.
pub(crate) struct Portal {
    pub(crate) prepared: Arc<PreparedStatement>,
    /// Columns of the result; `None` if it returns no rows.
    pub(crate) columns: Option<Columns>,
    pub(crate) formats: Vec<Format>,
    pub(crate) progress: PortalProgress,
    pub(crate) lifetime: PortalLifetime,
    /// Number of cursors that the session had declared before this one; `None` for a portal of Bind.
    pub(crate) cursor_number: Option<u64>,
    /// Planning time in Bind, until the first execution has counted it.
    pub(crate) planning_time: Duration,
}

/// Lifetime of a portal that is not closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PortalLifetime {
    /// Ends with its transaction.
    Transaction,
    /// Cursor WITH HOLD in its transaction: lives to the end of the session if that commits, and so does the snapshot
    /// it reads.
    HoldUntilCommit,
    /// Cursor WITH HOLD whose transaction has committed: ends with the session.
    Session,
}

/// Progress of a portal.
pub(crate) enum PortalProgress {
    /// Empty query string: there is nothing to run.
    Empty,
    /// Bound, not run yet.
    Bound(BoundStatement),
    /// Open: there may be more rows, of a statement of this kind.
    Open(OpenResult, StatementKind),
    /// Finished: all rows were sent; Execute completes at once, with this word in its tag.
    Finished { tag_word: &'static str },
    /// Failed, or complete without rows: it cannot run a second time.
    NotRunnable,
}

/// State of a portal after an Execute message.
pub(crate) enum ExecuteOutcome {
    /// Complete, with the command tag.
    Complete(String),
    /// Suspended at the row limit: there may be more rows.
    Suspended,
}

impl PortalProgress {
    /// Returns the time of the snapshot that its rows are read from; `None` if nothing is being read.
    pub(crate) fn snapshot_us(&self) -> Option<i64> {
        match self {
            Self::Open(OpenResult::Plan { rows, .. }, _) => rows.snapshot_us(),
            _ => None,
        }
    }
}

impl Portal {
    /// Creates the portal of an empty query string.
    pub(crate) fn empty(prepared: Arc<PreparedStatement>) -> Self {
        Self {
            prepared,
            columns: None,
            formats: Vec::new(),
            progress: PortalProgress::Empty,
            lifetime: PortalLifetime::Transaction,
            cursor_number: None,
            planning_time: Duration::ZERO,
        }
    }

    /// Creates the portal of a bound statement; the caller sets the formats.
    pub(crate) fn bound(prepared: Arc<PreparedStatement>, bound: BoundStatement, columns: Option<Columns>) -> Self {
        Self { columns, progress: PortalProgress::Bound(bound), ..Self::empty(prepared) }
    }

    /// Creates the portal of DECLARE CURSOR, with open rows.
    pub(crate) fn cursor(
        prepared: Arc<PreparedStatement>,
        rows: Rows,
        format: Format,
        life: PortalLifetime,
        declared: u64,
    ) -> Self {
        let columns = Arc::clone(&rows.columns);
        Self {
            prepared,
            formats: vec![format; columns.len()],
            columns: Some(columns),
            progress: PortalProgress::Open(
                OpenResult::Plan { rows: Box::new(rows), tag_word: "SELECT" },
                StatementKind::Query,
            ),
            lifetime: life,
            cursor_number: Some(declared),
            planning_time: Duration::ZERO,
        }
    }
}

pub(crate) fn unknown_portal(name: &str) -> SqlError {
    SqlError::new(Condition::InvalidCursorName, format!("portal \"{name}\" does not exist"))
}

pub(crate) fn unknown_cursor(name: &str) -> SqlError {
    SqlError::new(Condition::InvalidCursorName, format!("cursor \"{name}\" does not exist"))
}

pub(crate) fn not_runnable_error(name: &str) -> SqlError {
    SqlError::new(Condition::ObjectNotInPrerequisiteState, format!("portal \"{name}\" cannot be run"))
}
