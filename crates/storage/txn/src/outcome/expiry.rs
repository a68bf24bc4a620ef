//! Removal of expired outcomes.

use std::sync::atomic::Ordering;

use super::outcome_format;
use crate::Result;
use crate::transactions::Core;

/// Outcomes that one durable write removes at most.
const OUTCOMES_PER_WRITE_MAX: usize = 1_000;

impl Core {
    /// Removes the outcomes whose retention has expired. Their tokens can be used again once that is durable.
    pub(crate) async fn delete_expired_outcomes(&self) -> Result<()> {
        let cutoff_us = self.clock.now_us().saturating_sub(self.outcomes.retention_us.load(Ordering::Relaxed));
        loop {
            let old =
                self.blocking(move |kv| outcome_format::list_before(kv, cutoff_us, OUTCOMES_PER_WRITE_MAX)).await?;
            let count = i64::try_from(old.len()).expect("a chunk is small");
            self.write(|batch| {
                old.iter().for_each(|(token, at_us)| outcome_format::delete(batch, token, *at_us));
            })
            .await?;
            self.outcomes.count.fetch_sub(count, Ordering::Relaxed);
            if old.len() < OUTCOMES_PER_WRITE_MAX {
                return Ok(());
            }
        }
    }
}
