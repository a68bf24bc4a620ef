//! Rebuilds a store as of a point in time: fetches a checkpoint and applies the archived log after it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use futures::{StreamExt, stream};
use kv::logical_log::{NO_PREDECESSOR, Record};
use kv::{Batch, Space, TxKv};
use objects::Objects;
use types::{CommitTs, Failpoint, InjectedBug, TimeTravelTarget};
use uuid::Uuid;

use crate::checkpoint::{Manifest, download_checkpoint};
use crate::last_commit::last_commit;
use crate::log_upload::run_blocking;
use crate::object_names::{CheckpointName, LogName};
use crate::rebuild_plan::{self, LogGap};
use crate::timeline::TimelineSegment;
use crate::{CHECKPOINTS, HistoryError, LOG, Result, log_object};

/// Log objects fetched in parallel.
const PARALLEL_FETCHES_MAX: usize = 8;
/// Approximate maximum changes of one write to the rebuilt store.
const CHANGES_PER_WRITE_MAX: usize = 100_000;
const BYTES_PER_WRITE_MAX: usize = 32 * 1024 * 1024;

/// Store rebuilt as of a point in time.
#[derive(Debug)]
pub(crate) struct RebuiltStore {
    pub(crate) kv: Arc<dyn TxKv>,
    pub(crate) instance: Uuid,
    /// The newest record that the store contains.
    pub(crate) last_record: Record,
    /// The newest commit that the store contains.
    pub(crate) commit: CommitTs,
    /// The next commit and its time, if it is in the archived log.
    pub(crate) next_commit: Option<(CommitTs, i64)>,
    /// Records that are missing after the newest one.
    pub(crate) gap: Option<LogGap>,
}

/// Progress of a rebuild.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RebuildProgress<'a> {
    Checkpoint {
        object: &'a str,
        bytes: u64,
    },
    /// A checkpoint that cannot be used; an older one is tried.
    DamagedCheckpoint {
        object: &'a str,
    },
    Log {
        objects: usize,
    },
    Records {
        until: u64,
    },
}

