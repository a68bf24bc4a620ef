//! Messages of the join protocol, as JSON. Unknown fields are ignored, so a later version may add some.

use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cluster_model::{ClusterId, WorkerId, WorkerOptions};
use exchange::NewShards;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Protocol version. An instance refuses workers of any other version.
pub(crate) const PROTOCOL_VERSION: u32 = 1;

/// First message of a worker, whose form never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// Protocol version; see [`PROTOCOL_VERSION`].
    pub(crate) protocol: u32,
    /// Version of the program.
    pub(crate) version: String,
    /// Id from the ticket, or a random one for a worker that joins with a token.
    pub(crate) worker: WorkerId,
    /// Secret of the ticket; `None` for a worker that rejoins with its certificate or joins with a token.
    pub(crate) secret: Option<Base64Bytes>,
    /// Token of a worker that the instance has not started.
    #[serde(default)]
    pub(crate) token: Option<Token>,
    /// Public key for the worker's certificate: an uncompressed P-256 point.
    pub(crate) public_key: Base64Bytes,
}

/// Message of a worker that has joined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FromWorker {
    Joined(Joined),
    #[serde(rename = "beat")]
    Heartbeat(Heartbeat),
    #[serde(rename = "took_over")]
    HandoverDone(HandoverReport),
    /// Request to be drained and stopped, after the process has got a termination signal.
    #[serde(rename = "leaving")]
    DrainRequest,
}

/// Report that the worker accepts tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Joined {
    /// `host:port` of the task listener.
    pub(crate) address: String,
}

/// Heartbeat with the worker's statistics. Counters are since the worker's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Heartbeat {
    /// Queries that have tasks running on the worker.
    pub(crate) running: u32,
    /// Bytes of the cache in memory.
    pub(crate) cache_bytes: u64,
    /// Block lookups that were served from memory.
    #[serde(default)]
    pub(crate) cache_hits: u64,
    /// Block lookups that were not served from memory.
    #[serde(default)]
    pub(crate) cache_misses: u64,
    /// Announced shards that the worker has opened.
    #[serde(default, rename = "ahead_shards")]
    pub(crate) prewarmed_shards: u64,
    /// Blocks of announced shards that were read ahead of any query.
    #[serde(default, rename = "ahead_blocks")]
    pub(crate) prewarmed_blocks: u64,
    /// Announced shards that were not or not wholly read ahead.
    #[serde(default, rename = "ahead_dropped")]
    pub(crate) prewarming_skipped: u64,
    /// Memory used by tasks, in bytes.
    pub(crate) memory_bytes: u64,
}

/// Report that a cache hand-over has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HandoverReport {
    /// Number of the [`HandoverRequest`] message.
    pub(crate) number: u64,
    /// Blocks that were added to the cache.
    pub(crate) blocks: u64,
    /// Encoded bytes of these blocks.
    pub(crate) bytes: u64,
}

/// Message of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FromInstance {
    Welcome(Box<Welcome>),
    /// Refusal of a join, with the reason.
    Refused(String),
    /// Acknowledgement of a heartbeat.
    #[serde(rename = "heard")]
    HeartbeatReceived,
    /// New resources.
    Configure(WorkerResources),
    /// Request to warm the cache from other workers.
    #[serde(rename = "take_over")]
    StartHandover(HandoverRequest),
    /// Notice that the worker gets no more tasks.
    Drain,
    /// Order to exit, with all tasks that still run.
    Stop,
    /// Renewed certificate.
    Certificate(Base64Bytes),
}

/// Request to warm the cache with the blocks that the worker will own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HandoverRequest {
    /// Number of the request, repeated in [`HandoverReport`].
    pub(crate) number: u64,
    /// Task URLs of the workers that own the parts so far.
    pub(crate) from: Vec<String>,
    /// Slots of the cluster's next placement, including the worker's own slot.
    pub(crate) slots: Vec<u32>,
}

/// Announcement of a table's new shards, sent over a connection of its own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ShardAnnouncement {
    /// Slots among which the cluster's parts are placed.
    pub(crate) slots: Vec<u32>,
    pub(crate) new: NewShards,
}

/// Acceptance of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Welcome {
    pub(crate) certificate: Base64Bytes,
    #[serde(rename = "place")]
    pub(crate) assignment: WorkerAssignment,
    #[serde(rename = "means")]
    pub(crate) resources: WorkerResources,
}

/// Assignment of a worker: its slot, storage and folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkerAssignment {
    pub(crate) cluster: ClusterId,
    pub(crate) slot: u32,
    /// Storage URL as for `kiln serve --storage`. Credentials come from the worker's own environment.
    pub(crate) storage: String,
    /// Parent of the slots' folders for cache and spill files, unless the worker was started with a folder of its own.
    pub(crate) folder: PathBuf,
    /// Bytes to keep free on that disk.
    pub(crate) reserve_bytes: u64,
}

