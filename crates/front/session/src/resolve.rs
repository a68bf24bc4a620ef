//! Before a statement is planned: states of the past and files of external tables are fetched, so that planning never has to wait.

use std::sync::Arc;

use binder::Step;
use history::HistoryError;
use planner::{MayMiss, Planner};
use session_context::{MissingInputs, PastState, ScalarValue};
use syntax::Parsed;
use types::{Condition, Moment, SqlError, SqlResult, SqlType};

use crate::planning::Planning;
use crate::session::Session;
use crate::statement::Statement;

impl Session {
    /// Fetches what the names of a statement stand for beside the catalog. Most statements need nothing.
    pub(crate) async fn resolve(
        &mut self,
        parsed: &Arc<Parsed>,
        parameters: &[Option<SqlType>],
        values: &[ScalarValue],
        has_rows: bool,
        statement: &Statement,
    ) -> SqlResult<()> {
        let _step = Step::Resolve.span();
        let may_miss = Planner::may_miss_inputs(parsed, &self.block.view().state);
        if may_miss == MayMiss::Nothing {
            return Ok(());
        }
        let mut context = if has_rows { self.context(statement) } else { self.context_without_rows(statement) };
        Arc::make_mut(&mut context).arguments = values.into();
        let planner = Arc::clone(&self.instance.planner);
        let finding = if may_miss == MayMiss::FilesOfFew {
            Planning::Done(planner.missing_inputs(parsed, parameters, &context))
        } else {
            let (parsed, parameters) = (Arc::clone(parsed), parameters.to_vec());
            Planning::of(move || Ok(planner.missing_inputs(&parsed, &parameters, &context)))
        };
        // Few statements come here: the others are spared its memory.
        Box::pin(async {
            let missing = self.planned(finding).await?;
            self.fetch_inputs(missing).await;
            Ok(())
        })
        .await
    }

    /// Each is kept with its failure: the statement says first what else is wrong with it.
    async fn fetch_inputs(&mut self, missing: MissingInputs) {
        if missing.is_empty() && self.inputs.last_drop.is_none() {
            return;
        }
        let transactions = Arc::clone(&self.instance.transactions);
        let external = Arc::clone(self.instance.execution.external());
        let inputs = Arc::make_mut(&mut self.inputs);
        inputs.last_drop = missing.last_drop;
        for moment in missing.moments {
            let found = transactions.as_of(moment).await;
            let found = found.map(|snapshot| PastState { state: Arc::clone(&snapshot.state), pin: Arc::new(snapshot) });
            inputs.states.insert(moment, found.map_err(|error| from_history(moment, &error)));
        }
        for (oid, table) in missing.external_tables {
            inputs.files.insert(oid, external.list(&table).await);
        }
        if let Some(location) = missing.location {
            let columns = external.columns_at(&location).await;
            inputs.columns.insert(location, columns);
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
