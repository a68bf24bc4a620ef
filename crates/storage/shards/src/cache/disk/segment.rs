//! The files of the tier: records one behind the other, each file written once from its begin to its end.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::index::{Located, Place};
use super::record::{HEAD_BYTES, RecordHead};

const SUFFIX: &str = ".blocks";
/// A file with another number is none of ours: they are counted up from 0.
const NUMBERS_END: u64 = 1 << 60;

/// The file of a number.
fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:016x}{SUFFIX}"))
}

/// The numbers of the files that are there, ascending.
pub(super) fn numbers(folder: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
        let number = number.and_then(|number| u64::from_str_radix(number, 16).ok());
        numbers.extend(number.filter(|number| *number < NUMBERS_END));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Makes an empty file.
pub(super) fn create(folder: &Path, number: u64) -> io::Result<File> {
    fs::create_dir_all(folder)?;
    File::options().write(true).create_new(true).open(path(folder, number))
}

/// Takes a file away, if it is there.
pub(super) fn remove(folder: &Path, number: u64) -> io::Result<()> {
    match fs::remove_file(path(folder, number)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// What a file holds, by the heads of its records, and its length. The first head that is none ends it.
pub(super) fn walk(folder: &Path, number: u64) -> io::Result<(Vec<Located>, u64)> {
    let mut file = File::open(path(folder, number))?;
    let length = file.metadata()?.len();
    let (mut found, mut at) = (Vec::new(), 0);
    let mut bytes = [0; HEAD_BYTES];
    while at + HEAD_BYTES as u64 <= length {
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut bytes)?;
        let Some(head) = RecordHead::read(&bytes).filter(|head| at + head.record_bytes() <= length) else { break };
        let place = Place { segment: number, at, bytes: head.record_bytes() };
        found.push((head.key, head.table, place));
        at += place.bytes;
    }
    Ok((found, length))
}

/// The bytes of a record, which begin where kernels are fastest.
pub(super) fn read(folder: &Path, place: Place) -> io::Result<Bytes> {
    let wanted = usize::try_from(place.bytes).map_err(io::Error::other)?;
    let mut bytes = vec![0; wanted + HEAD_BYTES];
    let start = bytes.as_ptr().align_offset(HEAD_BYTES).min(HEAD_BYTES);
    let record = start..start + wanted;
    File::open(path(folder, place.segment))?.read_exact_at(&mut bytes[record.clone()], place.at)?;
    Ok(Bytes::from(bytes).slice(record))
}
