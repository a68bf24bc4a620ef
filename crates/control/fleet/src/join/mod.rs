//! Join protocol between a worker and its instance, over one long-lived TLS connection.
//!
//! The worker connects and identifies itself with [`Hello`]: the first time with the secret of its ticket or a token,
//! later with its certificate. The instance answers with [`Welcome`]: certificate, slot and resources. The worker
//! reports its task address with [`Joined`] and then sends a heartbeat ([`Beat`]) every second. Either side closes the
//! connection when it has heard nothing for [`SILENCE_MAX`], and the worker connects again. New shards ([`Loaded`]) are
//! announced over separate connections to the worker's task listener, so that they do not delay heartbeats.
//!
//! `message.rs` has the messages, `frame.rs` their framing and `reception.rs` the instance's end; the worker's end is
//! `worker/link.rs`.

mod frame;
mod message;
mod reception;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub(crate) use frame::{FrameError, read, write};
pub(crate) use message::{
    Base64, Beat, FromInstance, FromWorker, Hello, Joined, Loaded, Means, PROTOCOL, Place, TakeOver, Token, TookOver,
    Welcome,
};
pub(crate) use reception::{Desk, LinkNumber, receive};

/// Interval of heartbeats.
pub(crate) const BEAT_EVERY: Duration = Duration::from_secs(1);
/// Silence after which a connection counts as broken.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Time limit for the hello message and its answer.
pub(crate) const HELLO_TIME_MAX: Duration = Duration::from_secs(5);
