//! Retention: deletes checkpoints and archived log that no state within the retention needs.

use std::collections::BTreeSet;

use futures::{StreamExt, stream};
use types::{Failpoint, InjectedBug};

use crate::checkpoint::Manifest;
use crate::object_names::{CheckpointName, LogName};
use crate::timeline::{self, TimelineSegment};
use crate::{CHECKPOINTS, History, LOG, Result};

/// Parallel deletions.
const PARALLEL_DELETES_MAX: usize = 16;

impl History {
    /// Deletes old history. `newest` is the checkpoint that this server has just written; it writes one at a time.
    pub(crate) async fn delete_expired(&self, newest: CheckpointName) -> Result<()> {
        let retention = i64::try_from(self.settings.retention.as_micros()).unwrap_or(i64::MAX);
        let now_us = self.clock.now_us();
        let cutoff_us =
            if InjectedBug::LogPrunedTooEarly.is_active() { now_us } else { now_us.saturating_sub(retention) };
        let path = timeline::timeline_path(&self.objects, self.timeline).await?;
        let listed = self.objects.list(CHECKPOINTS).await?;
        let mut checkpoints = Vec::new();
        for name in listed.iter().filter_map(|object| CheckpointName::parse_manifest(&object.name)) {
            checkpoints.push(Manifest::read(&self.objects, name).await?);
        }
        let Some(kept) = oldest_needed_checkpoint(&path, &checkpoints, cutoff_us) else { return Ok(()) };
        let is_old = |modified_us: i64| modified_us <= cutoff_us;
        let gone: Vec<CheckpointName> = checkpoints
            .iter()
            .filter(|manifest| {
                let leads_here =
                    find_segment(&path, manifest.timeline).is_some_and(|leg| manifest.record <= leg.until_record);
                if leads_here { manifest.record < kept.record } else { is_old(manifest.written_us) }
            })
            .map(Manifest::name)
            .collect();
        // The manifest is deleted first, since a checkpoint with a manifest counts as complete.
        let mut objects: Vec<String> = gone.iter().map(|name| name.manifest_object()).collect();
        objects.extend(gone.iter().map(|name| name.data_object()));
        let with_manifest: BTreeSet<CheckpointName> = checkpoints.iter().map(Manifest::name).collect();
        let half_made = listed.iter().filter_map(|object| CheckpointName::parse_data(&object.name));
        let half_made = half_made.filter(|name| {
            !with_manifest.contains(name) && name.timeline == newest.timeline && name.record < newest.record
        });
        objects.extend(half_made.map(CheckpointName::data_object));
        for object in self.objects.list(LOG).await? {
            let Some(name) = LogName::parse(&object.name) else { continue };
            let leads_here =
                find_segment(&path, name.timeline).is_some_and(|leg| name.first_record <= leg.until_record);
            let is_gone =
                if leads_here { name.last_record <= kept.record } else { is_old(object.modified.timestamp_micros()) };
            if is_gone {
                objects.push(object.name);
            }
        }
        let count = objects.len();
        self.write_authority.check().await?;
        let deletes = stream::iter(objects).map(|object| async move {
            let deleted = self.objects.delete(&object).await;
            Failpoint::PastDeleted.pass();
            deleted
        });
        let outcomes: Vec<_> = deletes.buffered(PARALLEL_DELETES_MAX).collect().await;
        outcomes.into_iter().collect::<Result<(), _>>()?;
        if count != 0 {
            tracing::info!(count, "deleted history older than the retention");
        }
        Ok(())
    }
}

/// Returns the newest checkpoint from before the cutoff: every later state can be rebuilt without older objects.
/// Without such a checkpoint nothing can be deleted.
fn oldest_needed_checkpoint<'a>(
    path: &[TimelineSegment],
    checkpoints: &'a [Manifest],
    cutoff_us: i64,
) -> Option<&'a Manifest> {
    let leads_here = |manifest: &&Manifest| {
        find_segment(path, manifest.timeline).is_some_and(|leg| manifest.record <= leg.until_record)
    };
    let before = checkpoints.iter().filter(|manifest| manifest.written_us <= cutoff_us).filter(leads_here);
    before.max_by_key(|manifest| manifest.record)
}

fn find_segment(path: &[TimelineSegment], timeline: u32) -> Option<&TimelineSegment> {
    path.iter().find(|leg| leg.timeline == timeline)
}
