//! Copies the store's log to the bucket, soon after each commit.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kv::log::Record;
use tokio::runtime::{Handle, RuntimeFlavor};
use types::{Failpoint, Health, Mutation, with_causes};

use crate::names::LogName;
use crate::{History, Result, log_object};

/// Bytes of records in one object, but for a single longer one.
const OBJECT_BYTES: usize = 8 * 1024 * 1024;
/// After a failure the next attempt waits at most so long.
const PAUSE_MAX: Duration = Duration::from_secs(10);

impl History {
    /// Copies the log to the bucket, soon after each commit, for as long as the server may write.
    pub async fn keep_copied(&self, health: &Health) {
        let mut pause = self.settings.upload_every;
        while !self.is_over() {
            match self.upload().await {
                Ok(()) => {
                    pause = self.settings.upload_every;
                    health.report_success();
                }
                Err(error) => {
                    pause = (pause * 2).min(PAUSE_MAX).max(self.settings.upload_every);
                    self.failed("copy the log to the storage", &error, health);
                }
            }
            self.clock.sleep(pause).await;
        }
    }

    /// Copies every record that is in the log by now.
    ///
    /// # Errors
    /// Where the store cannot be read or the bucket cannot be written.
    pub async fn upload(&self) -> Result<()> {
        let _alone = self.uploading.lock().await;
        let until = self.log.position().newest;
        let timeline = self.timeline;
        while self.log.position().copied < until {
            let log = Arc::clone(&self.log);
            let records = blocking(move || Ok(log.waiting(OBJECT_BYTES)?)).await?;
            let (Some(first), Some(last)) = (records.first(), records.last()) else { break };
            Failpoint::LogRead.pass();
            let name = LogName { timeline, first: number(first)?, last: number(last)? };
            let instance = self.settings.instance;
            let bytes = blocking(move || Ok(log_object::encode(instance, name, &records))).await?;
            self.tenure.check().await?;
            if Mutation::CopiedTooEarly.is_on() {
                self.log.copied_to(name.last);
            }
            self.objects.put(&name.object(), bytes).await?;
            Failpoint::LogCopied.pass();
            self.log.copied_to(name.last);
            let mut status = self.status.lock();
            status.uploads += 1;
            status.last_upload_us = Some(self.clock.now_us());
            status.last_error = None;
        }
        Ok(())
    }

    pub(crate) fn failed(&self, step: &str, error: &crate::HistoryError, health: &Health) {
        tracing::warn!(error = error as &dyn std::error::Error, "failed to {step}; it is tried again");
        let reason = with_causes(error);
        health.report_failure(&reason);
        let mut status = self.status.lock();
        status.failures += 1;
        status.last_error = Some(reason);
    }
}

fn number(record: &Bytes) -> Result<u64> {
    Ok(Record::parse(record)?.number)
}

/// Runs `step` where it may wait for a disk.
pub(crate) async fn blocking<T: Send + 'static>(step: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    // A runtime of one thread is a test's, and a simulation's steps must not depend on a second thread.
    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        return step();
    }
    tokio::task::spawn_blocking(step)
        .await
        .expect("the step does not panic, and is cancelled only when the process ends")
}
