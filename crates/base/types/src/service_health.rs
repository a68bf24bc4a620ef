//! Health of a background service.

use std::fmt::Display;
use std::sync::Arc;

use parking_lot::Mutex;

/// Outcome of a service's latest work, as reported by the service. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct ServiceHealth {
    last_failure: Arc<Mutex<Option<String>>>,
}

impl ServiceHealth {
    /// Records a success.
    pub fn report_success(&self) {
        *self.last_failure.lock() = None;
    }

    /// Records a failure, after which the service will retry.
    pub fn report_failure(&self, reason: impl Display) {
        *self.last_failure.lock() = Some(reason.to_string());
    }

    /// Returns the reason of the latest failure; `None` if the latest work succeeded or nothing was reported yet.
    #[must_use]
    pub fn last_failure(&self) -> Option<String> {
        self.last_failure.lock().clone()
    }
}
