//! What is said. As JSON, which a later version may add to: what it does not know it passes over.

use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cluster_model::{ClusterId, WorkerId};
use exchange::NewShards;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The version of all this. An instance takes no other.
pub(crate) const PROTOCOL: u32 = 1;

/// The worker's first word, which all versions understand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) protocol: u32,
    /// The program's.
    pub(crate) version: String,
    pub(crate) worker: WorkerId,
    /// The ticket's; `None` for one that comes back with its certificate, or shows a token.
    pub(crate) secret: Option<Base64>,
    /// Of one that nobody has invited: by it somebody else says who it is. Its id is one that it has drawn.
    #[serde(default)]
    pub(crate) token: Option<Token>,
    /// The key that its certificate is to be for: a point of P-256, uncompressed.
    pub(crate) public_key: Base64,
}

/// What a worker says after it is welcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FromWorker {
    Joined(Joined),
    Beat(Beat),
    TookOver(TookOver),
    /// It was told to go, by whoever is in charge of its process: it wants nothing more to do, and to be told when it may end.
    Leaving,
}

/// It takes tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Joined {
    /// `host:port` where it does.
    pub(crate) address: String,
}

/// How it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Beat {
    /// Queries of which it runs tasks.
    pub(crate) running: u32,
    pub(crate) cache_bytes: u64,
    /// How often its tasks found a block in its memory, and how often they did not.
    #[serde(default)]
    pub(crate) cache_hits: u64,
    #[serde(default)]
    pub(crate) cache_misses: u64,
    /// Of the shards that it was told of those that it has opened, the blocks that it has read of them before anybody asked, and those of which it left
    /// something out.
    #[serde(default)]
    pub(crate) ahead_shards: u64,
    #[serde(default)]
    pub(crate) ahead_blocks: u64,
    #[serde(default)]
    pub(crate) ahead_dropped: u64,
    /// What its tasks have of its memory.
    pub(crate) memory_bytes: u64,
}

/// It has what others had in their caches, as far as they gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TookOver {
    /// The one of what it was told.
    pub(crate) number: u64,
    pub(crate) blocks: u64,
    pub(crate) bytes: u64,
}

/// What an instance says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FromInstance {
    Welcome(Box<Welcome>),
    /// It is none of the instance's workers and may end; for this reason.
    Refused(String),
    /// An answer to each beat.
    Heard,
    /// It has this from now on.
    Configure(Means),
    /// It is about to own parts that others own.
    TakeOver(TakeOver),
    /// It gets nothing more to do.
    Drain,
    /// It ends, with all that runs on it.
    Stop,
    /// What it shows to others from now on.
    Certificate(Base64),
}

/// Whose parts a worker is to own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TakeOver {
    pub(crate) number: u64,
    /// The addresses for tasks of those that own them until then.
    pub(crate) from: Vec<String>,
    /// The slots of the cluster among which parts are placed then, its own among them.
    pub(crate) slots: Vec<u32>,
}

/// What an instance says over a connection of its own: these shards a table has since lately, and parts are placed among these slots.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Loaded {
    pub(crate) slots: Vec<u32>,
    pub(crate) new: NewShards,
}

/// What a worker is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Welcome {
    pub(crate) certificate: Base64,
    pub(crate) place: Place,
    pub(crate) means: Means,
}

/// Whose place it takes, and over which data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) cluster: ClusterId,
    pub(crate) slot: u32,
    /// As `kiln serve --storage` takes it. Credentials come from the worker's own environment.
    pub(crate) storage: String,
    /// Where each slot has folders of its own, for its cache and for what it spills; who has a disk of its own takes that.
    pub(crate) folder: PathBuf,
    /// Left free on that disk.
    pub(crate) reserve_bytes: u64,
}

