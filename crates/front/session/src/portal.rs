//! Portals: bound statements that give their rows in parts. DECLARE CURSOR makes the same things by SQL.

use std::sync::Arc;
use std::time::Duration;

use binder::Planned;
use catalog::CatalogState;
use session_context::ScalarValue;
use types::{Condition, SqlError};
use value_codec::encode::Format;

use crate::kept_program::KeptProgram;
use crate::prepared::Prepared;
use crate::rows::{Columns, Rows};

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
    Bound(Box<Bound>),
    /// Nothing has run yet, and its statement has a program.
    ByKey { program: Arc<KeptProgram>, values: Vec<ScalarValue> },
    /// It cannot be planned; it may be why, that it has been committed before.
    Unplanned { values: Vec<ScalarValue>, error: Box<SqlError> },
    /// Rows are flowing, with the tag's word.
    Rows { rows: Box<Rows>, word: &'static str },
    /// FETCH from a cursor, in parts; `left` rows are still wanted (`None`: all).
    Fetching { cursor: String, left: Option<u64> },
    /// Every row was given.
    Finished { word: &'static str },
    /// It ran, and cannot run again.
    Spent,
}

impl Progress {
    /// The time at which the snapshot of its rows was committed; `None` where nothing is read.
    pub(crate) fn looked_us(&self) -> Option<i64> {
        match self {
            Self::Rows { rows, .. } => rows.looked_us(),
            _ => None,
        }
    }
}

/// A plan with its parameters, and what it takes to make it again.
pub(crate) struct Bound {
    pub(crate) planned: Box<Planned>,
    pub(crate) values: Vec<ScalarValue>,
    /// What it was planned on.
    pub(crate) state: Arc<CatalogState>,
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

    /// Of a plan with its parameters; the caller says the formats.
    pub(crate) fn bound(prepared: Arc<Prepared>, bound: Bound, columns: Option<Columns>) -> Self {
        Self {
            prepared,
            columns,
            formats: Vec::new(),
            progress: Progress::Bound(Box::new(bound)),
            life: Life::Transaction,
            declared: None,
            planned_in: Duration::ZERO,
        }
    }

    /// Of a statement that cannot be planned, with its parameters.
    pub(crate) fn unplanned(prepared: Arc<Prepared>, values: Vec<ScalarValue>, error: SqlError) -> Self {
        Self { progress: Progress::Unplanned { values, error: Box::new(error) }, ..Self::empty(prepared) }
    }

    /// Of a statement that has a program, with its parameters; the caller says the formats.
    pub(crate) fn by_key(prepared: Arc<Prepared>, program: Arc<KeptProgram>, values: Vec<ScalarValue>) -> Self {
        let columns = prepared.columns.clone();
        let progress = Progress::ByKey { program, values };
        let (life, planned_in) = (Life::Transaction, Duration::ZERO);
        Self { prepared, columns, formats: Vec::new(), progress, life, declared: None, planned_in }
    }

    /// A portal over rows already flowing, as DECLARE CURSOR makes it.
    pub(crate) fn cursor(prepared: Arc<Prepared>, rows: Rows, format: Format, life: Life, declared: u64) -> Self {
        let columns = Arc::clone(&rows.columns);
        Self {
            prepared,
            formats: vec![format; columns.len()],
            columns: Some(columns),
            progress: Progress::Rows { rows: Box::new(rows), word: "SELECT" },
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
