//! Who may write to a storage prefix: one instance, until it is released.
//!
//! The claim is an object that is made by a conditional put and names its holder. Each start of the holder raises the epoch
//! and writes a new token, so that an earlier life of the same instance finds out that it is over.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Error, Objects, Result, Version};

#[cfg(test)]
mod tests;

/// The name of the claim below the storage prefix.
const NAME: &str = "kiln-claim.json";

/// The layout of [`Record`].
const FORMAT: u32 = 1;

/// Rounds of reading and conditionally writing before giving up. Each round is lost only to another start of this instance.
const ROUND_COUNT_MAX: u32 = 16;

/// The right to write to a storage prefix. Dropping it releases nothing: the prefix stays with the instance, which comes back.
#[derive(Debug)]
pub struct Claim {
    objects: Objects,
    record: Record,
}

/// What the claim object says. Fields that a later version adds do not disturb this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    format: u32,
    /// The instance that holds the prefix.
    #[serde(with = "as_text")]
    instance: Uuid,
    /// How often the instance has started here.
    epoch: u64,
    /// Drawn for each write of the record, so that a writer recognises its own after a lost answer.
    #[serde(with = "as_text")]
    token: Uuid,
    /// Host and folder of the instance, for people.
    about: String,
    /// Microseconds since 1970-01-01 UTC.
    claimed_us: i64,
}

impl Claim {
    /// Takes the prefix for `instance`, or takes it again after a restart. [`Error::Claimed`] where another instance has it;
    /// `about` (a host, a folder) is what that error will tell others about this one.
    pub async fn acquire(objects: &Objects, instance: Uuid, about: &str) -> Result<Self> {
        for _ in 0..ROUND_COUNT_MAX {
            let found = match objects.get_versioned(NAME).await {
                Ok((bytes, version)) => Some((parse(objects, &bytes)?, version)),
                Err(Error::NotFound { .. }) => None,
                Err(error) => return Err(error),
            };
            let epoch = match &found {
                Some((record, _)) if record.instance != instance => return Err(claimed(objects, record)),
                Some((record, _)) => record.epoch + 1,
                None => 1,
            };
            let record = Record {
                format: FORMAT,
                instance,
                epoch,
                token: objects.random().uuid(),
                about: about.to_owned(),
                claimed_us: objects.clock().now_us(),
            };
            if write(objects, &record, found.map(|(_, version)| version)).await? {
                tracing::info!(storage = %objects, %instance, epoch, "claimed the storage");
                return Ok(Self { objects: objects.clone(), record });
            }
        }
        Err(Error::ClaimLost {
            storage: objects.url().to_owned(),
            instance,
            epoch: 0,
            now: "other processes of the same instance keep starting".to_owned(),
        })
    }

    /// Starts of this instance on this prefix, this one included. Later starts have higher ones.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.record.epoch
    }

    /// Fails with [`Error::ClaimLost`] unless the prefix is still held by this very start of the instance.
    pub async fn check(&self) -> Result<()> {
        let found = match self.objects.get(NAME).await {
            Ok(bytes) => parse(&self.objects, &bytes)?,
            Err(Error::NotFound { .. }) => return Err(self.lost("nobody holds it".to_owned())),
            Err(error) => return Err(error),
        };
        if found.token == self.record.token {
            return Ok(());
        }
        Err(self.lost(format!("instance {} ({}) holds it with epoch {}", found.instance, found.about, found.epoch)))
    }

    /// Gives the prefix up, so that another instance may take it.
    pub async fn release(self) -> Result<()> {
        self.check().await?;
        self.objects.delete(NAME).await
    }

    fn lost(&self, now: String) -> Error {
        Error::ClaimLost {
            storage: self.objects.url().to_owned(),
            instance: self.record.instance,
            epoch: self.record.epoch,
            now,
        }
    }
}

/// Writes `record` over the one of `version`, or where there was none; `false` where somebody else was faster.
async fn write(objects: &Objects, record: &Record, version: Option<Version>) -> Result<bool> {
    let bytes = Bytes::from(serde_json::to_vec_pretty(record).expect("a record is text and numbers"));
    match version {
        Some(version) => Ok(objects.put_if_matches(NAME, bytes, &version).await?.is_some()),
        None => objects.put_if_absent(NAME, bytes).await,
    }
}

fn parse(objects: &Objects, bytes: &[u8]) -> Result<Record> {
    let malformed = |reason: String| Error::ClaimMalformed { object: objects.object_url(NAME), reason };
    let record: Record = serde_json::from_slice(bytes).map_err(|error| malformed(error.to_string()))?;
    if FORMAT < record.format {
        return Err(malformed(format!("its format is {}, and this version reads up to {FORMAT}", record.format)));
    }
    Ok(record)
}

fn claimed(objects: &Objects, record: &Record) -> Error {
    Error::Claimed {
        storage: objects.url().to_owned(),
        object: objects.object_url(NAME),
        holder: record.instance,
        about: record.about.clone(),
    }
}

/// Ids as people read them.
mod as_text {
    use serde::{Deserialize, Deserializer, Serializer, de};
    use uuid::Uuid;

    pub(super) fn serialize<S: Serializer>(id: &Uuid, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(id)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Uuid, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}
