//! A store as it was: a checkpoint, and the log after it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use futures::{StreamExt, stream};
use kv::log::{NO_PREDECESSOR, Record};
use kv::{Batch, Space, TxKv};
use objects::Objects;
use types::{CommitTs, Failpoint, Moment, Mutation};
use uuid::Uuid;

use crate::checkpoint::{Manifest, fetch};
use crate::last_commit::last_commit;
use crate::names::{CheckpointName, LogName};
use crate::plan::{self, Gap};
use crate::timeline::Leg;
use crate::upload::blocking;
use crate::{CHECKPOINTS, HistoryError, LOG, Result, log_object};

/// Objects of the log fetched at a time.
const FETCHES_AT_ONCE: usize = 8;
/// Changes that one write of the rebuilt store makes, about.
const WRITE_OPS: usize = 100_000;
const WRITE_BYTES: usize = 32 * 1024 * 1024;

/// A store as of a moment.
#[derive(Debug)]
pub(crate) struct Rebuilt {
    pub(crate) kv: Arc<dyn TxKv>,
    pub(crate) instance: Uuid,
    /// The newest record in it.
    pub(crate) last: Record,
    /// The newest commit in it.
    pub(crate) commit: CommitTs,
    /// The next commit, and when it was, where the log tells of one.
    pub(crate) next: Option<(CommitTs, i64)>,
    /// What is missing after it.
    pub(crate) gap: Option<Gap>,
}

/// What is told while a store is rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'a> {
    Checkpoint {
        object: &'a str,
        bytes: u64,
    },
    /// It cannot be used, so an older one is.
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