/// What it has of its machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Means {
    pub(crate) cores: u32,
    /// For its tasks.
    pub(crate) memory_bytes: u64,
    /// For columns that they have read.
    pub(crate) cache_bytes: u64,
    /// How much of its disk more of them may take, where the next does not say it: bytes, and one of so many parts of what is free.
    pub(crate) cache_disk_bytes: u64,
    pub(crate) cache_disk_part: u64,
    pub(crate) max_cache_pct: Option<u8>,
    pub(crate) max_spill_pct: Option<u8>,
}

/// A token, as text.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Token(pub(crate) String);

/// It is secret.
impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// Bytes as text.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Base64(pub(crate) Vec<u8>);

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        STANDARD.decode(text).map(Self).map_err(serde::de::Error::custom)
    }
}

/// They may be secret.
impl std::fmt::Debug for Base64 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use serde::de::DeserializeOwned;

    use super::*;

    /// A message is what it was in every version of the protocol: no field reads as empty because it was renamed.
    #[track_caller]
    fn check<M: Serialize + DeserializeOwned + PartialEq + Debug>(message: &M, sent: &str) {
        assert_eq!(serde_json::from_str::<M>(sent).expect("it reads"), *message, "{sent}");
        assert_eq!(serde_json::to_string(message).expect("it writes"), sent);
    }

    fn bytes() -> Base64 {
        Base64(vec![0, 1, 255])
    }

    #[test]
    fn messages_of_workers_are_sent_as_ever() {
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
        let beat = Beat {
            running: 1,
            cache_bytes: 2,
            cache_hits: 3,
            cache_misses: 4,
            ahead_shards: 5,
            ahead_blocks: 6,
            ahead_dropped: 7,
            memory_bytes: 8,
        };
        let sent = concat!(
            r#"{"beat":{"running":1,"cache_bytes":2,"cache_hits":3,"cache_misses":4,"#,
            r#""ahead_shards":5,"ahead_blocks":6,"ahead_dropped":7,"memory_bytes":8}}"#
        );
        check(&FromWorker::Beat(beat), sent);
        let took_over = TookOver { number: 1, blocks: 2, bytes: 3 };
        check(&FromWorker::TookOver(took_over), r#"{"took_over":{"number":1,"blocks":2,"bytes":3}}"#);
        check(&FromWorker::Leaving, r#""leaving""#);
    }

    #[test]
    fn messages_of_instances_are_sent_as_ever() {
        let means = Means {
            cores: 1,
            memory_bytes: 2,
            cache_bytes: 3,
            cache_disk_bytes: 4,
            cache_disk_part: 5,
            max_cache_pct: Some(6),
            max_spill_pct: Some(7),
        };
        let means_sent = concat!(
            r#"{"cores":1,"memory_bytes":2,"cache_bytes":3,"cache_disk_bytes":4,"cache_disk_part":5,"#,
            r#""max_cache_pct":6,"max_spill_pct":7}"#
        );
        let place = Place {
            cluster: ClusterId(1),
            slot: 2,
            storage: "file:///s".to_owned(),
            folder: "/f".into(),
            reserve_bytes: 3,
        };
        let place_sent = r#"{"cluster":1,"slot":2,"storage":"file:///s","folder":"/f","reserve_bytes":3}"#;
        check(
            &FromInstance::Welcome(Box::new(Welcome { certificate: bytes(), place, means })),
            &format!(r#"{{"welcome":{{"certificate":"AAH/","place":{place_sent},"means":{means_sent}}}}}"#),
        );
        check(&FromInstance::Configure(means), &format!(r#"{{"configure":{means_sent}}}"#));
        check(&FromInstance::Refused("why".to_owned()), r#"{"refused":"why"}"#);
        let take_over = TakeOver { number: 1, from: vec!["h:1".to_owned()], slots: vec![0, 1] };
        check(&FromInstance::TakeOver(take_over), r#"{"take_over":{"number":1,"from":["h:1"],"slots":[0,1]}}"#);
        check(&FromInstance::Heard, r#""heard""#);
        check(&FromInstance::Drain, r#""drain""#);
        check(&FromInstance::Stop, r#""stop""#);
        check(&FromInstance::Certificate(bytes()), r#"{"certificate":"AAH/"}"#);
    }
}
