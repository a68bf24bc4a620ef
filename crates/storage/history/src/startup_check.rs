//! Compares the store's log with the archived one before anything is served or written: a store that lacks archived
//! records, is damaged or belongs to another warehouse would hide acknowledged commits and corrupt the archived
//! history.

use kv::TxKv;
use kv::logical_log::Record;
use objects::Objects;
use types::InjectedBug;

use crate::checkpoint::Manifest;
use crate::object_names::{self, CheckpointName, LogName};
use crate::timeline::{self, Timeline};
use crate::{CHECKPOINTS, HistoryError, LOG, Result, log_object};

/// Newest archived record of a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ArchiveEnd {
    record: u64,
    /// Checksum of the record; `None` if only its number is known.
    checksum: Option<u64>,
}

/// Rejects a store whose log disagrees with the archived one or does not reach as far. A restored store that has not
/// begun its timeline was verified by the restore.
///
/// # Errors
/// Errors for which [`HistoryError::is_divergence`] holds if data folder and storage do not belong together; others if
/// one of them cannot be read.
pub async fn compare_with_storage(kv: &dyn TxKv, objects: &Objects) -> Result<()> {
    if InjectedBug::StartSkipsStorageCheck.is_active() {
        return Ok(());
    }
    let timeline = timeline::read_timeline(kv)?;
    let Timeline::Begun(own) = timeline else { return Ok(()) };
    timeline::check_not_abandoned(own, objects).await?;
    let (oldest, newest) = (kv::logical_log::oldest_record(kv)?, kv::logical_log::newest_record(kv)?);
    let newest = newest.map_or(0, |record| record.number);
    let begin = match timeline::find_begin(objects, own).await {
        Err(HistoryError::Objects(objects::Error::NotFound { .. })) => {
            return Err(HistoryError::LogLost { from: 1, to: newest });
        }
        begin => begin?,
    };
    let base = ArchiveEnd { record: begin.map_or(0, |begin| begin.after), checksum: None };
    let ends = archive_ends(objects, own).await?;
    let reached = ends.iter().map(|end| end.record).fold(base.record, u64::max);
    if newest < reached {
        return Err(HistoryError::StoreBehind { own: newest, storage: reached });
    }
    let Some(oldest) = oldest else { return Ok(()) };
    check_store_reaches_archive(&oldest, reached)?;
    for end in ends {
        check_end_records_match(kv, &oldest, end)?;
    }
    Ok(())
}

/// Returns whether the store is on a root timeline without a checkpoint: it cannot be restored until it has one.
///
/// # Errors
/// Fails if the store or the storage cannot be read.
pub async fn lacks_first_checkpoint(kv: &dyn TxKv, objects: &Objects) -> Result<bool> {
    let timeline = timeline::read_timeline(kv)?;
    let Timeline::Begun(own) = timeline else { return Ok(false) };
    let is_root = timeline::find_begin(objects, own).await?.is_some_and(|begin| begin.is_root());
    Ok(is_root && checkpoints(objects, own).await?.is_empty())
}

/// Rejects a storage that lacks archived records: all records before the oldest in the store were archived.
fn check_store_reaches_archive(oldest: &Record, reached: u64) -> Result<()> {
    let first = oldest.number;
    // The log of a store that was created before logs existed begins with record 2.
    let is_first = reached == 0 && first == 2;
    if reached + 1 < first && !is_first {
        return Err(HistoryError::LogLost { from: reached + 1, to: first - 1 });
    }
    Ok(())
}

/// Rejects an archived record that differs from the store's record of the same number.
fn check_end_records_match(kv: &dyn TxKv, oldest: &Record, end: ArchiveEnd) -> Result<()> {
    let Some(checksum) = end.checksum else { return Ok(()) };
    let is_same = if end.record + 1 == oldest.number {
        oldest.follows(checksum)
    } else if end.record < oldest.number {
        // The store no longer has the record; a later one was compared.
        true
    } else {
        kv::logical_log::find_record(kv, end.record)?.is_some_and(|own| own.checksum == checksum)
    };
    if is_same { Ok(()) } else { Err(HistoryError::Diverged { record: end.record }) }
}

/// Returns the newest archived records of the timeline: those of the last log objects, which may be several with the
/// same last number, and that of the newest checkpoint.
async fn archive_ends(objects: &Objects, timeline: u32) -> Result<Vec<ArchiveEnd>> {
    let listed = objects.list(&object_names::timeline_folder(LOG, timeline)).await?;
    let logs: Vec<LogName> = listed.iter().filter_map(|object| LogName::parse(&object.name)).collect();
    let newest = logs.iter().map(|name| name.last_record).max();
    let mut ends = Vec::new();
    for name in logs.into_iter().filter(|name| Some(name.last_record) == newest) {
        let (_, records) = log_object::decode(name, &objects.get(&name.object()).await?)?;
        ends.extend(records.last().map(|last| ArchiveEnd { record: last.number, checksum: Some(last.checksum) }));
    }
    if let Some(name) = checkpoints(objects, timeline).await?.into_iter().max() {
        let manifest = Manifest::read(objects, name).await?;
        ends.push(ArchiveEnd { record: manifest.record, checksum: manifest.record_checksum() });
    }
    Ok(ends)
}

async fn checkpoints(objects: &Objects, timeline: u32) -> Result<Vec<CheckpointName>> {
    let listed = objects.list(&object_names::timeline_folder(CHECKPOINTS, timeline)).await?;
    Ok(listed.iter().filter_map(|object| CheckpointName::parse_manifest(&object.name)).collect())
}
