//! Snapshots of the past: from memory where they are recent, else rebuilt from the bucket.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use catalog::stored;
use types::{CommitTs, Moment};

use super::rebuild::rebuild;
use super::recent::Known;
use super::upload::blocking;
use super::{History, HistoryError, Result, timeline};
use crate::{Snapshot, Transactions};

/// Rebuilt states that are kept for the next question.
const KEPT: usize = 4;

/// States that were rebuilt, the one used last at the end.
#[derive(Debug, Default)]
pub(super) struct Rebuilt {
    states: tokio::sync::Mutex<VecDeque<Known>>,
    /// Numbers the folders that states are rebuilt in.
    folders: AtomicU64,
}

impl Transactions {
    /// What was committed at a moment within the retention. The objects that the snapshot names stay as long as it lives.
    ///
    /// # Errors
    /// [`HistoryError::TooOld`] and [`HistoryError::NotYet`] for moments outside; others where the bucket does not answer.
    pub async fn as_of(&self, moment: Moment) -> Result<Snapshot> {
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
}

impl History {
    /// The state at the moment, from the bucket. One is rebuilt at a time: the next may ask for the same.
    async fn rebuilt(&self, moment: Moment) -> Result<Known> {
        let mut states = self.rebuilt.states.lock().await;
        if let Some(position) = states.iter().position(|known| known.is_at(moment)) {
            let known = states.remove(position).expect("found above");
            states.push_back(known.clone());
            return Ok(known);
        }
        self.upload().await?;
        let path = timeline::path(&self.objects, self.timeline).await?;
        let number = self.rebuilt.folders.fetch_add(1, Ordering::Relaxed);
        let folder = self.settings.folder.join(format!("past{number}"));
        let failed = |source| HistoryError::File { path: folder.clone(), source };
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(failed)?;
        }
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let built = rebuild(&self.objects, &path, moment, &folder.join("past.redb"), &|_| ()).await;
        let known = match built {
            Ok(rebuilt) => self.known(moment, rebuilt).await,
            // Older than the oldest checkpoint, and so than the retention.
            Err(HistoryError::NoStart) => Err(HistoryError::TooOld),
            Err(error) => Err(error),
        };
        std::fs::remove_dir_all(&folder).map_err(failed)?;
        let known = known?;
        if KEPT <= states.len() {
            states.pop_front();
        }
        states.push_back(known.clone());
        Ok(known)
    }

    async fn known(&self, moment: Moment, rebuilt: super::rebuild::Rebuilt) -> Result<Known> {
        if let Some(gap) = rebuilt.gap {
            return Err(HistoryError::Gap { from: gap.from, to: gap.to });
        }
        let (kv, ts) = (rebuilt.kv, rebuilt.commit);
        let read = blocking(move || Ok(stored::read(&*kv)?)).await?;
        let (state, _) = read.ok_or(HistoryError::NoStart)?;
        // Where the log ends, the state is known to be that of the moment asked for, and of none after it.
        let (next, until_us) = rebuilt.next.unwrap_or_else(|| {
            let until_us = if let Moment::Time(us) = moment { us + 1 } else { i64::MAX };
            (CommitTs(ts.0 + 1), until_us)
        });
        // It may have been there for longer: since the commit, which a later record may have followed.
        let from_us =
            if let Moment::Time(us) = moment { rebuilt.last.written_us.min(us) } else { rebuilt.last.written_us };
        Ok(Known { ts, state: Arc::new(state), from_us, until_us, next })
    }
}
