//! Timelines. A restored warehouse begins a new timeline at its first start, before it serves anyone. A restore alone
//! therefore leaves no trace in the storage, and a server always runs on the newest timeline.

use std::sync::Arc;

use bytes::Bytes;
use kv::{Batch, Space, TxKv};
use objects::Objects;
use serde::{Deserialize, Serialize};
use types::Failpoint;

use crate::log_upload::run_blocking;
use crate::object_names::{self, LogName};
use crate::{HistoryError, Result};

/// Timeline of a warehouse that was never restored.
const FIRST_TIMELINE: u32 = 1;
/// Parent of a root timeline, which continues no other and begins with a checkpoint.
const NO_PARENT: u32 = 0;
/// Format 1 had no root timelines.
const TIMELINE_FORMAT: u32 = 2;
const TIMELINE_KEY: &[u8] = b"timeline";
/// Key of the [`TimelineBegin`] of a restored store's new timeline, until that has begun.
const FORK_KEY: &[u8] = b"fork";

/// Begin of a timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TimelineBegin {
    #[serde(default = "first_format")]
    pub(crate) format: u32,
    /// The timeline that this one continues.
    pub(crate) parent: u32,
    /// The last record that both share.
    pub(crate) after: u64,
}

fn first_format() -> u32 {
    1
}

impl TimelineBegin {
    pub(crate) fn new(parent: u32, after: u64) -> Self {
        Self { format: TIMELINE_FORMAT, parent, after }
    }

    /// Returns whether the timeline continues no other.
    pub(crate) fn is_root(&self) -> bool {
        self.parent == NO_PARENT
    }
}

/// Timeline of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Timeline {
    Begun(u32),
    /// The store is to begin a new timeline at its next start.
    Pending(TimelineBegin),
}

/// Part of the path of timelines to a state: a timeline, and the last of its records that belongs to the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimelineSegment {
    pub(crate) timeline: u32,
    pub(crate) until_record: u64,
}

/// Reads the timeline of the store.
pub(crate) fn read_timeline(kv: &dyn TxKv) -> Result<Timeline> {
    let damaged = || HistoryError::DamagedStore { what: "number of the timeline" };
    if let Some(bytes) = kv.get(Space::StoreMetadata, FORK_KEY)? {
        return serde_json::from_slice(&bytes).map(Timeline::Pending).map_err(|_| damaged());
    }
    let Some(bytes) = kv.get(Space::StoreMetadata, TIMELINE_KEY)? else { return Ok(Timeline::Begun(FIRST_TIMELINE)) };
    let bytes = <[u8; 4]>::try_from(&bytes[..]).map_err(|_| damaged())?;
    Ok(Timeline::Begun(u32::from_be_bytes(bytes)))
}

