//! Access of the planner to earlier commits: drops, the archived log, and outcomes of statements with a token.

use std::sync::Arc;

use session_context::{CommittedTransaction, HistoryRow, LastDrop, StatementOutcomeRow, TimeTravel};
use storage_error::from_transaction;
use txn::Transactions;
use types::{Oid, SqlResult};

/// Reader of the commit history for planning.
#[derive(Debug)]
pub(crate) struct CommitHistory(Arc<Transactions>);

impl CommitHistory {
    pub(crate) fn new(transactions: &Arc<Transactions>) -> Arc<Self> {
        Arc::new(Self(Arc::clone(transactions)))
    }
}

impl TimeTravel for CommitHistory {
    fn last_drop(&self, schema: Oid, name: &str) -> SqlResult<Option<LastDrop>> {
        let last = self.0.last_drop(schema, name).map_err(from_transaction)?;
        Ok(last.map(|last| LastDrop { table: last.table, commit: last.commit }))
    }

    fn history(&self) -> Option<HistoryRow> {
        self.0.history_status().map(|status| HistoryRow {
            newest_record: status.log.newest_record,
            copied_record: status.log.last_archived,
            waiting_bytes: status.log.unarchived_bytes,
            last_upload_us: status.last_upload_us,
            failures: status.failures,
            last_error: status.last_error,
            checkpoint_record: status.checkpoint,
            last_checkpoint_us: status.last_checkpoint_us,
        })
    }

    fn statement_outcomes(&self, role: Option<Oid>, token: Option<&str>) -> SqlResult<Vec<StatementOutcomeRow>> {
        let known = self.0.outcomes(role, token).map_err(from_transaction)?;
        let rows = known.into_iter().map(|known| StatementOutcomeRow {
            token: known.token.text.to_string(),
            role: known.token.role,
            committed: known.outcome.map(|outcome| CommittedTransaction {
                command_tag: outcome.statements.last().map_or_else(String::new, |last| last.command_tag.clone()),
                rows: outcome.statements.iter().map(|written| written.rows).sum(),
                statements: outcome.statements.len(),
                at_us: outcome.at_us,
                commit: outcome.commit,
            }),
        });
        Ok(rows.collect())
    }
}
