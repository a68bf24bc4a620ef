//! Time travel: states rebuilt from the bucket, with a small cache of them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use catalog::persistence;
use types::{CommitTs, TimeTravelTarget};

use crate::log_upload::run_blocking;
use crate::rebuild::rebuild;
use crate::recent_states::HistoricalState;
use crate::{History, HistoryError, Result, timeline};

/// Number of cached states.
const CACHED_STATES: usize = 4;

/// Cache of rebuilt states, the most recently used last.
#[derive(Debug, Default)]
pub(crate) struct RebuiltStates {
    states: tokio::sync::Mutex<VecDeque<HistoricalState>>,
    /// Number of the next folder to rebuild a state in.
    next_folder_number: AtomicU64,
}

impl History {
    /// Returns the state as of `moment`, rebuilt from the bucket unless it is cached. States are rebuilt one at a time,
    /// since the next query may need the same.
    ///
    /// # Errors
    /// [`HistoryError::TooOld`] and [`HistoryError::Gap`]; others if the bucket cannot be read.
    pub async fn rebuild_state(&self, moment: TimeTravelTarget) -> Result<HistoricalState> {
        let mut states = self.rebuilt_states.states.lock().await;
        if let Some(position) = states.iter().position(|known| known.covers(moment)) {
            let known = states.remove(position).expect("the position was found above");
            states.push_back(known.clone());
            return Ok(known);
        }
        self.upload_log().await?;
        let path = timeline::timeline_path(&self.objects, self.timeline).await?;
        let number = self.rebuilt_states.next_folder_number.fetch_add(1, Ordering::Relaxed);
        let folder = self.settings.work_folder.join(format!("past{number}"));
        let failed = |source| HistoryError::File { path: folder.clone(), source };
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(failed)?;
        }
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let built = rebuild(&self.objects, &path, moment, &folder.join("past.redb"), &|_| ()).await;
        let known = match built {
            Ok(rebuilt) => self.to_historical_state(moment, rebuilt).await,
            // The state is older than the oldest checkpoint, and hence than the retention.
            Err(HistoryError::NoCheckpoint) => Err(HistoryError::TooOld),
            Err(error) => Err(error),
        };
        std::fs::remove_dir_all(&folder).map_err(failed)?;
        let known = known?;
        if CACHED_STATES <= states.len() {
            states.pop_front();
        }
        states.push_back(known.clone());
        Ok(known)
    }

    async fn to_historical_state(
        &self,
        moment: TimeTravelTarget,
        rebuilt: crate::rebuild::RebuiltStore,
    ) -> Result<HistoricalState> {
        if let Some(gap) = rebuilt.gap {
            return Err(HistoryError::Gap { from: gap.from, to: gap.to });
        }
        let (kv, ts) = (rebuilt.kv, rebuilt.commit);
        let read = run_blocking(move || Ok(persistence::read(&*kv)?)).await?;
        let (state, _) = read.ok_or(HistoryError::NoCheckpoint)?;
        // At the end of the log it is not known how long the state remains the newest: it is valid for the requested
        // time only.
        let (next, until_us) = rebuilt.next_commit.unwrap_or_else(|| {
            let until_us = if let TimeTravelTarget::Time(us) = moment { us + 1 } else { i64::MAX };
            (CommitTs(ts.0 + 1), until_us)
        });
        // The state begins with its commit; records without a commit may have followed.
        let from_us = if let TimeTravelTarget::Time(us) = moment {
            rebuilt.last_record.written_us.min(us)
        } else {
            rebuilt.last_record.written_us
        };
        Ok(HistoricalState { ts, state: Arc::new(state), from_us, until_us, replaced_by: next })
    }
}
