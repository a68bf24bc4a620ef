//! Snapshots of the past: from memory where they are recent, else rebuilt by the history from the bucket.

use futures::future::BoxFuture;
use history::{History, HistoryError, HistoryStatus, Result};
use types::{Health, Moment};

use crate::{Snapshot, Transactions};

#[cfg(test)]
mod tests;

impl Transactions {
    /// What was committed at a moment within the retention. The objects that the snapshot names stay as long as it lives.
    ///
    /// # Errors
    /// [`HistoryError::TooOld`] and [`HistoryError::NotYet`] for moments outside, [`HistoryError::None`] where no history is kept; others where the bucket does not answer.
    pub fn as_of(&self, moment: Moment) -> BoxFuture<'_, Result<Snapshot>> {
        Box::pin(self.as_of_unboxed(moment))
    }

    async fn as_of_unboxed(&self, moment: Moment) -> Result<Snapshot> {
        let newest = self.current();
        let now_us = self.core.clock.now_us();
        match moment {
            Moment::Newest => return Ok(newest),
            Moment::Commit(commit) if commit == newest.ts => return Ok(newest),
            Moment::Commit(commit) if newest.ts < commit => return Err(HistoryError::NotYet),
            Moment::Time(us) if now_us < us => return Err(HistoryError::NotYet),
            Moment::Commit(_) | Moment::Time(_) => {}
        }
        let Some(history) = &self.core.history else { return Err(HistoryError::None) };
        let retention = i64::try_from(history.retention().as_micros()).unwrap_or(i64::MAX);
        let cutoff_us = now_us.saturating_sub(retention);
        if matches!(moment, Moment::Time(us) if us < cutoff_us) {
            return Err(HistoryError::TooOld);
        }
        let known = match self.core.recent.find(moment) {
            Some(known) => known,
            None => history.rebuilt(moment).await?,
        };
        if known.until_us < cutoff_us {
            return Err(HistoryError::TooOld);
        }
        self.core.visible.past(known.ts, known.state).ok_or(HistoryError::TooOld)
    }

    /// Copies the log to the bucket, soon after each commit, for as long as the server may write. Without a history it returns at once.
    pub fn keep_log_copied<'a>(&'a self, health: &'a Health) -> BoxFuture<'a, ()> {
        Box::pin(async {
            if let Some(history) = &self.core.history {
                history.keep_copied(health).await;
            }
        })
    }

    /// Makes a checkpoint whenever one is due, for as long as the server may write. Without a history it returns at once.
    pub fn keep_checkpoints<'a>(&'a self, health: &'a Health) -> BoxFuture<'a, ()> {
        Box::pin(async {
            if let Some(history) = &self.core.history {
                history.keep_checkpoints(health).await;
            }
        })
    }

    /// Copies what the log holds by now; commits from now on do not wait for room in it. Without a history there is nothing to do.
    ///
    /// # Errors
    /// Where the store cannot be read or the bucket cannot be written.
    pub fn end_history(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            match &self.core.history {
                Some(history) => history.end().await,
                None => Ok(()),
            }
        })
    }

    /// Copies what the log holds by now. Without a history there is nothing to do.
    ///
    /// # Errors
    /// As [`Self::end_history`].
    pub async fn copy_log(&self) -> Result<()> {
        match &self.core.history {
            Some(history) => history.upload().await,
            None => Ok(()),
        }
    }

    /// Makes a checkpoint now, and removes what no moment within the retention needs. Without a history there is nothing to do.
    ///
    /// # Errors
    /// As [`Self::end_history`], and where the data folder cannot be written.
    pub async fn make_checkpoint(&self) -> Result<()> {
        match &self.core.history {
            Some(history) => history.checkpoint().await,
            None => Ok(()),
        }
    }

    /// How far the history has come; `None` for a warehouse that keeps none.
    #[must_use]
    pub fn history_status(&self) -> Option<HistoryStatus> {
        self.core.history.as_ref().map(History::status)
    }
}
