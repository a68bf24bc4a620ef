//! Shared rows of one run: a plan describes them, each run computes its own.

use std::sync::Arc;

use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::execution::SessionState;
use datafusion::execution::config::SessionConfig;
use datafusion::physical_plan::ExecutionPlan;
use optimizer::common_subplans::{SharedScanExtension, SharedScanPlanner, SharedTable};
use parking_lot::Mutex;

use super::exec::SharedScanExec;
use super::materialization::SharedRows;

/// Shared rows by shared table, for the scans that are planned in one run. It is an extension of the planning
/// configuration.
#[derive(Debug, Default)]
pub(crate) struct SharedRowsRegistry(Mutex<Vec<RegisteredRows>>);

/// Shared table with its rows in this run.
#[derive(Debug, Clone)]
struct RegisteredRows {
    table: Arc<SharedTable>,
    rows: Arc<SharedRows>,
    /// Positions of the rows' columns among those of the table, ascending.
    columns: Arc<[usize]>,
}

impl SharedRowsRegistry {
    /// Returns a copy of the rows known when an operator is created, for plans that it makes later; `None` if nothing
    /// is shared. It is a copy because the operator may compute rows of the next table: a reference would form a cycle.
    pub(crate) fn snapshot(session: &dyn Session) -> Option<Arc<Self>> {
        let rows = session.config().get_extension::<Self>()?;
        let tables = rows.0.lock().clone();
        Some(Arc::new(Self(Mutex::new(tables))))
    }

    /// Returns a session state for planning one run, and the registry of its shared rows.
    pub(crate) fn with_state(state: &SessionState) -> (SessionState, Arc<Self>) {
        let (mut state, rows) = (state.clone(), Arc::<Self>::default());
        rows.install_in(state.config_mut());
        (state, rows)
    }

    /// Lets scans that are planned with this configuration read the rows.
    pub(crate) fn install_in(self: &Arc<Self>, config: &mut SessionConfig) {
        config.set_extension(Arc::clone(self));
        config.set_extension(Arc::new(SharedScanExtension(Arc::<Self>::clone(self))));
    }

    /// Registers the operators that compute these columns of a table in this run.
    pub(crate) fn register(&self, table: &Arc<SharedTable>, columns: &[usize], operators: Arc<dyn ExecutionPlan>) {
        let (table, rows, columns) = (Arc::clone(table), Arc::new(SharedRows::new(operators)), columns.into());
        self.0.lock().push(RegisteredRows { table, rows, columns });
    }

    fn find(&self, wanted: &SharedTable) -> Result<RegisteredRows> {
        let tables = self.0.lock();
        let registered = tables.iter().find(|known| std::ptr::eq(Arc::as_ptr(&known.table), wanted)).cloned();
        registered.ok_or_else(|| internal_datafusion_err!("shared table {wanted:?} has no operators in this run"))
    }
}

impl SharedScanPlanner for SharedRowsRegistry {
    fn plan_scan(
        &self,
        table: &SharedTable,
        columns: &[usize],
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let RegisteredRows { rows, columns: given, .. } = self.find(table)?;
        let place = |column: &usize| {
            given.binary_search(column).map_err(|_| internal_datafusion_err!("{table:?} lacks a column of a scan"))
        };
        let places = columns.iter().map(place).collect::<Result<Vec<_>>>()?;
        let schema = Arc::new(table.schema().project(columns)?);
        let count = if table.is_ordered() { 1 } else { session.config().target_partitions().max(1) };
        let scan = SharedScanExec::new(table.name().to_owned(), rows, places, schema, count, table.expected_rows());
        let scan = if table.is_ordered() { scan.with_order() } else { scan };
        Ok(Arc::new(if table.is_materialized() { scan.displayed_as_cte() } else { scan }))
    }
}
