//! Fetching of inputs before planning: historical snapshots and lists of external files, so that planning never waits.

use std::sync::Arc;

use binder::Step;
use history::HistoryError;
use planner::{Planner, PossibleInputs};
use session_context::{HistoricalState, MissingInputs, ScalarValue};
use syntax::ParsedStatement;
use types::{Condition, SqlError, SqlResult, SqlType, TimeTravelTarget};

use crate::planning_work::PlanningWork;
use crate::running_statement::Statement;
use crate::session::Session;

impl Session {
    /// Fetches the inputs that a statement refers to beside the catalog. Most statements need none.
    pub(crate) async fn resolve(
        &mut self,
        parsed: &Arc<ParsedStatement>,
        parameters: &[Option<SqlType>],
        values: &[ScalarValue],
        has_rows: bool,
        statement: &Statement,
    ) -> SqlResult<()> {
        let _step = Step::Resolve.span();
        let may_miss = Planner::may_miss_inputs(parsed, &self.transaction_block.view().state);
        if may_miss == PossibleInputs::Nothing {
            return Ok(());
        }
        let mut context =
            if has_rows { self.statement_context(statement) } else { self.statement_context_without_rows(statement) };
        Arc::make_mut(&mut context).arguments = values.into();
        let planner = Arc::clone(&self.instance.planner);
        let search = if may_miss == PossibleInputs::FilesOfFewTables {
            PlanningWork::Done(planner.missing_inputs(parsed, parameters, &context))
        } else {
            let (parsed, parameters) = (Arc::clone(parsed), parameters.to_vec());
            PlanningWork::from_work(move || Ok(planner.missing_inputs(&parsed, &parameters, &context)))
        };
        // Few statements come here: boxing keeps this step out of the memory of the others.
        Box::pin(async {
            let missing = self.run_planning(search).await?;
            self.fetch_inputs(missing).await;
            Ok(())
        })
        .await
    }

    /// Fetches the missing inputs. A failure is stored in place of the input: planning reports other errors of the
    /// statement first.
    async fn fetch_inputs(&mut self, missing: MissingInputs) {
        if missing.is_empty() && self.inputs.last_drop.is_none() {
            return;
        }
        let transactions = Arc::clone(&self.instance.transactions);
        let external = Arc::clone(self.instance.execution.external());
        let inputs = Arc::make_mut(&mut self.inputs);
        inputs.last_drop = missing.last_drop;
        for moment in missing.moments {
            let snapshot = transactions.as_of(moment).await;
            let found = snapshot
                .map(|snapshot| HistoricalState { state: Arc::clone(&snapshot.state), pin: Arc::new(snapshot) });
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

/// Converts the error of a historical snapshot.
pub(crate) fn from_history(moment: TimeTravelTarget, error: &HistoryError) -> SqlError {
    match error {
        HistoryError::TooOld => SqlError::new(Condition::SnapshotTooOld, "snapshot too old")
            .with_detail("The snapshot is older than the retention.")
            .with_hint("The server's option --retention sets how long snapshots are kept."),
        HistoryError::InFuture => {
            let message = match moment {
                TimeTravelTarget::Commit(commit) => format!("snapshot {commit} does not exist yet"),
                TimeTravelTarget::Time(_) | TimeTravelTarget::Newest => "AS OF TIMESTAMP lies in the future".to_owned(),
            };
            SqlError::new(Condition::InvalidParameterValue, message)
        }
        HistoryError::NoHistory => SqlError::new(Condition::ObjectNotInPrerequisiteState, error.to_string()),
        HistoryError::Gap { .. } | HistoryError::Damaged { .. } | HistoryError::TwoHistories { .. } => {
            SqlError::new(Condition::DataCorrupted, error.to_string())
        }
        other => {
            let source = std::error::Error::source(other).map(ToString::to_string);
            let error =
                SqlError::new(Condition::IoError, format!("could not rebuild the historical snapshot: {other}"));
            source.into_iter().fold(error, SqlError::with_detail)
        }
    }
}
