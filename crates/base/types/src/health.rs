//! The health of a background service.

use std::fmt::Display;
use std::sync::Arc;

use parking_lot::Mutex;

/// The outcome of a service's last piece of work, as the service reports it. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Health {
    trouble: Arc<Mutex<Option<String>>>,
}

impl Health {
    /// The work succeeds.
    pub fn report_success(&self) {
        *self.trouble.lock() = None;
    }

    /// The work fails for this reason, and will be tried again.
    pub fn report_failure(&self, reason: impl Display) {
        *self.trouble.lock() = Some(reason.to_string());
    }

    /// The reason of the last failure; `None` where the work succeeds or nothing was reported yet.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().clone()
    }
}