/// Rejects a store whose warehouse was restored meanwhile and continues on a newer timeline.
///
/// # Errors
/// [`HistoryError::Abandoned`]; others if the storage cannot be read.
pub(crate) async fn check_not_abandoned(own: u32, objects: &Objects) -> Result<()> {
    let newer = own + 1;
    match objects.get(&object_names::begin_object(newer)).await {
        Ok(_) => Err(HistoryError::Abandoned { own, newer }),
        Err(objects::Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Records in the batch that the store is to begin a timeline at its first start.
pub(crate) fn put_fork(batch: &mut Batch, begin: &TimelineBegin) {
    batch.put(Space::StoreMetadata, FORK_KEY, serde_json::to_vec(begin).expect("a Begin serializes to JSON"));
}

/// Makes the store begin a root timeline at its next start: archived history of the warehouse that the store lacks is
/// abandoned.
///
/// # Errors
/// Fails if the store cannot be read or written.
pub async fn fork_root_timeline(kv: &Arc<dyn TxKv>) -> Result<()> {
    let kv = Arc::clone(kv);
    run_blocking(move || {
        let after = kv::logical_log::newest_record(&*kv)?.map_or(0, |record| record.number);
        let mut batch = Batch::new();
        put_fork(&mut batch, &TimelineBegin::new(NO_PARENT, after));
        Ok(kv.write(batch)?)
    })
    .await
}

/// Begins the timeline of a restored store; does nothing if it has begun. Must be called before the store is served
/// from.
///
/// # Errors
/// Fails if the store or the storage cannot be written; the next start tries again.
pub async fn begin_timeline(kv: &Arc<dyn TxKv>, objects: &Objects) -> Result<()> {
    let timeline = read_timeline(&**kv)?;
    let Timeline::Pending(begin) = timeline else { return Ok(()) };
    let mut listed = objects.list(crate::LOG).await?;
    listed.extend(objects.list(crate::CHECKPOINTS).await?);
    let mut timeline = newest_timeline(listed.iter().map(|object| object.name.as_str())) + 1;
    while !write_begin(objects, timeline, &begin).await? {
        timeline += 1;
    }
    Failpoint::TimelineBegun.pass();
    let kv = Arc::clone(kv);
    run_blocking(move || {
        let mut batch = Batch::new();
        batch.put(Space::StoreMetadata, TIMELINE_KEY, timeline.to_be_bytes().to_vec());
        batch.delete(Space::StoreMetadata, FORK_KEY);
        Ok(kv.write(batch)?)
    })
    .await?;
    tracing::info!(
        timeline,
        parent = begin.parent,
        after = begin.after,
        "began a new timeline of the restored warehouse"
    );
    Ok(())
}

/// Returns the highest timeline that the named objects belong to.
pub(crate) fn newest_timeline<'a>(objects: impl Iterator<Item = &'a str>) -> u32 {
    let of = |object: &str| {
        let log = LogName::parse(object).map(|name| name.timeline);
        let checkpoint = || {
            object_names::CheckpointName::parse_manifest(object)
                .or_else(|| object_names::CheckpointName::parse_data(object))
                .map(|name| name.timeline)
        };
        log.or_else(|| object_names::parse_begin_object(object)).or_else(checkpoint)
    };
    objects.filter_map(of).max().unwrap_or(FIRST_TIMELINE)
}

/// Returns the path of timelines to the newest record of `timeline`, oldest first.
pub(crate) async fn timeline_path(objects: &Objects, timeline: u32) -> Result<Vec<TimelineSegment>> {
    let mut path = vec![TimelineSegment { timeline, until_record: u64::MAX }];
    let mut first = path[0];
    while first.timeline != FIRST_TIMELINE {
        let TimelineBegin { parent, after, .. } = read_begin(objects, first.timeline).await?;
        if parent == NO_PARENT {
            break;
        }
        if first.timeline <= parent {
            return Err(damaged(first.timeline, "it names a parent that is no older"));
        }
        // The newer timeline may itself have branched off from the path before this one's end.
        first = TimelineSegment { timeline: parent, until_record: after.min(first.until_record) };
        path.insert(0, first);
    }
    Ok(path)
}

/// Writes the begin of a timeline to the storage; returns `false` if another server has begun it.
async fn write_begin(objects: &Objects, timeline: u32, begin: &TimelineBegin) -> Result<bool> {
    let bytes = Bytes::from(serde_json::to_vec_pretty(begin).expect("a Begin serializes to JSON"));
    Ok(objects.put_if_absent(&object_names::begin_object(timeline), bytes).await?)
}

/// Reads the begin of a timeline; `None` for the first, which has none.
///
/// # Errors
/// Fails if the storage cannot be read or contains a newer format.
pub(crate) async fn find_begin(objects: &Objects, timeline: u32) -> Result<Option<TimelineBegin>> {
    if timeline == FIRST_TIMELINE { Ok(None) } else { read_begin(objects, timeline).await.map(Some) }
}

async fn read_begin(objects: &Objects, timeline: u32) -> Result<TimelineBegin> {
    let bytes = objects.get(&object_names::begin_object(timeline)).await?;
    let begin: TimelineBegin = serde_json::from_slice(&bytes).map_err(|_| damaged(timeline, "it does not read"))?;
    if TIMELINE_FORMAT < begin.format { Err(damaged(timeline, crate::NEWER_VERSION)) } else { Ok(begin) }
}

fn damaged(timeline: u32, reason: &'static str) -> HistoryError {
    HistoryError::Damaged { object: object_names::begin_object(timeline), reason }
}
