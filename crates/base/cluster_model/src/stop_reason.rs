//! Reasons for stopping a worker.

use std::fmt;

/// Reason for stopping a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// Draining is complete.
    Drained,
    /// Draining exceeded its grace period.
    GracePeriodExceeded,
    /// A starting worker is not needed any more.
    Unwanted,
    /// A starting worker runs another version.
    OtherVersion,
    /// The worker did not join in time.
    JoinTimeout,
    /// The worker does not answer.
    Hung,
}

impl StopReason {
    /// Whether the reason is a failure, so that the slot's next worker starts after a backoff.
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(self, Self::JoinTimeout | Self::Hung)
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Drained => "drained",
            Self::GracePeriodExceeded => "drain grace period is over",
            Self::Unwanted => "not needed",
            Self::OtherVersion => "another version",
            Self::JoinTimeout => "did not join in time",
            Self::Hung => "did not answer",
        })
    }
}
