//! The earlier states that a statement reads.

use std::collections::HashMap;
use std::sync::Arc;

use history::HistoryError;
use parking_lot::Mutex;
use session_context::{CommittedRow, HistoryRow, LastDrop, Past, PastState, StatementOutcomeRow};
use storage_error::from_transaction;
use txn::{Snapshot, Transactions};
use types::{Condition, Moment, Oid, SqlError, SqlResult};

use crate::planning::Planning;
use crate::session::Session;

/// Those of one statement: the planner asks, the session gets what is not there and lets it plan again.
#[derive(Debug)]
pub(crate) struct Pasts {
    transactions: Arc<Transactions>,
    known: Mutex<HashMap<Moment, Snapshot>>,
    wanted: Mutex<Option<Moment>>,
}

impl Pasts {
    pub(crate) fn new(transactions: &Arc<Transactions>) -> Arc<Self> {
        let (known, wanted) = (Mutex::default(), Mutex::default());
        Arc::new(Self { transactions: Arc::clone(transactions), known, wanted })
    }

    /// As new.
    pub(crate) fn clear(&mut self) {
        self.known.get_mut().clear();
        *self.wanted.get_mut() = None;
    }

    /// The statement is over: who still reads earlier states holds them.
    pub(crate) fn forget(&self) {
        self.known.lock().clear();
    }
}

impl Past for Pasts {
    fn state(&self, moment: Moment) -> Option<PastState> {
        if let Some(snapshot) = self.known.lock().get(&moment) {
            return Some(PastState { state: Arc::clone(&snapshot.state), pin: Arc::new(snapshot.clone()) });
        }
        *self.wanted.lock() = Some(moment);
        None
    }

    fn last_drop(&self, schema: Oid, name: &str) -> SqlResult<Option<LastDrop>> {
        let last = self.transactions.last_drop(schema, name).map_err(from_transaction)?;
        Ok(last.map(|last| LastDrop { table: last.table, commit: last.commit }))
    }

    fn history(&self) -> Option<HistoryRow> {
        self.transactions.history_status().map(|status| HistoryRow {
            newest_record: status.log.newest,
            copied_record: status.log.copied,
            waiting_bytes: status.log.waiting_bytes,
            last_upload_us: status.last_upload_us,
            failures: status.failures,
            last_error: status.last_error,
            checkpoint_record: status.checkpoint,
            last_checkpoint_us: status.last_checkpoint_us,
        })
    }

    fn statement_outcomes(&self, role: Option<Oid>, token: Option<&str>) -> SqlResult<Vec<StatementOutcomeRow>> {
        let known = self.transactions.outcomes(role, token).map_err(from_transaction)?;
        let rows = known.into_iter().map(|known| StatementOutcomeRow {
            token: known.token.text.to_string(),
            role: known.token.role,
            committed: known.outcome.map(|outcome| CommittedRow {
                command_tag: outcome.statements.last().map_or_else(String::new, |last| last.tag.clone()),
                rows: outcome.statements.iter().map(|written| written.rows).sum(),
                statements: outcome.statements.len(),
                at_us: outcome.at_us,
                commit: outcome.commit,
            }),
        });
        Ok(rows.collect())
    }
}

impl Session {
    /// Plans by `step`, again and again until all that it asks for is there: states of the past, files of external tables.
    pub(crate) async fn with_facts<T: Send + 'static>(
        &mut self,
        step: impl Fn(&Self) -> SqlResult<Planning<T>>,
    ) -> SqlResult<T> {
        loop {
            let outcome = match step(self) {
                Ok(planning) => self.planned(planning).await,
                Err(error) => Err(error),
            };
            let (pasts, files) = (Arc::clone(&self.pasts), Arc::clone(&self.files));
            if let Some(wanted) = files.take_wanted() {
                drop(outcome);
                let external = Arc::clone(self.instance.execution.external());
                files.list(wanted, &external).await?;
                continue;
            }
            let wanted = pasts.wanted.lock().take();
            let Some(moment) = wanted else { return outcome };
            drop(outcome);
            let transactions = Arc::clone(&self.instance.transactions);
            let snapshot = transactions.as_of(moment).await.map_err(|error| from_history(moment, &error))?;
            pasts.known.lock().insert(moment, snapshot);
        }
    }
}

/// Why the state at a moment is not to be had.
pub(crate) fn from_history(moment: Moment, error: &HistoryError) -> SqlError {
    match error {
        HistoryError::TooOld => SqlError::new(Condition::SnapshotTooOld, "snapshot too old")
            .with_detail("The moment is older than the retention.")
            .with_hint("The server's option --retention says how long the past is kept."),
        HistoryError::NotYet => {
            let message = match moment {
                Moment::Commit(commit) => format!("snapshot {commit} does not exist yet"),
                Moment::Time(_) | Moment::Newest => "AS OF TIMESTAMP lies in the future".to_owned(),
            };
            SqlError::new(Condition::InvalidParameterValue, message)
        }
        HistoryError::None => SqlError::new(Condition::ObjectNotInPrerequisiteState, error.to_string()),
        HistoryError::Gap { .. } | HistoryError::Damaged { .. } | HistoryError::TwoHistories { .. } => {
            SqlError::new(Condition::DataCorrupted, error.to_string())
        }
        other => {
            let source = std::error::Error::source(other).map(ToString::to_string);
            let error = SqlError::new(Condition::IoError, format!("failed to rebuild an earlier state: {other}"));
            source.into_iter().fold(error, SqlError::with_detail)
        }
    }
}
