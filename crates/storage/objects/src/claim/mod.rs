//! Exclusive ownership of a storage prefix by one instance, until it is released.
//!
//! The claim is an object created by a conditional put that names its owner. Each start of the owner increments the
//! epoch and writes a new token, so that an earlier process of the same instance notices that it has been replaced.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Error, Objects, Result, Version};

#[cfg(test)]
mod tests;

/// Name of the claim object below the storage prefix.
const CLAIM_NAME: &str = "kiln-claim.json";

/// Format version of [`ClaimRecord`].
const FORMAT: u32 = 1;

/// Maximum number of attempts to read and conditionally write the claim. Only another start of the same instance can
/// make an attempt fail.
const CLAIM_ATTEMPTS_MAX: u32 = 16;

/// The exclusive right to write to a storage prefix. Dropping it does not release the prefix: the instance still owns
/// it when it restarts.
#[derive(Debug)]
pub struct StorageClaim {
    objects: Objects,
    record: ClaimRecord,
}

/// Content of the claim object. Unknown fields, which later versions may add, are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ClaimRecord {
    /// Format version.
    format: u32,
    /// The instance that owns the prefix.
    #[serde(with = "uuid_as_text")]
    instance: Uuid,
    /// Number of the instance's starts on this prefix.
    epoch: u64,
    /// Random id of this write of the record: a writer recognizes its own write after a lost response.
    #[serde(with = "uuid_as_text")]
    token: Uuid,
    /// Host and folder of the instance, for error messages.
    about: String,
    /// Time of the claim, in microseconds since 1970-01-01 UTC.
    claimed_us: i64,
}

impl StorageClaim {
    /// Claims the prefix for `instance`, or reclaims it after a restart. `about` (host and folder) describes this
    /// instance in the error that other instances get.
    ///
    /// # Errors
    /// [`Error::Claimed`] if another instance owns the prefix.
    pub async fn acquire(objects: &Objects, instance: Uuid, about: &str) -> Result<Self> {
        for _ in 0..CLAIM_ATTEMPTS_MAX {
            let found = match objects.get_versioned(CLAIM_NAME).await {
                Ok((bytes, version)) => Some((parse_record(objects, &bytes)?, version)),
                Err(Error::NotFound { .. }) => None,
                Err(error) => return Err(error),
            };
            let epoch = match &found {
                Some((record, _)) if record.instance != instance => return Err(claimed_error(objects, record)),
                Some((record, _)) => record.epoch + 1,
                None => 1,
            };
            let record = ClaimRecord {
                format: FORMAT,
                instance,
                epoch,
                token: objects.random().uuid(),
                about: about.to_owned(),
                claimed_us: objects.clock().now_us(),
            };
            if write_record(objects, &record, found.map(|(_, version)| version)).await? {
                tracing::info!(storage = %objects, %instance, epoch, "claimed the storage prefix");
                return Ok(Self { objects: objects.clone(), record });
            }
        }
        Err(Error::ClaimLost {
            storage: objects.url().to_owned(),
            instance,
            epoch: 0,
            reason: "other processes of the same instance kept claiming it concurrently".to_owned(),
        })
    }

    /// Returns the number of this start of the instance on this prefix; later starts have higher numbers.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.record.epoch
    }

    /// Checks that this process still owns the prefix; fails with [`Error::ClaimLost`] if it does not.
    pub async fn check_owned(&self) -> Result<()> {
        let found = match self.objects.get(CLAIM_NAME).await {
            Ok(bytes) => parse_record(&self.objects, &bytes)?,
            Err(Error::NotFound { .. }) => return Err(self.lost_error("its claim object was deleted".to_owned())),
            Err(error) => return Err(error),
        };
        if found.token == self.record.token {
            return Ok(());
        }
        Err(self
            .lost_error(format!("instance {} ({}) owns it with epoch {}", found.instance, found.about, found.epoch)))
    }

    /// Releases the prefix, so that another instance can claim it.
    pub async fn release(self) -> Result<()> {
        self.check_owned().await?;
        self.objects.delete(CLAIM_NAME).await
    }

    fn lost_error(&self, reason: String) -> Error {
        Error::ClaimLost {
            storage: self.objects.url().to_owned(),
            instance: self.record.instance,
            epoch: self.record.epoch,
            reason,
        }
    }
}

/// Replaces the record of `version`, or creates the first one; returns `false` if another writer was faster.
async fn write_record(objects: &Objects, record: &ClaimRecord, version: Option<Version>) -> Result<bool> {
    let bytes = Bytes::from(serde_json::to_vec_pretty(record).expect("a claim record serializes to JSON"));
    match version {
        Some(version) => Ok(objects.put_if_matches(CLAIM_NAME, bytes, &version).await?.is_some()),
        None => objects.put_if_absent(CLAIM_NAME, bytes).await,
    }
}

fn parse_record(objects: &Objects, bytes: &[u8]) -> Result<ClaimRecord> {
    let malformed = |reason: String| Error::ClaimMalformed { object: objects.object_url(CLAIM_NAME), reason };
    let record: ClaimRecord = serde_json::from_slice(bytes).map_err(|error| malformed(error.to_string()))?;
    if FORMAT < record.format {
        return Err(malformed(format!("its format is {}, but this version reads up to {FORMAT}", record.format)));
    }
    Ok(record)
}

fn claimed_error(objects: &Objects, record: &ClaimRecord) -> Error {
    Error::Claimed {
        storage: objects.url().to_owned(),
        object: objects.object_url(CLAIM_NAME),
        holder: record.instance,
        about: record.about.clone(),
    }
}

/// Serialization of ids as hyphenated text.
mod uuid_as_text {
    use serde::{Deserialize, Deserializer, Serializer, de};
    use uuid::Uuid;

    pub(super) fn serialize<S: Serializer>(id: &Uuid, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(id)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Uuid, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}
