//! What a worker and its instance say to each other, over one TLS connection for as long as both live.
//!
//! The worker dials and says who it is ([`Hello`]): the first time by the secret of its ticket, or by a token that others vouch for, later by its certificate. The instance answers with
//! what it is to be ([`Welcome`]), the worker says where its tasks are taken ([`Joined`]), and from then on each second how it is ([`Beat`]). A
//! connection that breaks is made again; who hears nothing for a while breaks it. What was loaded ([`Loaded`]) goes over connections that the instance dials
//! where tasks are taken: it must not keep other words waiting.
//!
//! `message.rs` is what is said, `frame.rs` how it lies on the wire, `reception.rs` the instance's end. The worker's is `worker/link.rs`.

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

/// Between a worker's words on how it is.
pub(crate) const BEAT_EVERY: Duration = Duration::from_secs(1);
/// Who says nothing for so long is not there any more, and the connection is broken.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Who has connected says who it is within this.
pub(crate) const HELLO_TIME_MAX: Duration = Duration::from_secs(5);
