//! Archives the log: uploads its records to the bucket soon after each commit.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kv::logical_log::Record;
use tokio::runtime::{Handle, RuntimeFlavor};
use types::{Failpoint, InjectedBug, ServiceHealth, with_causes};

use crate::object_names::LogName;
use crate::{History, Result, log_object};

/// Maximum bytes of records in one object, except for a single larger record.
const LOG_OBJECT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Maximum delay between attempts after failures.
const RETRY_DELAY_MAX: Duration = Duration::from_secs(10);

impl History {
    /// Runs the service that uploads new log records soon after each commit, until the server may no longer write.
    pub async fn run_log_uploader(&self, health: &ServiceHealth) {
        let mut pause = self.settings.upload_interval;
        while !self.has_lost_write_authority() {
            match self.upload_log().await {
                Ok(()) => {
                    pause = self.settings.upload_interval;
                    health.report_success();
                }
                Err(error) => {
                    pause = (pause * 2).min(RETRY_DELAY_MAX).max(self.settings.upload_interval);
                    self.record_failure("copy the log to the storage", &error, health);
                }
            }
            self.clock.sleep(pause).await;
        }
    }

    /// Uploads all records that the log contains now.
    ///
    /// # Errors
    /// Fails if the store cannot be read or the bucket cannot be written.
    pub async fn upload_log(&self) -> Result<()> {
        let _alone = self.upload_lock.lock().await;
        let until = self.log.progress().newest_record;
        let timeline = self.timeline;
        while self.log.progress().last_archived < until {
            let log = Arc::clone(&self.log);
            let records = run_blocking(move || Ok(log.unarchived_records(LOG_OBJECT_BYTES_MAX)?)).await?;
            let (Some(first), Some(last)) = (records.first(), records.last()) else { break };
            Failpoint::LogRead.pass();
            let name = LogName { timeline, first_record: record_number(first)?, last_record: record_number(last)? };
            let instance = self.settings.instance;
            let bytes = run_blocking(move || Ok(log_object::encode(instance, name, &records))).await?;
            self.write_authority.check().await?;
            if InjectedBug::MarkedArchivedTooEarly.is_active() {
                self.log.mark_archived(name.last_record);
            }
            self.objects.put(&name.object(), bytes).await?;
            Failpoint::LogCopied.pass();
            self.log.mark_archived(name.last_record);
            let mut status = self.status.lock();
            status.uploads += 1;
            status.last_upload_us = Some(self.clock.now_us());
            status.last_error = None;
        }
        Ok(())
    }

    pub(crate) fn record_failure(&self, step: &str, error: &crate::HistoryError, health: &ServiceHealth) {
        tracing::warn!(
            error = error as &dyn std::error::Error,
            "could not archive the warehouse's history: failed to {step}; the server retries"
        );
        let reason = with_causes(error);
        health.report_failure(&reason);
        let mut status = self.status.lock();
        status.failures += 1;
        status.last_error = Some(reason);
    }
}

fn record_number(record: &Bytes) -> Result<u64> {
    Ok(Record::parse(record)?.number)
}

/// Runs `step` on a thread that may block on a disk.
pub(crate) async fn run_blocking<T: Send + 'static>(step: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    // A current-thread runtime belongs to a test or simulation, whose order of steps must not depend on a second
    // thread.
    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        return step();
    }
    tokio::task::spawn_blocking(step)
        .await
        .expect("invariant of blocking steps: they do not panic and are cancelled only at process exit")
}
