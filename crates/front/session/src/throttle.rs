//! Writers wait where settling falls behind.

use std::time::Duration;

use binder::Planned;
use catalog::Table;
use maintenance::Pace;
use storage_error::from_transaction;
use types::SqlResult;

use crate::session::Session;

/// Who has to stop looks so often whether to go on.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// What `pg_stat_activity` shows meanwhile.
const WAIT_EVENT: &str = "SettleFreshRows";

impl Session {
    /// To be called before a statement writes rows. Ends when the statement is stopped, too.
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
            // Where the disk is full nothing settles until there is room.
            self.instance.transactions.check_room().map_err(from_transaction)?;
            self.instance.clock.sleep(LOOK_EVERY).await;
        }
        Ok(())
    }
}

/// The table that a statement puts rows into.
pub(crate) fn grown_table(planned: &Planned) -> Option<&Table> {
    match planned {
        Planned::Write(plan) => Some(&plan.table),
        Planned::Modify(plan) if plan.tag != "DELETE" => Some(&plan.table),
        Planned::CopyFrom(plan) => Some(&plan.table),
        _ => None,
    }
}
