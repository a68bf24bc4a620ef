//! Storage check: compares the objects in the bucket with the catalog and the store's records. Each object belongs to
//! exactly one class.

use futures::future::BoxFuture;
use history::is_history_object;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use objects::ObjectInfo;
use types::CommitTs;

use crate::garbage_records;
use crate::{Error, Result, Transactions};

/// Object by which a server claims the storage.
const CLAIM_OBJECT: &str = "kiln-claim.json";

/// Class of an object in the storage, by what references it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StorageClass {
    /// Objects that a table references.
    Referenced,
    /// Objects that no table references any more but a snapshot within the retention does.
    Retained,
    /// Announced by a running transaction, or by a failed one that is not cleaned up yet.
    InFlight,
    /// Archived log of commits.
    Log,
    /// Checkpoints of the store.
    Checkpoint,
    /// The claim of the server that may write.
    Claim,
    /// Objects that nothing references.
    Orphan,
    /// Objects that a table references and the bucket lacks.
    Missing,
    /// Sum over all objects in the bucket.
    Total,
}

impl StorageClass {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Referenced => "referenced",
            Self::Retained => "retained",
            Self::InFlight => "in flight",
            Self::Log => "log",
            Self::Checkpoint => "checkpoint",
            Self::Claim => "claim",
            Self::Orphan => "orphan",
            Self::Missing => "missing",
            Self::Total => "total",
        }
    }
}

/// Row of the report: a class of objects, or a single orphan or missing object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageRow {
    pub class: StorageClass,
    /// Object name, for orphans and missing objects.
    pub object: Option<String>,
    pub objects: u64,
    pub bytes: u64,
    /// The latest time until which objects of the class are retained, in microseconds since 1970.
    pub retained_until_us: Option<i64>,
    /// Time of an orphan's last write, in microseconds since 1970.
    pub modified_us: Option<i64>,
}

/// Objects that the catalog and the store's records reference.
struct StorageReferences {
    /// Sizes of the objects that tables reference, by name.
    referenced: HashMap<String, u64>,
    /// Time until which objects are retained, in microseconds since 1970, by name. Objects that no committed state ever
    /// referenced are not among them.
    retained: HashMap<String, i64>,
    in_flight: HashSet<String>,
}

impl Transactions {
    /// Lists the whole bucket and classifies its objects: one row per class, one per orphan, one per missing object,
    /// and the total.
    ///
    /// # Errors
    /// Fails if the bucket or the store cannot be read.
    pub fn check_storage(&self) -> BoxFuture<'_, Result<Vec<StorageRow>>> {
        Box::pin(self.check_storage_unboxed())
    }

    async fn check_storage_unboxed(&self) -> Result<Vec<StorageRow>> {
        let core = &self.core;
        // Held so that nothing is deleted meanwhile.
        let _alone = core.cleaning_lock.lock().await;
        // The order matters: an object referenced before the listing must be in it, and an object in the listing is
        // referenced after it unless it is an orphan.
        let before = core.snapshots.pin_newest();
        let needed: Vec<String> = before
            .state
            .tables()
            .flat_map(|table| before.state.shards(table.oid).shards.objects())
            .map(Cow::into_owned)
            .collect();
        let listed = core.objects.list("").await.map_err(Error::ListObjects)?;
        let mut in_flight = core.uploads.announced_objects();
        let now = core.snapshots.pin_newest();
        let shards = now.state.tables().map(|table| &now.state.shards(table.oid).shards);
        let shards = shards.flat_map(|shards| shards.objects().zip(shards.sizes()));
        let referenced = shards.map(|(object, size)| (object.into_owned(), size.bytes)).collect();
        let kept_us = core.object_retention_us();
        let garbage =
            core.blocking(|kv| garbage_records::read(kv, None, CommitTs(u64::MAX - 1), i64::MAX, usize::MAX)).await?;
        let mut retained = HashMap::new();
        for garbage in garbage {
            match garbage.referenced_until_us {
                Some(us) => drop(retained.insert(garbage.object, us.saturating_add(kept_us))),
                None => drop(in_flight.insert(garbage.object)),
            }
        }
        Ok(StorageReferences { referenced, retained, in_flight }.classify(&needed, listed))
    }
}

impl StorageReferences {
    fn classify(&self, needed: &[String], listed: Vec<ObjectInfo>) -> Vec<StorageRow> {
        let mut classes: BTreeMap<StorageClass, StorageRow> = BTreeMap::new();
        let (mut orphans, mut names) = (Vec::new(), HashSet::new());
        let mut total = empty_row(StorageClass::Total);
        for object in listed {
            let (class, kept_until_us) = self.storage_class(&object.name);
            total.objects += 1;
            total.bytes += object.bytes;
            names.insert(object.name.clone());
            if class == StorageClass::Orphan {
                let modified_us = Some(object.modified.timestamp_micros());
                let object_row = StorageRow { modified_us, objects: 1, bytes: object.bytes, ..empty_row(class) };
                orphans.push(StorageRow { object: Some(object.name), ..object_row });
                continue;
            }
            let known = classes.entry(class).or_insert_with(|| empty_row(class));
            known.objects += 1;
            known.bytes += object.bytes;
            known.retained_until_us = known.retained_until_us.max(kept_until_us);
        }
        orphans.sort_by(|left, right| left.object.cmp(&right.object));
        let mut missing: Vec<&String> = needed.iter().filter(|object| !names.contains(*object)).collect();
        missing.sort();
        missing.dedup();
        let missing = missing.into_iter().map(|object| StorageRow {
            object: Some(object.clone()),
            objects: 1,
            bytes: self.referenced.get(object).copied().unwrap_or(0),
            ..empty_row(StorageClass::Missing)
        });
        classes.into_values().chain(orphans).chain(missing).chain([total]).collect()
    }

    fn storage_class(&self, object: &str) -> (StorageClass, Option<i64>) {
        if self.referenced.contains_key(object) {
            (StorageClass::Referenced, None)
        } else if let Some(until_us) = self.retained.get(object) {
            (StorageClass::Retained, Some(*until_us))
        } else if self.in_flight.contains(object) {
            (StorageClass::InFlight, None)
        } else if is_history_object(object) {
            let is_log = object.starts_with(history::LOG);
            (if is_log { StorageClass::Log } else { StorageClass::Checkpoint }, None)
        } else if object == CLAIM_OBJECT {
            (StorageClass::Claim, None)
        } else {
            (StorageClass::Orphan, None)
        }
    }
}

fn empty_row(class: StorageClass) -> StorageRow {
    StorageRow { class, object: None, objects: 0, bytes: 0, retained_until_us: None, modified_us: None }
}
