//! Removal of expired outcomes.

use std::sync::atomic::Ordering;

use super::stored;
use crate::Result;
use crate::transactions::Core;

/// Outcomes that one durable write removes at most.
const CHUNK: usize = 1_000;

impl Core {
    /// Removes the outcomes whose retention has expired. Their tokens can be used again once that is durable.
    pub(crate) async fn delete_expired_outcomes(&self) -> Result<()> {
        let cutoff_us = self.clock.now_us().saturating_sub(self.outcomes.retention_us.load(Ordering::Relaxed));
        loop {
            let old = self.blocking(move |kv| stored::list_before(kv, cutoff_us, CHUNK)).await?;
            let count = i64::try_from(old.len()).expect("a chunk is small");
            self.write(|batch| old.iter().for_each(|(token, at_us)| stored::delete(batch, token, *at_us))).await?;
            self.outcomes.count.fetch_sub(count, Ordering::Relaxed);
            if old.len() < CHUNK {
                return Ok(());
            }
        }
    }
}
