//! Who leads: a decision over a lease as it was read, and the clock of whoever reads it.
//!
//! Clocks of machines are never compared: a lease has run out when it has not changed for its whole duration on the reader's own monotonic clock.

use std::time::Duration;

#[cfg(test)]
mod tests;

/// What a lease says, and which version of it that was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reading {
    /// Who leads; nobody where it is empty.
    pub(super) holder: String,
    /// The API server's version of it: another one means that somebody has written it.
    pub(super) version: String,
}

/// What to do about the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Move {
    /// There is none: make it.
    Make,
    /// It is free: take it.
    Take,
    /// It is one's own: renew it.
    Renew,
    /// Somebody else leads; look again after so long.
    Wait(Duration),
}

/// What was seen of the lease so far.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The last version, and when it was first seen.
    seen: Option<(String, Duration)>,
}

impl Watch {
    /// Decides at the time `now` of a monotonic clock, for whoever is called `me`.
    pub(super) fn decide(&mut self, lease: Option<&Reading>, me: &str, duration: Duration, now: Duration) -> Move {
        let Some(lease) = lease else { return Move::Make };
        let since = match &self.seen {
            Some((version, since)) if *version == lease.version => *since,
            _ => {
                self.seen = Some((lease.version.clone(), now));
                now
            }
        };
        if lease.holder == me {
            return Move::Renew;
        }
        let left = (since + duration).saturating_sub(now);
        if lease.holder.is_empty() || left.is_zero() { Move::Take } else { Move::Wait(left) }
    }
}
