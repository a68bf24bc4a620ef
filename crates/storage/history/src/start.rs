//! Compares the store's log with the bucket's before anything is served or written: a store that is behind its bucket, torn, or another
//! warehouse's would hide what was acknowledged, and spoil the history in the bucket.

use kv::TxKv;
use kv::log::Record;
use objects::Objects;
use types::Mutation;

use crate::checkpoint::Manifest;
use crate::names::{self, CheckpointName, LogName};
use crate::timeline::{self, Timeline};
use crate::{CHECKPOINTS, HistoryError, LOG, Result, log_object};

/// The newest record that the bucket has of a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct End {
    record: u64,
    /// `None` where it is known by its number alone.
    checksum: Option<u64>,
}

/// Refuses a store whose log is not the one in the storage, or does not reach as far. A restored store that has not begun its timeline was
/// compared when it was restored.
///
/// # Errors
/// [`HistoryError::is_divergence`]: data folder and storage do not belong together. Others where the store or the storage does not answer.
pub async fn compare_with_storage(kv: &dyn TxKv, objects: &Objects) -> Result<()> {
    if Mutation::StartIgnoresStorage.is_on() {
        return Ok(());
    }
    let timeline = timeline::of(kv)?;
    let Timeline::Begun(own) = timeline else { return Ok(()) };
    timeline::refuse_left_behind(own, objects).await?;
    let (oldest, newest) = (kv::log::oldest(kv)?, kv::log::newest(kv)?);
    let newest = newest.map_or(0, |record| record.number);
    let begin = match timeline::begin_of(objects, own).await {
        Err(HistoryError::Objects(objects::Error::NotFound { .. })) => {
            return Err(HistoryError::LogLost { from: 1, to: newest });
        }
        begin => begin?,
    };
    let base = End { record: begin.map_or(0, |begin| begin.after), checksum: None };
    let ends = ends(objects, own).await?;
    let reached = ends.iter().map(|end| end.record).fold(base.record, u64::max);
    if newest < reached {
        return Err(HistoryError::Behind { own: newest, storage: reached });
    }
    let Some(oldest) = oldest else { return Ok(()) };
    check_reach(&oldest, reached)?;
    for end in ends {
        check_end(kv, &oldest, end)?;
    }
    Ok(())
}

/// Whether the timeline of the store goes on from no other and has no checkpoint yet: nothing can be restored of it until it has one.
///
/// # Errors
/// Where the store or the storage does not answer.
pub async fn lacks_first_checkpoint(kv: &dyn TxKv, objects: &Objects) -> Result<bool> {
    let timeline = timeline::of(kv)?;
    let Timeline::Begun(own) = timeline else { return Ok(false) };
    let is_root = timeline::begin_of(objects, own).await?.is_some_and(|begin| begin.is_root());
    Ok(is_root && checkpoints(objects, own).await?.is_empty())
}

/// Refuses where the storage lacks records that were copied: those before the oldest in the store were.
fn check_reach(oldest: &Record, reached: u64) -> Result<()> {
    let first = oldest.number;
    // The log of a store that is older than logs begins with record 2.
    let is_first = reached == 0 && first == 2;
    if reached + 1 < first && !is_first {
        return Err(HistoryError::LogLost { from: reached + 1, to: first - 1 });
    }
    Ok(())
}

/// Refuses where the storage's record is another than the store's of the same number.
fn check_end(kv: &dyn TxKv, oldest: &Record, end: End) -> Result<()> {
    let Some(checksum) = end.checksum else { return Ok(()) };
    let is_same = if end.record + 1 == oldest.number {
        oldest.follows(checksum)
    } else if end.record < oldest.number {
        // What came after it was compared.
        true
    } else {
        kv::log::record(kv, end.record)?.is_some_and(|own| own.checksum == checksum)
    };
    if is_same { Ok(()) } else { Err(HistoryError::Diverged { record: end.record }) }
}

/// The newest records that the bucket has of the timeline: in its log, more than one where objects end with the same number, and in its newest
/// checkpoint.
async fn ends(objects: &Objects, timeline: u32) -> Result<Vec<End>> {
    let listed = objects.list(&names::folder(LOG, timeline)).await?;
    let logs: Vec<LogName> = listed.iter().filter_map(|object| LogName::parse(&object.name)).collect();
    let newest = logs.iter().map(|name| name.last).max();
    let mut ends = Vec::new();
    for name in logs.into_iter().filter(|name| Some(name.last) == newest) {
        let (_, records) = log_object::decode(name, &objects.get(&name.object()).await?)?;
        ends.extend(records.last().map(|last| End { record: last.number, checksum: Some(last.checksum) }));
    }
    if let Some(name) = checkpoints(objects, timeline).await?.into_iter().max() {
        let manifest = Manifest::read(objects, name).await?;
        ends.push(End { record: manifest.record, checksum: manifest.record_checksum() });
    }
    Ok(ends)
}

async fn checkpoints(objects: &Objects, timeline: u32) -> Result<Vec<CheckpointName>> {
    let listed = objects.list(&names::folder(CHECKPOINTS, timeline)).await?;
    Ok(listed.iter().filter_map(|object| CheckpointName::parse_manifest(&object.name)).collect())
}
