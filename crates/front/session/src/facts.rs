//! Planning inputs that have to be fetched: states of the past, files of external tables.

use std::sync::Arc;

use history::HistoryError;
use types::{Condition, Moment, SqlError, SqlResult};

use crate::planning::Planning;
use crate::session::Session;

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
