//! Restores a data folder from the bucket.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use catalog::persistence;
use kv::Batch;
use objects::Objects;
use types::{CommitTs, Failpoint, InjectedBug, TimeTravelTarget};
use uuid::Uuid;

use crate::log_upload::run_blocking;
use crate::object_names::TABLES;
use crate::rebuild::{RebuildProgress, rebuild};
use crate::rebuild_plan::LogGap;
use crate::timeline::{self, TimelineBegin};
use crate::{CHECKPOINTS, HistoryError, LOG, Result};

/// Subfolder of a data folder that exists while it is being restored.
pub const RESTORING: &str = "restoring";
const STORE_FILE_NAME: &str = "catalog.redb";

/// Restored store that is not at its final path yet.
#[derive(Debug)]
pub struct RestoredStore {
    /// Id of the storage's instance; the server that starts on the folder must use it.
    pub instance: Uuid,
    /// The newest log record that the store contains.
    pub record: u64,
    /// The newest commit that the store contains.
    pub commit: CommitTs,
    /// Time of the newest record in microseconds since 1970.
    pub newest_record_us: i64,
    /// Archived records that are missing after it.
    pub gap: Option<LogGap>,
    /// Objects that tables reference and the storage lacks.
    pub missing_objects: Vec<String>,
    pub(crate) folder: PathBuf,
}

/// Rebuilds the warehouse's store as of `moment` in the folder `data`, which must be empty or absent. The store begins
/// a new timeline at its first start; until then nothing is written to the storage. With `incomplete`, a gap in the
/// archived log ends the restore early and referenced objects may be missing; without it both are errors. `tell` is
/// called with the progress.
///
/// # Errors
/// Fails if the storage lacks or has damaged objects that are needed, or `data` cannot be written.
pub async fn restore(
    objects: &Objects,
    data: &Path,
    moment: TimeTravelTarget,
    incomplete: bool,
    on_progress: &(dyn Fn(RebuildProgress<'_>) + Send + Sync),
) -> Result<RestoredStore> {
    let failed = |source| HistoryError::File { path: data.to_owned(), source };
    // For its owner alone, as `kiln serve` makes it: the catalog holds the password verifiers.
    fs::DirBuilder::new().recursive(true).mode(0o700).create(data).map_err(failed)?;
    if fs::read_dir(data).map_err(failed)?.next().is_some() {
        return Err(HistoryError::NotEmpty { path: data.to_owned() });
    }
    let mut listed = objects.list(LOG).await?;
    listed.extend(objects.list(CHECKPOINTS).await?);
    if listed.is_empty() {
        return Err(HistoryError::EmptyStorage { url: objects.url().to_owned() });
    }
    let newest = timeline::newest_timeline(listed.iter().map(|object| object.name.as_str()));
    let path = timeline::timeline_path(objects, newest).await?;
    let folder = data.join(RESTORING);
    fs::create_dir_all(&folder).and_then(|()| sync_folder(data)).map_err(failed)?;
    Failpoint::RestoreBegun.pass();
    let outcome = restore_into(objects, &path, newest, moment, incomplete, &folder, on_progress).await;
    if outcome.is_err() {
        // The first failure is reported.
        let _ = fs::remove_dir_all(&folder);
    }
    outcome
}

async fn restore_into(
    objects: &Objects,
    path: &[timeline::TimelineSegment],
    newest: u32,
    moment: TimeTravelTarget,
    incomplete: bool,
    folder: &Path,
    tell: &(dyn Fn(RebuildProgress<'_>) + Send + Sync),
) -> Result<RestoredStore> {
    let rebuilt = rebuild(objects, path, moment, &folder.join(STORE_FILE_NAME), tell).await?;
    Failpoint::RestoreRebuilt.pass();
    match rebuilt.gap {
        Some(LogGap { from, to }) if !incomplete => return Err(HistoryError::Gap { from, to }),
        _ => {}
    }
    if matches!(moment, TimeTravelTarget::Commit(wanted) if rebuilt.next_commit.is_none() && rebuilt.commit < wanted) {
        return Err(HistoryError::InFuture);
    }
    let kv = std::sync::Arc::clone(&rebuilt.kv);
    let state = run_blocking(move || Ok(persistence::read(&*kv)?)).await?;
    let (state, _) = state.ok_or(HistoryError::NoCheckpoint)?;
    let existing: HashSet<String> = objects.list(TABLES).await?.into_iter().map(|object| object.name).collect();
    let named = state.tables().flat_map(|table| state.shards(table.oid).shards.objects());
    let missing: Vec<String> =
        named.filter(|object| !existing.contains(&**object)).map(std::borrow::Cow::into_owned).collect();
    if let Some(first) = missing.first().filter(|_| !incomplete) {
        return Err(HistoryError::MissingObjects { count: missing.len(), first: first.clone() });
    }
    let begin = TimelineBegin::new(newest, rebuilt.last_record.number);
    let (kv, last) = (std::sync::Arc::clone(&rebuilt.kv), rebuilt.last_record.clone());
    run_blocking(move || {
        let mut batch = Batch::new();
        kv::logical_log::reset_log_to(&*kv, &last, &mut batch)?;
        if !InjectedBug::RestoreKeepsTimeline.is_active() {
            timeline::put_fork(&mut batch, &begin);
        }
        Ok(kv.write(batch)?)
    })
    .await?;
    Failpoint::RestoreForked.pass();
    Ok(RestoredStore {
        instance: rebuilt.instance,
        record: rebuilt.last_record.number,
        commit: rebuilt.commit,
        newest_record_us: rebuilt.last_record.written_us,
        gap: rebuilt.gap,
        missing_objects: missing,
        folder: folder.to_owned(),
    })
}

impl RestoredStore {
    /// Moves the store to its final path, the file `to`.
    ///
    /// # Errors
    /// Fails if the folder cannot be written.
    pub fn install(self, to: &Path) -> Result<()> {
        let failed = |source| HistoryError::File { path: to.to_owned(), source };
        let folder = to.parent().unwrap_or_else(|| Path::new("."));
        self.move_files(to).and_then(|()| sync_folder(folder)).map_err(failed)?;
        Failpoint::RestorePlaced.pass();
        // No server starts as long as the folder exists.
        fs::remove_dir_all(&self.folder).and_then(|()| sync_folder(folder)).map_err(failed)
    }
}

impl RestoredStore {
    /// Moves files beside the store's file first: once that file is there the store counts as present.
    fn move_files(&self, to: &Path) -> std::io::Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let beside =
                name.to_str().and_then(|name| name.strip_prefix(STORE_FILE_NAME)).filter(|beside| !beside.is_empty());
            if let Some(beside) = beside {
                let mut target = to.as_os_str().to_owned();
                target.push(beside);
                fs::rename(self.folder.join(&name), target)?;
            }
        }
        fs::rename(self.folder.join(STORE_FILE_NAME), to)
    }
}

fn sync_folder(folder: &Path) -> std::io::Result<()> {
    fs::File::open(folder)?.sync_all()
}
