//! Leader election: decides what to do about the lease, given the lease as read and the reader's clock.
//!
//! Clocks of different machines are never compared: a lease has expired when it has not changed for its duration on the
//! reader's own monotonic clock.

use std::time::Duration;

#[cfg(test)]
mod tests;

/// Holder and version of a lease, as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObservedLease {
    /// Identity of the leader; empty if the lease is free.
    pub(super) holder: String,
    /// Resource version. It changes whenever the lease is written.
    pub(super) version: String,
}

/// Next action of an operator on the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeaseAction {
    /// Create the lease, which does not exist.
    Create,
    /// Take over the lease, which is free or has expired.
    TakeOver,
    /// Renew the lease, which this operator holds.
    Renew,
    /// Wait: another operator leads. The duration is the time until its lease expires.
    Wait(Duration),
}

/// Observations of the lease by one operator.
#[derive(Debug, Default)]
pub(super) struct LeaseObserver {
    /// Latest version, and the time at which it was first seen.
    last_change: Option<(String, Duration)>,
}

impl LeaseObserver {
    /// Decides what the operator `me` does at the time `now` of a monotonic clock.
    pub(super) fn decide(
        &mut self,
        lease: Option<&ObservedLease>,
        me: &str,
        duration: Duration,
        now: Duration,
    ) -> LeaseAction {
        let Some(lease) = lease else { return LeaseAction::Create };
        let since = match &self.last_change {
            Some((version, since)) if *version == lease.version => *since,
            _ => {
                self.last_change = Some((lease.version.clone(), now));
                now
            }
        };
        if lease.holder == me {
            return LeaseAction::Renew;
        }
        let left = (since + duration).saturating_sub(now);
        if lease.holder.is_empty() || left.is_zero() { LeaseAction::TakeOver } else { LeaseAction::Wait(left) }
    }
}
