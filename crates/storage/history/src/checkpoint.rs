//! Checkpoints: compressed copies of the whole store in the bucket, to which the archived log is applied.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt;
use kv::TxKv;
use kv::logical_log::Record;
use objects::Objects;
use serde::{Deserialize, Serialize};
use types::{CommitTs, Failpoint, InjectedBug, ServiceHealth};
use uuid::Uuid;
use xxhash_rust::xxh3::Xxh3;

use crate::last_commit::last_commit;
use crate::log_upload::run_blocking;
use crate::object_names::CheckpointName;
use crate::{History, HistoryError, NEWER_VERSION, Result};

/// Format 1 identified its newest record by number only, without checksum.
const MANIFEST_FORMAT: u32 = 2;
const ZSTD_LEVEL: i32 = 1;
/// Bytes that are read, sent and written at a time.
const IO_CHUNK_BYTES: usize = 4 * 1024 * 1024;
/// Maximum interval between checks whether a checkpoint is due.
const DUE_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// Manifest of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) format: u32,
    pub(crate) instance: String,
    pub(crate) timeline: u32,
    /// The newest log record that the checkpoint contains.
    pub(crate) record: u64,
    /// Checksum of that record in hexadecimal; `None` in format 1.
    #[serde(default)]
    pub(crate) record_checksum: Option<String>,
    /// Time of that record in microseconds since 1970.
    pub(crate) written_us: i64,
    /// The newest commit that the checkpoint contains.
    pub(crate) commit: u64,
    /// Size of the compressed file.
    pub(crate) bytes: u64,
    /// XXH3 of the compressed file in hexadecimal.
    pub(crate) checksum: String,
}

impl Manifest {
    pub(crate) fn name(&self) -> CheckpointName {
        CheckpointName { timeline: self.timeline, record: self.record }
    }

    pub(crate) fn instance(&self) -> Result<Uuid> {
        let object = || self.name().manifest_object();
        self.instance.parse().map_err(|_| HistoryError::Damaged { object: object(), reason: "instance is not a UUID" })
    }

    /// Returns whether the checkpoint's newest record is this one.
    pub(crate) fn contains(&self, record: &Record) -> bool {
        let checksum = record_checksum_text(record.checksum);
        self.record == record.number && self.record_checksum.as_ref().is_none_or(|expected| *expected == checksum)
    }

    /// Returns the checksum of the newest record; `None` in format 1.
    pub(crate) fn record_checksum(&self) -> Option<u64> {
        self.record_checksum.as_deref().and_then(|text| u64::from_str_radix(text, 16).ok())
    }

    pub(crate) async fn read(objects: &Objects, name: CheckpointName) -> Result<Self> {
        let damaged = |reason| HistoryError::Damaged { object: name.manifest_object(), reason };
        let bytes = objects.get(&name.manifest_object()).await?;
        let manifest: Self = serde_json::from_slice(&bytes).map_err(|_| damaged("it is not a valid manifest"))?;
        if MANIFEST_FORMAT < manifest.format {
            return Err(damaged(NEWER_VERSION));
        }
        if manifest.name() != name {
            return Err(damaged("its content does not match its name"));
        }
        Ok(manifest)
    }
}

impl History {
    /// Runs the service that writes checkpoints when they are due, until the server may no longer write.
    pub async fn run_checkpointer(&self, health: &ServiceHealth) {
        // At the start a checkpoint is due if there is none or the newest is too old.
        let mut newest: Option<i64> = None;
        let mut is_listed = false;
        while !self.has_lost_write_authority() {
            if !is_listed {
                match self.newest_checkpoint().await {
                    Ok(found) => {
                        newest = found.as_ref().map(|manifest| manifest.written_us);
                        self.newest_checkpoint_record
                            .store(found.map_or(0, |manifest| manifest.record), Ordering::Relaxed);
                        is_listed = true;
                        health.report_success();
                    }
                    Err(error) => self.record_failure("list the checkpoints", &error, health),
                }
            }
            let every = i64::try_from(self.settings.checkpoint_interval.as_micros()).unwrap_or(i64::MAX);
            let now_us = self.clock.now_us();
            let is_due = newest.is_none_or(|newest| every <= now_us.saturating_sub(newest));
            let is_new = self.log.progress().newest_record != self.newest_checkpoint_record.load(Ordering::Relaxed);
            // After a failed removal of old checkpoints there may be no new record, but the removal must be retried.
            if is_listed && is_due && (is_new || health.last_failure().is_some()) {
                match self.write_checkpoint().await {
                    Ok(()) => {
                        newest = Some(now_us);
                        health.report_success();
                    }
                    Err(error) => self.record_failure("write a checkpoint to the storage", &error, health),
                }
            }
            self.clock.sleep(DUE_CHECK_INTERVAL.min(self.settings.checkpoint_interval)).await;
        }
    }

