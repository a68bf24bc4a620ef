//! Join protocol between a worker and its instance, over one long-lived TLS connection.
//!
//! The worker connects and identifies itself with [`Hello`]: the first time with the secret of its ticket or a token,
//! later with its certificate. The instance answers with [`Welcome`]: certificate, slot and resources. The worker
//! reports its task address with [`Joined`] and then sends a heartbeat ([`Heartbeat`]) every second. Either side closes
//! the connection when it has heard nothing for [`SILENCE_TIMEOUT`], and the worker connects again. New shards
//! ([`ShardAnnouncement`]) are announced over separate connections to the worker's task listener, so that they do not
//! delay heartbeats.
//!
//! `messages.rs` has the messages, `message_framing.rs` their framing and `server.rs` the instance's end; the worker's
//! end is `worker/instance_connection.rs`.

mod message_framing;
mod messages;
mod server;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub(crate) use message_framing::{FrameError, read_message, write_message};
pub(crate) use messages::{
    Base64Bytes, FromInstance, FromWorker, HandoverReport, HandoverRequest, Heartbeat, Hello, Joined, PROTOCOL_VERSION,
    ShardAnnouncement, Token, Welcome, WorkerAssignment, WorkerResources,
};
pub(crate) use server::{ConnectionNumber, WorkerRegistry, serve_join};

/// Interval of heartbeats.
pub(crate) const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// Silence after which a connection counts as broken.
pub(crate) const SILENCE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for the hello message and its answer.
pub(crate) const HELLO_TIMEOUT: Duration = Duration::from_secs(5);