/// Resources of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkerResources {
    /// Number of query threads.
    pub(crate) cores: u32,
    /// Memory for tasks, in bytes.
    pub(crate) memory_bytes: u64,
    /// Memory for the cache, in bytes.
    pub(crate) cache_bytes: u64,
    /// Disk space for the cache in bytes, if `max_cache_pct` is `None`; 0 disables the cache on disk in any case.
    pub(crate) cache_disk_bytes: u64,
    /// Divisor of the free disk space that the cache may use, if `max_cache_pct` is `None`.
    #[serde(rename = "cache_disk_part")]
    pub(crate) cache_disk_divisor: u64,
    #[serde(flatten)]
    pub(crate) options: WorkerOptions,
}

/// Token, as text.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Token(pub(crate) String);

/// Omits the token, which is secret.
impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// Bytes that are serialized as base64.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Base64Bytes(pub(crate) Vec<u8>);

impl Serialize for Base64Bytes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64Bytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        STANDARD.decode(text).map(Self).map_err(serde::de::Error::custom)
    }
}

/// Omits the bytes, which may be secret.
impl std::fmt::Debug for Base64Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use serde::de::DeserializeOwned;

    use super::*;

    /// Pins the JSON of a message, so that a renamed field does not silently read as empty in another version.
    #[track_caller]
    fn check<M: Serialize + DeserializeOwned + PartialEq + Debug>(message: &M, sent: &str) {
        assert_eq!(serde_json::from_str::<M>(sent).expect("deserialize the message"), *message, "{sent}");
        assert_eq!(serde_json::to_string(message).expect("serialize the message"), sent);
    }

    fn bytes() -> Base64Bytes {
        Base64Bytes(vec![0, 1, 255])
    }

    #[test]
    fn the_form_of_worker_messages_is_stable() {
        let hello = Hello {
            protocol: 1,
            version: "1.2.3".to_owned(),
            worker: WorkerId(5),
            secret: Some(bytes()),
            token: Some(Token("t".to_owned())),
            public_key: bytes(),
        };
        check(&hello, r#"{"protocol":1,"version":"1.2.3","worker":5,"secret":"AAH/","token":"t","public_key":"AAH/"}"#);
        check(&FromWorker::Joined(Joined { address: "h:1".to_owned() }), r#"{"joined":{"address":"h:1"}}"#);
        let beat = Heartbeat {
            running: 1,
            cache_bytes: 2,
            cache_hits: 3,
            cache_misses: 4,
            prewarmed_shards: 5,
            prewarmed_blocks: 6,
            prewarming_skipped: 7,
            memory_bytes: 8,
        };
        let sent = concat!(
            r#"{"beat":{"running":1,"cache_bytes":2,"cache_hits":3,"cache_misses":4,"#,
            r#""ahead_shards":5,"ahead_blocks":6,"ahead_dropped":7,"memory_bytes":8}}"#
        );
        check(&FromWorker::Heartbeat(beat), sent);
        let took_over = HandoverReport { number: 1, blocks: 2, bytes: 3 };
        check(&FromWorker::HandoverDone(took_over), r#"{"took_over":{"number":1,"blocks":2,"bytes":3}}"#);
        check(&FromWorker::DrainRequest, r#""leaving""#);
    }

    #[test]
    fn the_form_of_instance_messages_is_stable() {
        let resources = WorkerResources {
            cores: 1,
            memory_bytes: 2,
            cache_bytes: 3,
            cache_disk_bytes: 4,
            cache_disk_divisor: 5,
            options: WorkerOptions { max_spill_pct: Some(6), max_cache_pct: Some(7) },
        };
        let means_sent = concat!(
            r#"{"cores":1,"memory_bytes":2,"cache_bytes":3,"cache_disk_bytes":4,"cache_disk_part":5,"#,
            r#""max_spill_pct":6,"max_cache_pct":7}"#
        );
        let assignment = WorkerAssignment {
            cluster: ClusterId(1),
            slot: 2,
            storage: "file:///s".to_owned(),
            folder: "/f".into(),
            reserve_bytes: 3,
        };
        let place_sent = r#"{"cluster":1,"slot":2,"storage":"file:///s","folder":"/f","reserve_bytes":3}"#;
        check(
            &FromInstance::Welcome(Box::new(Welcome { certificate: bytes(), assignment, resources })),
            &format!(r#"{{"welcome":{{"certificate":"AAH/","place":{place_sent},"means":{means_sent}}}}}"#),
        );
        check(&FromInstance::Configure(resources), &format!(r#"{{"configure":{means_sent}}}"#));
        check(&FromInstance::Refused("why".to_owned()), r#"{"refused":"why"}"#);
        let take_over = HandoverRequest { number: 1, from: vec!["h:1".to_owned()], slots: vec![0, 1] };
        check(&FromInstance::StartHandover(take_over), r#"{"take_over":{"number":1,"from":["h:1"],"slots":[0,1]}}"#);
        check(&FromInstance::HeartbeatReceived, r#""heard""#);
        check(&FromInstance::Drain, r#""drain""#);
        check(&FromInstance::Stop, r#""stop""#);
        check(&FromInstance::Certificate(bytes()), r#"{"certificate":"AAH/"}"#);
    }
}
