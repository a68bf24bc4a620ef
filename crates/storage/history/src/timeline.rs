//! Timelines: what follows from what. A restored warehouse begins one at its first start, before it serves anyone, so that restoring
//! alone leaves no trace, and whoever was served is on the newest timeline.

use std::sync::Arc;

use bytes::Bytes;
use kv::{Batch, Space, TxKv};
use objects::Objects;
use serde::{Deserialize, Serialize};
use types::Failpoint;

use crate::names::{self, LogName};
use crate::upload::blocking;
use crate::{HistoryError, Result};

/// The timeline of a warehouse that was never restored.
const FIRST: u32 = 1;
/// The parent of a timeline that goes on from no other: it begins with a checkpoint.
const NONE: u32 = 0;
/// 1 had no such timelines.
const FORMAT: u32 = 2;
const KEY: &[u8] = b"timeline";
/// Of a restored store that has not begun its timeline.
const FORK: &[u8] = b"fork";

/// How a timeline begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Begin {
    #[serde(default = "first_format")]
    pub(crate) format: u32,
    /// The timeline it goes on from.
    pub(crate) parent: u32,
    /// The last record that both have.
    pub(crate) after: u64,
}

fn first_format() -> u32 {
    1
}

impl Begin {
    pub(crate) fn new(parent: u32, after: u64) -> Self {
        Self { format: FORMAT, parent, after }
    }

    /// Whether the timeline goes on from no other.
    pub(crate) fn is_root(&self) -> bool {
        self.parent == NONE
    }
}

/// The timeline of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Timeline {
    Begun(u32),
    /// It is to begin, and so.
    Forked(Begin),
}

/// A timeline that leads to another, and the last of its records that does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leg {
    pub(crate) timeline: u32,
    pub(crate) until: u64,
}

/// The timeline of the store.
pub(crate) fn of(kv: &dyn TxKv) -> Result<Timeline> {
    let damaged = || HistoryError::DamagedStore { what: "number of the timeline" };
    if let Some(bytes) = kv.get(Space::Meta, FORK)? {
        return serde_json::from_slice(&bytes).map(Timeline::Forked).map_err(|_| damaged());
    }
    let Some(bytes) = kv.get(Space::Meta, KEY)? else { return Ok(Timeline::Begun(FIRST)) };
    let bytes = <[u8; 4]>::try_from(&bytes[..]).map_err(|_| damaged())?;
    Ok(Timeline::Begun(u32::from_be_bytes(bytes)))
}

/// Refuses a store whose warehouse was restored since and has gone on in a newer timeline.
///
/// # Errors
/// [`HistoryError::LeftBehind`]; others where the storage does not answer.
pub(crate) async fn refuse_left_behind(own: u32, objects: &Objects) -> Result<()> {
    let newer = own + 1;
    match objects.get(&names::begin(newer)).await {
        Ok(_) => Err(HistoryError::LeftBehind { own, newer }),
        Err(objects::Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The store is to begin a timeline at its first start.
pub(crate) fn fork(batch: &mut Batch, begin: &Begin) {
    batch.put(Space::Meta, FORK, serde_json::to_vec(begin).expect("numbers"));
}

/// Lets the store begin a timeline that goes on from no other at its next start: what the storage knows of its warehouse is left behind.
///
/// # Errors
/// Where the store cannot be read or written.
pub async fn fork_from_nothing(kv: &Arc<dyn TxKv>) -> Result<()> {
    let kv = Arc::clone(kv);
    blocking(move || {
        let after = kv::log::newest(&*kv)?.map_or(0, |record| record.number);
        let mut batch = Batch::new();
        fork(&mut batch, &Begin::new(NONE, after));
        Ok(kv.write(batch)?)
    })
    .await
}

/// Begins the timeline of a restored store that has not begun it; to be called before it is served from.
///
/// # Errors
/// Where the store or the storage refuses; it is begun at the next start then.
pub async fn begin_timeline(kv: &Arc<dyn TxKv>, objects: &Objects) -> Result<()> {
    let timeline = of(&**kv)?;
    let Timeline::Forked(begin) = timeline else { return Ok(()) };
    let mut listed = objects.list(crate::LOG).await?;
    listed.extend(objects.list(crate::CHECKPOINTS).await?);
    let mut timeline = newest(listed.iter().map(|object| object.name.as_str())) + 1;
    while !write_begin(objects, timeline, &begin).await? {
        timeline += 1;
    }
    Failpoint::TimelineBegun.pass();
    let kv = Arc::clone(kv);
    blocking(move || {
        let mut batch = Batch::new();
        batch.put(Space::Meta, KEY, timeline.to_be_bytes().to_vec());
        batch.delete(Space::Meta, FORK);
        Ok(kv.write(batch)?)
    })
    .await?;
    tracing::info!(timeline, parent = begin.parent, after = begin.after, "began a timeline");
    Ok(())
}

/// The highest timeline that objects of these names belong to.
pub(crate) fn newest<'a>(objects: impl Iterator<Item = &'a str>) -> u32 {
    let of = |object: &str| {
        let log = LogName::parse(object).map(|name| name.timeline);
        let checkpoint = || {
            names::CheckpointName::parse_manifest(object)
                .or_else(|| names::CheckpointName::parse_data(object))
                .map(|name| name.timeline)
        };
        log.or_else(|| names::parse_begin(object)).or_else(checkpoint)
    };
    objects.filter_map(of).max().unwrap_or(FIRST)
}

/// What leads to the newest record of `timeline`, oldest first.
pub(crate) async fn path(objects: &Objects, timeline: u32) -> Result<Vec<Leg>> {
    let mut path = vec![Leg { timeline, until: u64::MAX }];
    let mut first = path[0];
    while first.timeline != FIRST {
        let Begin { parent, after, .. } = read_begin(objects, first.timeline).await?;
        if parent == NONE {
            break;
        }
        if first.timeline <= parent {
            return Err(damaged(first.timeline, "it names a parent that is no older"));
        }
        // What follows may itself have left the way before its end.
        first = Leg { timeline: parent, until: after.min(first.until) };
        path.insert(0, first);
    }
    Ok(path)
}

/// Makes it known how a timeline begins; `false` where somebody else has begun it.
async fn write_begin(objects: &Objects, timeline: u32, begin: &Begin) -> Result<bool> {
    let bytes = Bytes::from(serde_json::to_vec_pretty(begin).expect("numbers"));
    Ok(objects.put_if_absent(&names::begin(timeline), bytes).await?)
}

/// How a timeline begins; `None` for the first, of which nobody needs to be told.
///
/// # Errors
/// Where the storage does not tell, or tells what this version does not read.
pub(crate) async fn begin_of(objects: &Objects, timeline: u32) -> Result<Option<Begin>> {
    if timeline == FIRST { Ok(None) } else { read_begin(objects, timeline).await.map(Some) }
}

async fn read_begin(objects: &Objects, timeline: u32) -> Result<Begin> {
    let bytes = objects.get(&names::begin(timeline)).await?;
    let begin: Begin = serde_json::from_slice(&bytes).map_err(|_| damaged(timeline, "it does not read"))?;
    if FORMAT < begin.format { Err(damaged(timeline, crate::NEWER)) } else { Ok(begin) }
}

fn damaged(timeline: u32, reason: &'static str) -> HistoryError {
    HistoryError::Damaged { object: names::begin(timeline), reason }
}
