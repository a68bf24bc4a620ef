//! The shared rows of one run of a plan: the plan says what they are, the run has them.

use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::execution::SessionState;
use datafusion::physical_plan::ExecutionPlan;
use parking_lot::Mutex;

use super::rows::SharedRows;
use super::table::SharedTable;

/// Rows of shared tables, for the scans of one run that are turned into operators. An extension of the configuration that they are planned with.
#[derive(Debug, Default)]
pub(crate) struct RowsOfRun(Mutex<Vec<RunTable>>);

/// The rows of a table.
#[derive(Debug, Clone)]
pub(super) struct RunTable {
    table: Arc<SharedTable>,
    pub(super) rows: Arc<SharedRows>,
    /// Places of the rows' columns among those of the table, ascending.
    pub(super) columns: Arc<[usize]>,
}

impl RowsOfRun {
    /// Those that there are when an operator is made, for plans that it makes itself later; `None` where nothing is shared. A copy: the operator
    /// may be one of those that make rows of the next table, and would keep these and itself alive for ever.
    pub(crate) fn so_far(session: &dyn Session) -> Option<Arc<Self>> {
        let rows = session.config().get_extension::<Self>()?;
        let tables = rows.0.lock().clone();
        Some(Arc::new(Self(Mutex::new(tables))))
    }

    /// A state to plan a run with, and what takes its rows.
    pub(crate) fn within(state: &SessionState) -> (SessionState, Arc<Self>) {
        let (mut state, rows) = (state.clone(), Arc::<Self>::default());
        state.config_mut().set_extension(Arc::clone(&rows));
        (state, rows)
    }

    /// `operators` give these columns of a table in this run.
    pub(crate) fn add(&self, table: &Arc<SharedTable>, columns: &[usize], operators: Arc<dyn ExecutionPlan>) {
        let (table, rows, columns) = (Arc::clone(table), Arc::new(SharedRows::new(operators)), columns.into());
        self.0.lock().push(RunTable { table, rows, columns });
    }

    /// The rows of a table in the run that a session plans.
    pub(super) fn table(session: &dyn Session, wanted: &SharedTable) -> Option<RunTable> {
        let rows = session.config().get_extension::<Self>()?;
        let tables = rows.0.lock();
        tables.iter().find(|known| std::ptr::eq(Arc::as_ptr(&known.table), wanted)).cloned()
    }
}