/// Rebuilds the store as of `moment` in the file `file`, which must not be there. A gap in the log ends it early.
pub(crate) async fn rebuild(
    objects: &Objects,
    path: &[Leg],
    moment: Moment,
    file: &Path,
    tell: &(dyn Fn(Progress<'_>) + Send + Sync),
) -> Result<Rebuilt> {
    let start = fetch_start(objects, path, moment, file, tell).await?;
    let kv: Arc<dyn TxKv> = Arc::new(kv::redb::open(file)?);
    let mut last = kv::log::newest(&*kv)?;
    if let (Some(manifest), Some(last)) = (&start, &last)
        && !manifest.contains(last)
    {
        let object = manifest.name().data();
        return Err(HistoryError::Damaged { object, reason: "it does not end with the record that its name says" });
    }
    let mut chain = Chain::new(last.as_ref());
    let mut instance = start.as_ref().map(Manifest::instance).transpose()?;
    let after = start.as_ref().map_or(0, |manifest| manifest.record);
    let listed = objects.list(LOG).await?;
    let names: Vec<LogName> = listed.iter().filter_map(|object| LogName::parse(&object.name)).collect();
    let (parts, mut gap) = plan::log_after(&names, path, after);
    if after == 0 && parts.is_empty() {
        return Err(HistoryError::NoStart);
    }
    tell(Progress::Log { objects: parts.len() });
    let mut commit = last_commit(&*kv)?;
    let mut fetched = stream::iter(parts)
        .map(|part| async move {
            let bytes = match objects.get(&part.name.object()).await {
                // What the checkpoint contains may be removed at any time: it is only compared with it.
                Err(objects::Error::NotFound { .. }) if part.name.last <= after => return Ok(None),
                bytes => bytes?,
            };
            let decoded = blocking(move || log_object::decode(part.name, &bytes)).await?;
            Ok::<_, HistoryError>(Some((part, decoded)))
        })
        .buffered(FETCHES_AT_ONCE);
    let mut pending = Pending::default();
    let mut next = None;
    'parts: while let Some(fetched) = fetched.next().await {
        let Some((part, (written_by, records))) = fetched? else { continue };
        instance = Some(written_by);
        chain.forget_before(part.name.first);
        for record in records {
            if part.until < record.number {
                break;
            }
            if record.number <= last.as_ref().map_or(0, |last| last.number) {
                chain.compare(&record)?;
                continue;
            }
            if let Some(contained) = plan::commit_of(&record) {
                if plan::is_before(moment, &record, contained) {
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
        tell(Progress::Records { until: last.as_ref().map_or(0, |last| last.number) });
    }
    pending.write(&kv).await?;
    let (Some(last), Some(commit), Some(instance)) = (last, commit, instance) else {
        return Err(HistoryError::NoStart);
    };
    Ok(Rebuilt { kv, instance, last, commit, next, gap })
}

/// Fetches the newest whole checkpoint from before the moment; `None` where there is none.
async fn fetch_start(
    objects: &Objects,
    path: &[Leg],
    moment: Moment,
    file: &Path,
    tell: &(dyn Fn(Progress<'_>) + Send + Sync),
) -> Result<Option<Manifest>> {
    let listed = objects.list(CHECKPOINTS).await?;
    let mut manifests = Vec::new();
    let mut damage = None;
    for name in listed.iter().filter_map(|object| CheckpointName::parse_manifest(&object.name)) {
        match Manifest::read(objects, name).await {
            Ok(manifest) => manifests.push(manifest),
            Err(error @ HistoryError::Damaged { .. }) => {
                tell(Progress::DamagedCheckpoint { object: &name.manifest() });
                damage = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    let mut usable = plan::checkpoints(manifests, path, moment);
    while let Some(manifest) = usable.pop() {
        let object = manifest.name().data();
        tell(Progress::Checkpoint { object: &object, bytes: manifest.bytes });
        match fetch(objects, &manifest, file).await {
            Ok(()) => {
                Failpoint::RestoreFetched.pass();
                return Ok(Some(manifest));
            }
            Err(error @ (HistoryError::Damaged { .. } | HistoryError::Objects(objects::Error::NotFound { .. }))) => {
                tell(Progress::DamagedCheckpoint { object: &object });
                damage = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    // Without any checkpoint the log may still reach back to the beginning.
    if let Some(damage) = damage {
        tracing::warn!(error = &damage as &dyn std::error::Error, "no whole checkpoint from before the moment");
    }
    Ok(None)
}

/// Proof that records are those of one history: each contains the checksum of the one before it, and no number stands for two records.
struct Chain {
    newest: u64,
    /// By number.
    checksums: BTreeMap<u64, u64>,
}

impl Chain {
    fn new(last: Option<&Record>) -> Self {
        let newest = last.map_or(NO_PREDECESSOR, |last| last.checksum);
        Self { newest, checksums: last.map(|last| (last.number, last.checksum)).into_iter().collect() }
    }

    /// Takes the record that follows the newest.
    fn add(&mut self, record: &Record) -> Result<()> {
        if !record.follows(self.newest) && !Mutation::HistoryNotChained.is_on() {
            return Err(HistoryError::TwoHistories { record: record.number });
        }
        self.newest = record.checksum;
        self.checksums.insert(record.number, record.checksum);
        Ok(())
    }

    /// Looks at a record that another object has told already.
    fn compare(&self, record: &Record) -> Result<()> {
        match self.checksums.get(&record.number) {
            Some(&checksum) if checksum != record.checksum && !Mutation::HistoryNotChained.is_on() => {
                Err(HistoryError::TwoHistories { record: record.number })
            }
            _ => Ok(()),
        }
    }

    /// No object after this tells of older records.
    fn forget_before(&mut self, number: u64) {
        self.checksums = self.checksums.split_off(&number);
    }
}

/// Changes that are not written yet.
#[derive(Default)]
struct Pending {
    batch: Batch,
    bytes: usize,
}

impl Pending {
    fn add(&mut self, record: &Record) {
        self.bytes += record.batch.ops().iter().map(kv::Op::byte_count).sum::<usize>();
        self.batch.append(record.batch.clone());
    }

    fn is_full(&self) -> bool {
        WRITE_OPS <= self.batch.len() || WRITE_BYTES <= self.bytes
    }

    async fn write(&mut self, kv: &Arc<dyn TxKv>) -> Result<()> {
        let batch = std::mem::take(self).batch;
        debug_assert!(batch.ops().iter().all(|op| op.space() != Space::Log), "the log does not tell of itself");
        let kv = Arc::clone(kv);
        blocking(move || Ok(kv.write(batch)?)).await
    }
}
