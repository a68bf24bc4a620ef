//! States of the past that were rebuilt from the bucket, the newest of which are kept.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use catalog::stored;
use types::{CommitTs, Moment};

use crate::rebuild::rebuild;
use crate::recent::Known;
use crate::upload::blocking;
use crate::{History, HistoryError, Result, timeline};

/// Rebuilt states that are kept for the next question.
const KEPT: usize = 4;

/// States that were rebuilt, the one used last at the end.
#[derive(Debug, Default)]
pub(crate) struct Rebuilt {
    states: tokio::sync::Mutex<VecDeque<Known>>,
    /// Numbers the folders that states are rebuilt in.
    folders: AtomicU64,
}

impl History {
    /// The state at the moment, from the bucket. One is rebuilt at a time: the next may ask for the same.
    ///
    /// # Errors
    /// [`HistoryError::TooOld`] and [`HistoryError::Gap`]; others where the bucket does not answer.
    pub async fn rebuilt(&self, moment: Moment) -> Result<Known> {
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

    async fn known(&self, moment: Moment, rebuilt: crate::rebuild::Rebuilt) -> Result<Known> {
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
