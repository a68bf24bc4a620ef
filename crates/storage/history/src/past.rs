//! Time travel: states rebuilt from the bucket, with a small cache of them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use catalog::stored;
use types::{CommitTs, Moment};

use crate::rebuild::rebuild;
use crate::recent::Known;
use crate::upload::blocking;
use crate::{History, HistoryError, Result, timeline};

/// Number of cached states.
const KEPT: usize = 4;

/// Cache of rebuilt states, the most recently used last.
#[derive(Debug, Default)]
pub(crate) struct Rebuilt {
    states: tokio::sync::Mutex<VecDeque<Known>>,
    /// Number of the next folder to rebuild a state in.
    folders: AtomicU64,
}

impl History {
    /// Returns the state as of `moment`, rebuilt from the bucket unless it is cached. States are rebuilt one at a time,
    /// since the next query may need the same.
    ///
    /// # Errors
    /// [`HistoryError::TooOld`] and [`HistoryError::Gap`]; others if the bucket cannot be read.
    pub async fn rebuilt(&self, moment: Moment) -> Result<Known> {
        let mut states = self.rebuilt.states.lock().await;
        if let Some(position) = states.iter().position(|known| known.is_at(moment)) {
            let known = states.remove(position).expect("the position was found above");
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
            // The state is older than the oldest checkpoint, and hence than the retention.
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
        // At the end of the log it is not known how long the state remains the newest: it is valid for the requested
        // time only.
        let (next, until_us) = rebuilt.next.unwrap_or_else(|| {
            let until_us = if let Moment::Time(us) = moment { us + 1 } else { i64::MAX };
            (CommitTs(ts.0 + 1), until_us)
        });
        // The state begins with its commit; records without a commit may have followed.
        let from_us =
            if let Moment::Time(us) = moment { rebuilt.last.written_us.min(us) } else { rebuilt.last.written_us };
        Ok(Known { ts, state: Arc::new(state), from_us, until_us, next })
    }
}
