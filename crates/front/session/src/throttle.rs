//! Backpressure: writers wait when flushing falls behind.

use std::time::Duration;

use binder::Planned;
use catalog::Table;
use maintenance::Pace;
use storage_error::from_transaction;
use types::SqlResult;

use crate::session::Session;

/// Interval at which a stopped writer checks whether it may go on.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Wait event in `pg_stat_activity` of a writer that waits.
const WAIT_EVENT: &str = "SettleFreshRows";

impl Session {
    /// Waits until the statement may write to the table; to be called before it writes rows.
    pub(crate) async fn await_settling(&mut self, table: &Table) -> SqlResult<()> {
        let pace = self.instance.execution.throttle().pace(table);
        if pace == Pace::Free {
            return Ok(());
        }
        let _shown = self.seat.backend.waiting(WAIT_EVENT);
        if let Pace::After(delay) = pace {
            self.instance.clock.sleep(delay).await;
        }
        while self.instance.execution.throttle().pace(table) == Pace::Stop {
            // With a full disk nothing is flushed until there is room: the statement fails instead of waiting.
            self.instance.transactions.check_room().map_err(from_transaction)?;
            self.instance.clock.sleep(LOOK_EVERY).await;
        }
        Ok(())
    }
}

/// Returns the table that a statement adds rows to.
pub(crate) fn grown_table(planned: &Planned) -> Option<&Table> {
    match planned {
        Planned::Write(plan) => Some(&plan.table),
        Planned::Modify(plan) if plan.tag != "DELETE" => Some(&plan.table),
        Planned::CopyFrom(plan) => Some(&plan.table),
        _ => None,
    }
}
