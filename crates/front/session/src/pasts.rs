//! The earlier states that a statement reads.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use session_context::{CommittedRow, HistoryRow, LastDrop, Past, PastState, StatementOutcomeRow};
use storage_error::from_transaction;
use txn::{Snapshot, Transactions};
use types::{Moment, Oid, SqlResult};

/// Those of one statement: the planner asks, the session gets what is not there and lets it plan again.
#[derive(Debug)]
pub(crate) struct Pasts {
    transactions: Arc<Transactions>,
    pub(crate) known: Mutex<HashMap<Moment, Snapshot>>,
    pub(crate) wanted: Mutex<Option<Moment>>,
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
