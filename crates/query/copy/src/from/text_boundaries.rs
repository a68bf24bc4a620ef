//! Record boundaries in text format: line ends that are not escaped, and the end-of-data marker.

use memchr::{memchr, memchr_iter, memchr2, memrchr};
use types::SqlResult;

use super::binary_boundaries::bad_format;
use super::chunk_cutter::{LineEnding, ScanProgress};
use super::csv_boundaries::{Marker, match_marker};

/// Scanner for record boundaries in text format.
#[derive(Debug, Default)]
pub(super) struct TextScanner {
    eol: Option<LineEnding>,
    /// Bytes searched for the first line end without success.
    searched_bytes: usize,
}

impl TextScanner {
    pub(super) fn eol(&self) -> LineEnding {
        self.eol.unwrap_or_default()
    }

    /// Scans on from `progress.scanned`, up to the first byte that can only be decided with more input.
    pub(super) fn scan(&mut self, bytes: &[u8], progress: &mut ScanProgress, at_end: bool) -> SqlResult<()> {
        let eol = match self.eol {
            Some(eol) => eol,
            // Searching anew only when the input has doubled keeps the work linear.
            None if bytes.len() < 2 * self.searched_bytes && !at_end => return Ok(()),
            None => match find_eol(bytes, at_end) {
                Some(eol) => *self.eol.insert(eol),
                // A single line without an end, which may be the end-of-data marker.
                None if at_end => LineEnding::default(),
                None => {
                    self.searched_bytes = bytes.len();
                    return Ok(());
                }
            },
        };
        let newline = eol.last_byte();
        let fresh = &bytes[progress.scanned..];
        if memchr(b'\\', fresh).is_none() {
            if let Some(last) = memrchr(newline, fresh) {
                progress.lines += u64::try_from(memchr_iter(newline, &fresh[..=last]).count()).expect("a count fits");
                progress.boundary = progress.scanned + last + 1;
            }
            progress.scanned = bytes.len();
            return Ok(());
        }
        let mut at = progress.scanned;
        while let Some(found) = memchr2(b'\\', newline, &bytes[at..]) {
            at += found;
            if bytes[at] == newline {
                at += 1;
                progress.lines += 1;
                progress.boundary = at;
                continue;
            }
            if at == progress.boundary {
                match match_marker(&bytes[at..], eol, at_end) {
                    Marker::EndOfData => {
                        progress.is_ended = true;
                        progress.scanned = bytes.len();
                        return Ok(());
                    }
                    Marker::Undecided => {
                        progress.scanned = at;
                        return Ok(());
                    }
                    Marker::Malformed(message) => return Err(bad_format(message)),
                    Marker::None => {}
                }
            }
            if at + 1 == bytes.len() && !at_end {
                // The escaped byte has not arrived yet.
                progress.scanned = at;
                return Ok(());
            }
            at = (at + 2).min(bytes.len());
        }
        progress.scanned = bytes.len();
        Ok(())
    }
}

/// Finds the first line end that is not escaped; `None` if it has not arrived yet.
fn find_eol(bytes: &[u8], at_end: bool) -> Option<LineEnding> {
    let mut at = 0;
    while let Some(found) = memchr::memchr3(b'\\', b'\n', b'\r', &bytes[at..]) {
        at += found;
        match (bytes[at], bytes.get(at + 1)) {
            (b'\n', _) => return Some(LineEnding::Lf),
            (b'\r', Some(b'\n')) => return Some(LineEnding::CrLf),
            (b'\r', None) if !at_end => return None,
            (b'\r', _) => return Some(LineEnding::Cr),
            _ => at = (at + 2).min(bytes.len()),
        }
    }
    None
}
