//! Backpressure: writers wait when flushing falls behind.

use std::time::Duration;

use binder::StatementPlan;
use catalog::Table;
use maintenance::ThrottleVerdict;
use storage_error::from_transaction;
use types::SqlResult;

use crate::session::Session;

/// Interval at which a stopped writer checks whether it may go on.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Wait event in `pg_stat_activity` of a writer that waits.
const WAIT_EVENT: &str = "SettleFreshRows";

impl Session {
    /// Waits until the statement may write to the table; to be called before it writes rows.
    pub(crate) async fn wait_for_flush(&mut self, table: &Table) -> SqlResult<()> {
        let pace = self.instance.execution.throttle().verdict(table);
        if pace == ThrottleVerdict::Proceed {
            return Ok(());
        }
        let _shown = self.backend_guard.backend.show_wait(WAIT_EVENT);
        if let ThrottleVerdict::Delay(delay) = pace {
            self.instance.clock.sleep(delay).await;
        }
        while self.instance.execution.throttle().verdict(table) == ThrottleVerdict::WaitForFlush {
            // With a full disk nothing is flushed until there is room: the statement fails instead of waiting.
            self.instance.transactions.check_disk_space().map_err(from_transaction)?;
            self.instance.clock.sleep(CHECK_INTERVAL).await;
        }
        Ok(())
    }
}

/// Returns the table that a statement adds rows to.
pub(crate) fn insert_target(planned: &StatementPlan) -> Option<&Table> {
    match planned {
        StatementPlan::Write(plan) => Some(&plan.table),
        StatementPlan::Modify(plan) if plan.command_tag != "DELETE" => Some(&plan.table),
        StatementPlan::CopyFrom(plan) => Some(&plan.table),
        _ => None,
    }
}
