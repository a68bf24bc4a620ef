//! Release of old snapshots: `max_snapshot_age`.
//!
//! A snapshot keeps alive what nobody else needs any more: replaced shards, unflushed rows, the moves of rows. A
//! session releases a snapshot that is too old, even while it waits for its client, and reports the error at its next
//! step.

use std::time::Duration;

use crate::portal::PortalProgress;
use crate::session::Session;
use crate::snapshot_age::snapshot_age;
use crate::started_statement::OpenResult;

impl Session {
    /// Returns how much longer the session may use its oldest snapshot; `None` if it has none, or there is no limit.
    pub fn snapshot_time_left(&self) -> Option<Duration> {
        let cursors = self.portals.values().filter_map(|portal| portal.progress.snapshot_us());
        let oldest_us = self.transaction_block.snapshot_us().into_iter().chain(cursors).min()?;
        Some(self.settings().max_snapshot_age()?.saturating_sub(snapshot_age(oldest_us, self.instance.clock.now_us())))
    }

    /// Releases the snapshots that are older than `max_snapshot_age`.
    pub fn release_old_snapshots(&mut self) {
        if self.snapshot_time_left() != Some(Duration::ZERO) {
            return;
        }
        let Some(limit) = self.settings().max_snapshot_age() else { return };
        let now_us = self.instance.clock.now_us();
        let is_old =
            |looked_us: Option<i64>| looked_us.is_some_and(|looked_us| limit <= snapshot_age(looked_us, now_us));
        if is_old(self.transaction_block.snapshot_us()) && !self.transaction_block.renew_snapshot(now_us) {
            self.end_portals(false);
        }
        for portal in self.portals.values_mut() {
            if let PortalProgress::Open(OpenResult::Plan { rows, .. }, _) = &mut portal.progress
                && is_old(rows.snapshot_us())
            {
                rows.release();
            }
        }
    }
}