    /// Writes a checkpoint, then deletes history that no state within the retention needs.
    ///
    /// # Errors
    /// As [`Self::upload_log`]; also fails if the data folder cannot be written.
    pub async fn write_checkpoint(&self) -> Result<()> {
        let folder = self.settings.work_folder.join("checkpoint");
        let timeline = self.timeline;
        self.check_disk_space()?;
        let (log, instance) = (Arc::clone(&self.log), self.settings.instance);
        self.write_authority.check().await?;
        let written = run_blocking(move || {
            let made = write_files(&*log, &folder, instance, timeline);
            if made.is_err() {
                // A partial copy may occupy the disk space that is missing.
                let _ = fs::remove_dir_all(&folder);
            }
            made
        });
        let (manifest, file) = written.await?;
        Failpoint::CheckpointMade.pass();
        // A checkpoint may be restored from as soon as its manifest exists: by then the log before it must be archived,
        // for restores to earlier points.
        let sent = match self.upload_log().await {
            Ok(()) => upload_checkpoint(&self.objects, &manifest, &file).await,
            Err(error) => Err(error),
        };
        let _ = fs::remove_file(&file);
        sent?;
        Failpoint::CheckpointNamed.pass();
        tracing::info!(
            record = manifest.record,
            commit = manifest.commit,
            bytes = manifest.bytes,
            "wrote a checkpoint of the store to the bucket"
        );
        self.newest_checkpoint_record.store(manifest.record, Ordering::Relaxed);
        self.status.lock().last_checkpoint_us = Some(self.clock.now_us());
        self.delete_expired(manifest.name()).await
    }

    /// Checks that the disk has space for a copy of the store and for its compressed form, which is smaller.
    fn check_disk_space(&self) -> Result<()> {
        let Some(reserve) = &self.settings.reserve else { return Ok(()) };
        let bytes = fs::metadata(&self.settings.store_file).map_or(0, |file| file.len());
        reserve
            .check_space(2 * bytes)
            .map_err(|source| HistoryError::File { path: self.settings.work_folder.clone(), source })
    }

    async fn newest_checkpoint(&self) -> Result<Option<Manifest>> {
        let listed = self.objects.list(crate::CHECKPOINTS).await?;
        let names = listed.iter().filter_map(|object| CheckpointName::parse_manifest(&object.name));
        let timeline = self.timeline;
        let newest = names.filter(|name| name.timeline == timeline).max();
        match newest {
            Some(name) => Manifest::read(&self.objects, name).await.map(Some),
            None => Ok(None),
        }
    }
}

/// Writes a compressed copy of the store; returns its manifest and its path.
fn write_files(kv: &dyn TxKv, folder: &Path, instance: Uuid, timeline: u32) -> Result<(Manifest, PathBuf)> {
    let failed = |source| HistoryError::File { path: folder.to_owned(), source };
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(failed)?;
    }
    fs::create_dir_all(folder).map_err(failed)?;
    let (copy, compressed) = (folder.join("checkpoint.redb"), folder.join("checkpoint.redb.zst"));
    kv.checkpoint(&copy)?;
    let (record, commit) = read_position(&copy)?;
    let (bytes, checksum) = compress(&copy, &compressed).map_err(failed)?;
    fs::remove_file(&copy).map_err(failed)?;
    let manifest = Manifest {
        format: MANIFEST_FORMAT,
        instance: instance.to_string(),
        timeline,
        record: record.number + if InjectedBug::CheckpointClaimsLaterRecords.is_active() { 3 } else { 0 },
        record_checksum: Some(record_checksum_text(record.checksum)),
        written_us: record.written_us,
        commit: commit.0,
        bytes,
        checksum,
    };
    Ok((manifest, compressed))
}