/// Rebuilds the store as of `moment` in `file`, which must not exist. A gap in the archived log ends it early.
pub(crate) async fn rebuild(
    objects: &Objects,
    path: &[TimelineSegment],
    moment: TimeTravelTarget,
    file: &Path,
    on_progress: &(dyn Fn(RebuildProgress<'_>) + Send + Sync),
) -> Result<RebuiltStore> {
    let start = fetch_checkpoint(objects, path, moment, file, on_progress).await?;
    let kv: Arc<dyn TxKv> = Arc::new(kv::redb::open(file)?);
    let mut last = kv::logical_log::newest_record(&*kv)?;
    if let (Some(manifest), Some(last)) = (&start, &last)
        && !manifest.contains(last)
    {
        let object = manifest.name().data_object();
        return Err(HistoryError::Damaged { object, reason: "it does not end with the record that its name says" });
    }
    let mut chain = RecordChain::new(last.as_ref());
    let mut instance = start.as_ref().map(Manifest::instance).transpose()?;
    let after = start.as_ref().map_or(0, |manifest| manifest.record);
    let listed = objects.list(LOG).await?;
    let names: Vec<LogName> = listed.iter().filter_map(|object| LogName::parse(&object.name)).collect();
    let (parts, mut gap) = rebuild_plan::log_parts_after(&names, path, after);
    if after == 0 && parts.is_empty() {
        return Err(HistoryError::NoCheckpoint);
    }
    on_progress(RebuildProgress::Log { objects: parts.len() });
    let mut commit = last_commit(&*kv)?;
    let mut fetched = stream::iter(parts)
        .map(|part| async move {
            let bytes = match objects.get(&part.name.object()).await {
                // Objects that the checkpoint covers are fetched only for comparison with it, and may be deleted
                // meanwhile.
                Err(objects::Error::NotFound { .. }) if part.name.last_record <= after => return Ok(None),
                bytes => bytes?,
            };
            let decoded = run_blocking(move || log_object::decode(part.name, &bytes)).await?;
            Ok::<_, HistoryError>(Some((part, decoded)))
        })
        .buffered(PARALLEL_FETCHES_MAX);
    let mut pending = PendingChanges::default();
    let mut next = None;
    'parts: while let Some(fetched) = fetched.next().await {
        let Some((part, (written_by, records))) = fetched? else { continue };
        instance = Some(written_by);
        chain.forget_before(part.name.first_record);
        for record in records {
            if part.until_record < record.number {
                break;
            }
            if record.number <= last.as_ref().map_or(0, |last| last.number) {
                chain.compare(&record)?;
                continue;
            }
            if let Some(contained) = rebuild_plan::last_commit_in(&record) {
                if rebuild_plan::is_before(moment, &record, contained) {
                    next = Some((contained, record.written_us));
                    gap = None;
                    break 'parts;
                }
                commit = Some(contained);
            }
            chain.add(&record)?;
            pending.add(&record);
            last = Some(record);
            if pending.is_full() {
                pending.write(&kv).await?;
            }
        }
        on_progress(RebuildProgress::Records { until: last.as_ref().map_or(0, |last| last.number) });
    }
    pending.write(&kv).await?;
    let (Some(last), Some(commit), Some(instance)) = (last, commit, instance) else {
        return Err(HistoryError::NoCheckpoint);
    };
    Ok(RebuiltStore { kv, instance, last_record: last, commit, next_commit: next, gap })
}

/// Fetches the newest intact checkpoint not after `moment`; `None` if there is none.
async fn fetch_checkpoint(
    objects: &Objects,
    path: &[TimelineSegment],
    moment: TimeTravelTarget,
    file: &Path,
    tell: &(dyn Fn(RebuildProgress<'_>) + Send + Sync),
) -> Result<Option<Manifest>> {
    let listed = objects.list(CHECKPOINTS).await?;
    let mut manifests = Vec::new();
    let mut damage = None;
    for name in listed.iter().filter_map(|object| CheckpointName::parse_manifest(&object.name)) {
        match Manifest::read(objects, name).await {
            Ok(manifest) => manifests.push(manifest),
            Err(error @ HistoryError::Damaged { .. }) => {
                tell(RebuildProgress::DamagedCheckpoint { object: &name.manifest_object() });
                damage = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    let mut usable = rebuild_plan::usable_checkpoints(manifests, path, moment);
    while let Some(manifest) = usable.pop() {
        let object = manifest.name().data_object();
        tell(RebuildProgress::Checkpoint { object: &object, bytes: manifest.bytes });
        match download_checkpoint(objects, &manifest, file).await {
            Ok(()) => {
                Failpoint::RestoreFetched.pass();
                return Ok(Some(manifest));
            }
            Err(error @ (HistoryError::Damaged { .. } | HistoryError::Objects(objects::Error::NotFound { .. }))) => {
                tell(RebuildProgress::DamagedCheckpoint { object: &object });
                damage = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    // The archived log may still reach back to the beginning.
    if let Some(damage) = damage {
        tracing::warn!(
            error = &damage as &dyn std::error::Error,
            "no intact checkpoint is old enough; rebuilding from the beginning of the log"
        );
    }
    Ok(None)
}

/// Verifies that records form one history: each contains the checksum of its predecessor, and no two records have the
/// same number.
struct RecordChain {
    newest: u64,
    /// Checksums by record number.
    checksums: BTreeMap<u64, u64>,
}

impl RecordChain {
    fn new(last: Option<&Record>) -> Self {
        let newest = last.map_or(NO_PREDECESSOR, |last| last.checksum);
        Self { newest, checksums: last.map(|last| (last.number, last.checksum)).into_iter().collect() }
    }

    /// Adds the successor of the newest record.
    fn add(&mut self, record: &Record) -> Result<()> {
        if !record.follows(self.newest) && !InjectedBug::RestoreSkipsChecksumChain.is_active() {
            return Err(HistoryError::TwoHistories { record: record.number });
        }
        self.newest = record.checksum;
        self.checksums.insert(record.number, record.checksum);
        Ok(())
    }

    /// Compares a record with one of the same number from another object.
    fn compare(&self, record: &Record) -> Result<()> {
        match self.checksums.get(&record.number) {
            Some(&checksum) if checksum != record.checksum && !InjectedBug::RestoreSkipsChecksumChain.is_active() => {
                Err(HistoryError::TwoHistories { record: record.number })
            }
            _ => Ok(()),
        }
    }

    /// Drops the checksums of records before `number`: later objects contain none of them.
    fn forget_before(&mut self, number: u64) {
        self.checksums = self.checksums.split_off(&number);
    }
}

/// Changes that are not written yet.
#[derive(Default)]
struct PendingChanges {
    batch: Batch,
    bytes: usize,
}

impl PendingChanges {
    fn add(&mut self, record: &Record) {
        self.bytes += record.batch.ops().iter().map(kv::Op::byte_count).sum::<usize>();
        self.batch.append(record.batch.clone());
    }

    fn is_full(&self) -> bool {
        CHANGES_PER_WRITE_MAX <= self.batch.len() || BYTES_PER_WRITE_MAX <= self.bytes
    }

    async fn write(&mut self, kv: &Arc<dyn TxKv>) -> Result<()> {
        let batch = std::mem::take(self).batch;
        debug_assert!(
            batch.ops().iter().all(|op| op.space() != Space::LogicalLog),
            "a record does not write to Space::LogicalLog"
        );
        let kv = Arc::clone(kv);
        run_blocking(move || Ok(kv.write(batch)?)).await
    }
}
