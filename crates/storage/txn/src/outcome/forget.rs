//! Outcomes that are old enough go.

use std::sync::atomic::Ordering;

use super::stored;
use crate::Result;
use crate::transactions::Core;

/// Outcomes that one durable write removes.
const CHUNK: usize = 1_000;

impl Core {
    /// Removes the outcomes whose time is over. A token is free again once that is durable, and not before.
    pub(crate) async fn forget_outcomes(&self) -> Result<()> {
        let cutoff_us = self.clock.now_us().saturating_sub(self.outcomes.kept_for_us.load(Ordering::Relaxed));
        loop {
            let old = self.blocking(move |kv| stored::before(kv, cutoff_us, CHUNK)).await?;
            let count = old.len();
            self.write(|batch| old.iter().for_each(|(token, at_us)| stored::delete(batch, token, *at_us))).await?;
            self.outcomes.count.fetch_sub(count as u64, Ordering::Relaxed);
            if count < CHUNK {
                return Ok(());
            }
        }
    }
}
