//! Names of the history's objects. Numbers are hexadecimal with a fixed width, so that names sort like numbers.

/// Folder of the archived log.
pub const LOG: &str = "log";
/// Folder of the checkpoints.
pub const CHECKPOINTS: &str = "checkpoints";
/// Folder of the tables' objects, which checkpoints and log reference.
pub const TABLES: &str = "tables";
const CHECKPOINT_DATA_SUFFIX: &str = ".redb.zst";
const CHECKPOINT_MANIFEST_SUFFIX: &str = ".json";
const TIMELINE_BEGIN_FILE: &str = "begin.json";

/// Name of a log object: its timeline and the range of its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LogName {
    pub(crate) timeline: u32,
    pub(crate) first_record: u64,
    pub(crate) last_record: u64,
}

/// Name of a checkpoint: its timeline and the newest record that it contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CheckpointName {
    pub(crate) timeline: u32,
    pub(crate) record: u64,
}

impl LogName {
    pub(crate) fn object(self) -> String {
        format!("{LOG}/{:08x}/{:016x}-{:016x}", self.timeline, self.first_record, self.last_record)
    }

    pub(crate) fn parse(object: &str) -> Option<Self> {
        let (timeline, range) = object.strip_prefix(LOG)?.strip_prefix('/')?.split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let name = Self {
            timeline: parse_hex::<8>(timeline)?.try_into().ok()?,
            first_record: parse_hex::<16>(first)?,
            last_record: parse_hex::<16>(last)?,
        };
        (name.first_record <= name.last_record).then_some(name)
    }
}

impl CheckpointName {
    pub(crate) fn data_object(self) -> String {
        format!("{CHECKPOINTS}/{:08x}/{:016x}{CHECKPOINT_DATA_SUFFIX}", self.timeline, self.record)
    }

    pub(crate) fn manifest_object(self) -> String {
        format!("{CHECKPOINTS}/{:08x}/{:016x}{CHECKPOINT_MANIFEST_SUFFIX}", self.timeline, self.record)
    }

    pub(crate) fn parse_data(object: &str) -> Option<Self> {
        Self::parse(object.strip_suffix(CHECKPOINT_DATA_SUFFIX)?)
    }

    pub(crate) fn parse_manifest(object: &str) -> Option<Self> {
        Self::parse(object.strip_suffix(CHECKPOINT_MANIFEST_SUFFIX)?)
    }

    fn parse(stem: &str) -> Option<Self> {
        let (timeline, record) = stem.strip_prefix(CHECKPOINTS)?.strip_prefix('/')?.split_once('/')?;
        Some(Self { timeline: parse_hex::<8>(timeline)?.try_into().ok()?, record: parse_hex::<16>(record)? })
    }
}

/// Returns the folder of a timeline below [`LOG`] or [`CHECKPOINTS`].
pub(crate) fn timeline_folder(of: &str, timeline: u32) -> String {
    format!("{of}/{timeline:08x}")
}

/// Returns the name of the object that describes the begin of a timeline.
pub(crate) fn begin_object(timeline: u32) -> String {
    format!("{LOG}/{timeline:08x}/{TIMELINE_BEGIN_FILE}")
}

pub(crate) fn parse_begin_object(object: &str) -> Option<u32> {
    let (timeline, name) = object.strip_prefix(LOG)?.strip_prefix('/')?.split_once('/')?;
    if name == TIMELINE_BEGIN_FILE { parse_hex::<8>(timeline)?.try_into().ok() } else { None }
}

/// Returns whether an object below [`LOG`] or [`CHECKPOINTS`] belongs to the history.
#[must_use]
pub fn is_history_object(object: &str) -> bool {
    LogName::parse(object).is_some()
        || parse_begin_object(object).is_some()
        || CheckpointName::parse_data(object).is_some()
        || CheckpointName::parse_manifest(object).is_some()
}

fn parse_hex<const DIGITS: usize>(text: &str) -> Option<u64> {
    let is_number = text.len() == DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_number { u64::from_str_radix(text, 16).ok() } else { None }
}