/// Returns the newest record and the newest commit that a copy of the store contains.
fn read_position(copy: &Path) -> Result<(Record, CommitTs)> {
    let damaged = |reason| HistoryError::Damaged { object: copy.display().to_string(), reason };
    let kv = kv::redb::open(copy)?;
    let record = kv::logical_log::newest_record(&kv)?.ok_or_else(|| damaged("it has no record of the log"))?;
    let commit = last_commit(&kv)?;
    Ok((record, commit.ok_or_else(|| damaged("it has no commit"))?))
}

fn compress(from: &Path, to: &Path) -> io::Result<(u64, String)> {
    let hashed = HashingFile { file: File::create(to)?, hash: Xxh3::new(), bytes: 0 };
    let mut encoder = zstd::stream::write::Encoder::new(hashed, ZSTD_LEVEL)?;
    io::copy(&mut File::open(from)?, &mut encoder)?;
    let hashed = encoder.finish()?;
    Ok((hashed.bytes, checksum_text(&hashed.hash)))
}

async fn upload_checkpoint(objects: &Objects, manifest: &Manifest, file: &Path) -> Result<()> {
    let mut writer = objects.writer(&manifest.name().data_object())?;
    let failed = |source| HistoryError::File { path: file.to_owned(), source };
    let mut source = File::open(file).map_err(failed)?;
    loop {
        let path = file.to_owned();
        let (back, piece) = run_blocking(move || {
            let mut piece = vec![0; IO_CHUNK_BYTES];
            let read = source.read(&mut piece).map_err(|source| HistoryError::File { path, source })?;
            piece.truncate(read);
            Ok((source, Bytes::from(piece)))
        })
        .await?;
        source = back;
        if piece.is_empty() {
            break;
        }
        writer.write(piece).await?;
    }
    writer.finish().await?;
    Failpoint::CheckpointStored.pass();
    let bytes = Bytes::from(serde_json::to_vec_pretty(manifest).expect("a Manifest serializes to JSON"));
    objects.put(&manifest.name().manifest_object(), bytes).await?;
    Ok(())
}

/// Fetches and decompresses a checkpoint's store to the file `to`, which must not exist.
pub(crate) async fn download_checkpoint(objects: &Objects, manifest: &Manifest, to: &Path) -> Result<()> {
    let object = manifest.name().data_object();
    let damaged = |reason| HistoryError::Damaged { object: objects.object_url(&object), reason };
    let compressed = to.with_extension("zst");
    let failed = |source| HistoryError::File { path: compressed.clone(), source };
    let mut hashed = HashingFile { file: File::create(&compressed).map_err(failed)?, hash: Xxh3::new(), bytes: 0 };
    let mut pieces = objects.stream(&object).await?;
    while let Some(piece) = pieces.try_next().await? {
        let path = compressed.clone();
        hashed = run_blocking(move || {
            hashed.write_all(&piece).map_err(|source| HistoryError::File { path, source })?;
            Ok(hashed)
        })
        .await?;
    }
    if (hashed.bytes, checksum_text(&hashed.hash)) != (manifest.bytes, manifest.checksum.clone()) {
        return Err(damaged("its size or checksum does not match"));
    }
    let (from, to) = (compressed.clone(), to.to_owned());
    run_blocking(move || {
        let failed = |source| HistoryError::File { path: to.clone(), source };
        let copied = File::open(&from).and_then(|from| {
            let mut file = File::create_new(&to)?;
            zstd::stream::copy_decode(from, &mut file)?;
            file.sync_all()
        });
        copied.map_err(failed)?;
        fs::remove_file(&from).map_err(failed)
    })
    .await
}

fn checksum_text(hash: &Xxh3) -> String {
    format!("{:016x}", hash.digest())
}

fn record_checksum_text(checksum: u64) -> String {
    format!("{checksum:016x}")
}

/// File with the size and the checksum of what was written to it.
struct HashingFile {
    file: File,
    hash: Xxh3,
    bytes: u64,
}

impl Write for HashingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
