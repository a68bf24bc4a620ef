//! Selects the objects that a state is rebuilt from. Pure.

use kv::logical_log::Record;
use kv::{Op, Space};
use types::{CommitTs, TimeTravelTarget};

use crate::checkpoint::Manifest;
use crate::last_commit::{LAST_COMMIT, parse_commit};
use crate::object_names::LogName;
use crate::timeline::TimelineSegment;

/// A log object, and the last of its records that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogPart {
    pub(crate) name: LogName,
    pub(crate) until_record: u64,
}

/// Range of records that no object contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogGap {
    pub from: u64,
    pub to: u64,
}

/// Returns the checkpoints on the path that are not after `moment`, the newest last.
pub(crate) fn usable_checkpoints(
    manifests: Vec<Manifest>,
    path: &[TimelineSegment],
    moment: TimeTravelTarget,
) -> Vec<Manifest> {
    let mut usable: Vec<Manifest> = manifests
        .into_iter()
        .filter(|manifest| {
            path.iter().any(|leg| leg.timeline == manifest.timeline && manifest.record <= leg.until_record)
        })
        .filter(|manifest| match moment {
            TimeTravelTarget::Newest => true,
            TimeTravelTarget::Time(us) => manifest.written_us <= us,
            TimeTravelTarget::Commit(commit) => manifest.commit <= commit.0,
        })
        .collect();
    usable.sort_by_key(|manifest| manifest.record);
    usable
}

/// Returns the objects with the records after `after`, in order, up to the first gap. Objects that repeat some of them,
/// or contain `after` itself, are included: they must be compared with the others.
pub(crate) fn log_parts_after(
    names: &[LogName],
    path: &[TimelineSegment],
    after: u64,
) -> (Vec<LogPart>, Option<LogGap>) {
    let mut parts = Vec::new();
    let mut covered = after;
    for leg in path {
        let mut of_leg: Vec<LogName> = names
            .iter()
            .copied()
            .filter(|name| name.timeline == leg.timeline && name.first_record <= leg.until_record)
            .collect();
        of_leg.sort();
        for name in of_leg {
            let last = name.last_record.min(leg.until_record);
            if last <= covered {
                if after.max(1) <= last {
                    parts.push(LogPart { name, until_record: leg.until_record });
                }
                continue;
            }
            if covered + 1 < name.first_record {
                return (parts, Some(LogGap { from: covered + 1, to: name.first_record - 1 }));
            }
            parts.push(LogPart { name, until_record: leg.until_record });
            covered = last;
        }
    }
    (parts, None)
}

/// Returns the newest commit in the record; `None` if it contains none.
pub(crate) fn last_commit_in(record: &Record) -> Option<CommitTs> {
    record.batch.ops().iter().rev().find_map(|op| match op {
        Op::Put { space: Space::StoreMetadata, key, value } if key[..] == *LAST_COMMIT => parse_commit(value),
        _ => None,
    })
}

/// Returns whether `moment` lies before the record that contains `commit`.
pub(crate) fn is_before(moment: TimeTravelTarget, record: &Record, commit: CommitTs) -> bool {
    match moment {
        TimeTravelTarget::Newest => false,
        TimeTravelTarget::Time(us) => us < record.written_us,
        TimeTravelTarget::Commit(wanted) => wanted < commit,
    }
}
