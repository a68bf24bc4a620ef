//! Portals: bound statements that give their rows in parts. DECLARE CURSOR makes the same things by SQL.

use std::sync::Arc;
use std::time::Duration;

use types::{Condition, SqlError};
use value_codec::encode::Format;

use crate::bound::Bound;
use crate::metrics::Kind;
use crate::prepared::Prepared;
use crate::rows::{Columns, Rows};
use crate::started::OpenResult;

/// A statement with its parameters, somewhere between bound and finished.
pub(crate) struct Portal {
    pub(crate) prepared: Arc<Prepared>,
    /// The columns of its rows; `None` where it has none.
    pub(crate) columns: Option<Columns>,
    pub(crate) formats: Vec<Format>,
    pub(crate) progress: Progress,
    pub(crate) life: Life,
    /// Of a cursor, how many the session had declared before.
    pub(crate) declared: Option<u64>,
    /// How long it took to plan, until its first execution has counted that.
    pub(crate) planned_in: Duration,
}

/// How long a portal lives unless it is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    /// To the end of its transaction.
    Transaction,
    /// WITH HOLD: to the end of the session, if its transaction commits. The snapshot it reads stays as long.
    HeldByCommit,
    /// Its transaction has committed.
    Session,
}

/// How far a portal has come.
pub(crate) enum Progress {
    /// The query string was empty.
    Empty,
    /// Nothing has run yet.
    Bound(Bound),
    /// There may be more rows, of a statement of this kind.
    Open(OpenResult, Kind),
    /// Every row was given.
    Finished { word: &'static str },
    /// It ran, and cannot run again.
    Spent,
}

/// The state of a portal after an Execute message.
pub(crate) enum Advance {
    /// To its end; the tag.
    Complete(String),
    /// There may be more rows.
    Suspended,
}

impl Progress {
    /// The time at which the snapshot of its rows was committed; `None` where nothing is read.
    pub(crate) fn looked_us(&self) -> Option<i64> {
        match self {
            Self::Open(OpenResult::Plan { rows, .. }, _) => rows.looked_us(),
            _ => None,
        }
    }
}

impl Portal {
    /// Of an empty query string.
    pub(crate) fn empty(prepared: Arc<Prepared>) -> Self {
        Self {
            prepared,
            columns: None,
            formats: Vec::new(),
            progress: Progress::Empty,
            life: Life::Transaction,
            declared: None,
            planned_in: Duration::ZERO,
        }
    }

    /// Makes a portal of a bound statement; the caller sets the formats.
    pub(crate) fn bound(prepared: Arc<Prepared>, bound: Bound, columns: Option<Columns>) -> Self {
        Self { columns, progress: Progress::Bound(bound), ..Self::empty(prepared) }
    }

    /// A portal over rows already flowing, as DECLARE CURSOR makes it.
    pub(crate) fn cursor(prepared: Arc<Prepared>, rows: Rows, format: Format, life: Life, declared: u64) -> Self {
        let columns = Arc::clone(&rows.columns);
        Self {
            prepared,
            formats: vec![format; columns.len()],
            columns: Some(columns),
            progress: Progress::Open(OpenResult::Plan { rows: Box::new(rows), word: "SELECT" }, Kind::Query),
            life,
            declared: Some(declared),
            planned_in: Duration::ZERO,
        }
    }
}

pub(crate) fn unknown_portal(name: &str) -> SqlError {
    SqlError::new(Condition::InvalidCursorName, format!("portal \"{name}\" does not exist"))
}

pub(crate) fn unknown_cursor(name: &str) -> SqlError {
    SqlError::new(Condition::InvalidCursorName, format!("cursor \"{name}\" does not exist"))
}

pub(crate) fn spent(name: &str) -> SqlError {
    SqlError::new(Condition::ObjectNotInPrerequisiteState, format!("portal \"{name}\" cannot be run"))
}
