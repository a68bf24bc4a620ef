//! Segment files of the disk tier: records one after the other, written once from start to end.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::block_record::{RECORD_HEAD_BYTES, RecordHead};
use super::index::{RecordLocation, ScannedRecord};

const SEGMENT_FILE_SUFFIX: &str = ".blocks";
/// Upper bound of valid segment numbers, which count up from 0; other files are ignored.
const SEGMENT_NUMBER_END: u64 = 1 << 60;

/// Returns the path of a segment.
fn segment_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:016x}{SEGMENT_FILE_SUFFIX}"))
}

/// Returns the numbers of the segments in a folder, ascending.
pub(super) fn list_segment_numbers(folder: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(SEGMENT_FILE_SUFFIX));
        let number = number.and_then(|number| u64::from_str_radix(number, 16).ok());
        numbers.extend(number.filter(|number| *number < SEGMENT_NUMBER_END));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Creates an empty segment.
pub(super) fn create(folder: &Path, number: u64) -> io::Result<File> {
    fs::create_dir_all(folder)?;
    File::options().write(true).create_new(true).open(segment_path(folder, number))
}

/// Deletes a segment if it exists.
pub(super) fn remove(folder: &Path, number: u64) -> io::Result<()> {
    match fs::remove_file(segment_path(folder, number)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Scans the record heads of a segment; returns the records and the file's size. Stops at the first invalid head.
pub(super) fn scan_records(folder: &Path, number: u64) -> io::Result<(Vec<ScannedRecord>, u64)> {
    let mut file = File::open(segment_path(folder, number))?;
    let length = file.metadata()?.len();
    let (mut found, mut at) = (Vec::new(), 0);
    let mut bytes = [0; RECORD_HEAD_BYTES];
    while at + RECORD_HEAD_BYTES as u64 <= length {
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut bytes)?;
        let Some(head) = RecordHead::read(&bytes).filter(|head| at + head.record_bytes() <= length) else { break };
        let place = RecordLocation { segment: number, offset: at, bytes: head.record_bytes() };
        found.push((head.key, head.table, place));
        at += place.bytes;
    }
    Ok((found, length))
}

/// Reads a record into memory aligned to the head size, as filter kernels prefer.
pub(super) fn read(folder: &Path, place: RecordLocation) -> io::Result<Bytes> {
    let wanted = usize::try_from(place.bytes).map_err(io::Error::other)?;
    let mut bytes = vec![0; wanted + RECORD_HEAD_BYTES];
    let start = bytes.as_ptr().align_offset(RECORD_HEAD_BYTES).min(RECORD_HEAD_BYTES);
    let record = start..start + wanted;
    File::open(segment_path(folder, place.segment))?.read_exact_at(&mut bytes[record.clone()], place.offset)?;
    Ok(Bytes::from(bytes).slice(record))
}
