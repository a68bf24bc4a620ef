//! Time travel: snapshots of earlier commits, from memory if they are recent, otherwise rebuilt from the bucket; and
//! the background services of the history.

use futures::future::BoxFuture;
use history::{History, HistoryError, HistoryStatus, Result};
use types::{ServiceHealth, TimeTravelTarget};

use crate::{Snapshot, Transactions};

#[cfg(test)]
mod tests;

impl Transactions {
    /// Returns a snapshot as of a time or commit within the retention. Objects that it references are not deleted while
    /// it lives.
    ///
    /// # Errors
    /// [`HistoryError::TooOld`] and [`HistoryError::InFuture`] outside the retention, [`HistoryError::NoHistory`] in a
    /// warehouse without history; others if the bucket cannot be read.
    pub fn as_of(&self, moment: TimeTravelTarget) -> BoxFuture<'_, Result<Snapshot>> {
        Box::pin(self.as_of_unboxed(moment))
    }

    async fn as_of_unboxed(&self, moment: TimeTravelTarget) -> Result<Snapshot> {
        let newest = self.current();
        let now_us = self.core.clock.now_us();
        match moment {
            TimeTravelTarget::Newest => return Ok(newest),
            TimeTravelTarget::Commit(commit) if commit == newest.ts => return Ok(newest),
            TimeTravelTarget::Commit(commit) if newest.ts < commit => return Err(HistoryError::InFuture),
            TimeTravelTarget::Time(us) if now_us < us => return Err(HistoryError::InFuture),
            TimeTravelTarget::Commit(_) | TimeTravelTarget::Time(_) => {}
        }
        let Some(history) = &self.core.history else { return Err(HistoryError::NoHistory) };
        let retention = i64::try_from(history.retention().as_micros()).unwrap_or(i64::MAX);
        let cutoff_us = now_us.saturating_sub(retention);
        if matches!(moment, TimeTravelTarget::Time(us) if us < cutoff_us) {
            return Err(HistoryError::TooOld);
        }
        let known = match self.core.recent_states.find(moment) {
            Some(known) => known,
            None => history.rebuild_state(moment).await?,
        };
        if known.until_us < cutoff_us {
            return Err(HistoryError::TooOld);
        }
        self.core.snapshots.pin_older(known.ts, known.state).ok_or(HistoryError::TooOld)
    }

    /// Runs the service that copies the log to the bucket soon after each commit, until the server may no longer write.
    /// Returns at once in a warehouse without history.
    pub fn run_log_archiver<'a>(&'a self, health: &'a ServiceHealth) -> BoxFuture<'a, ()> {
        Box::pin(async {
            if let Some(history) = &self.core.history {
                history.run_log_uploader(health).await;
            }
        })
    }

    /// Runs the service that writes checkpoints when they are due, until the server may no longer write. Returns at
    /// once in a warehouse without history.
    pub fn run_checkpointer<'a>(&'a self, health: &'a ServiceHealth) -> BoxFuture<'a, ()> {
        Box::pin(async {
            if let Some(history) = &self.core.history {
                history.run_checkpointer(health).await;
            }
        })
    }

    /// Copies the remaining records of the log at shutdown; later commits no longer wait for free space in the log.
    /// Does nothing in a warehouse without history.
    ///
    /// # Errors
    /// Fails if the store cannot be read or the bucket cannot be written.
    pub fn archive_remaining_log(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            match &self.core.history {
                Some(history) => history.upload_remaining().await,
                None => Ok(()),
            }
        })
    }

    /// Copies all current records of the log to the bucket. Does nothing in a warehouse without history.
    ///
    /// # Errors
    /// As [`Self::archive_remaining_log`].
    pub async fn archive_log(&self) -> Result<()> {
        match &self.core.history {
            Some(history) => history.upload_log().await,
            None => Ok(()),
        }
    }

    /// Writes a checkpoint now and deletes history older than the retention. Does nothing in a warehouse without
    /// history.
    ///
    /// # Errors
    /// As [`Self::archive_remaining_log`]; also fails if the data folder cannot be written.
    pub async fn write_checkpoint(&self) -> Result<()> {
        match &self.core.history {
            Some(history) => history.write_checkpoint().await,
            None => Ok(()),
        }
    }

    /// Returns the progress of the history; `None` in a warehouse without history.
    #[must_use]
    pub fn history_status(&self) -> Option<HistoryStatus> {
        self.core.history.as_ref().map(History::status)
    }
}
