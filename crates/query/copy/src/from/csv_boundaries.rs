//! Record boundaries in CSV: line ends outside quotes.

use memchr::{memchr, memchr_iter, memchr2_iter, memchr3, memrchr};

use super::chunk_cutter::{LineEnding, ScanProgress};

/// Scanner for record boundaries in CSV.
#[derive(Debug)]
pub(super) struct CsvScanner {
    quote: u8,
    escape: u8,
    accepts_marker: bool,
    eol: Option<LineEnding>,
    /// Bytes searched for the first line end without success.
    searched_bytes: usize,
    /// True if a quote is open at `scanned`.
    in_quotes: bool,
    /// Line ends between the boundary and `scanned`, which are within quotes.
    open_lines: u64,
}

impl CsvScanner {
    /// Creates a scanner; with `accepts_marker`, a line with only `\.` ends the input.
    pub(super) fn new(quote: u8, escape: u8, knows_marker: bool) -> CsvScanner {
        CsvScanner {
            quote,
            escape,
            accepts_marker: knows_marker,
            eol: None,
            searched_bytes: 0,
            in_quotes: false,
            open_lines: 0,
        }
    }

    pub(super) fn eol(&self) -> LineEnding {
        self.eol.unwrap_or_default()
    }

    /// Scans on from `progress.scanned`, up to the first byte that can only be decided with more input.
    pub(super) fn scan(&mut self, bytes: &[u8], progress: &mut ScanProgress, at_end: bool) {
        let eol = match self.eol {
            Some(eol) => eol,
            None => match self.find_eol(bytes, progress, at_end) {
                Some(eol) => *self.eol.insert(eol),
                None => return,
            },
        };
        let newline = eol.last_byte();
        let fresh = &bytes[progress.scanned..];
        let may_hold_marker = self.accepts_marker
            && (bytes.last() == Some(&b'\\')
                || memchr::memmem::find(&bytes[progress.scanned.saturating_sub(1)..], b"\\.").is_some());
        if may_hold_marker || self.escape != self.quote {
            self.scan_bytewise(bytes, progress, newline, at_end);
            return;
        }
        if !self.in_quotes && memchr(self.quote, fresh).is_none() {
            if let Some(last) = memrchr(newline, fresh) {
                progress.lines += u64::try_from(memchr_iter(newline, &fresh[..=last]).count()).expect("a count fits");
                progress.boundary = progress.scanned + last + 1;
            }
        } else {
            for at in memchr2_iter(self.quote, newline, fresh) {
                if fresh[at] == self.quote {
                    self.in_quotes = !self.in_quotes;
                } else {
                    self.line_end(progress.scanned + at, progress);
                }
            }
        }
        progress.scanned = bytes.len();
    }

    /// Scans byte by byte: the slow path, for an escape other than the quote, and if `\.` occurs.
    fn scan_bytewise(&mut self, bytes: &[u8], progress: &mut ScanProgress, newline: u8, at_end: bool) {
        let mut at = progress.scanned;
        loop {
            if self.accepts_marker && !self.in_quotes && at == progress.boundary && bytes[at..].starts_with(b"\\") {
                match match_marker(&bytes[at..], self.eol(), at_end) {
                    Marker::EndOfData => {
                        progress.is_ended = true;
                        progress.scanned = bytes.len();
                        return;
                    }
                    Marker::Undecided => {
                        progress.scanned = at;
                        return;
                    }
                    // In CSV a longer line that starts with `\.` is data.
                    Marker::Malformed(_) | Marker::None => {}
                }
            }
            let Some(found) = memchr3(self.quote, newline, self.escape, &bytes[at..]) else {
                progress.scanned = bytes.len();
                return;
            };
            at += found;
            let sign = bytes[at];
            if sign == newline && sign != self.quote {
                self.line_end(at, progress);
            } else if self.in_quotes && sign == self.escape && self.escape != self.quote {
                match bytes.get(at + 1) {
                    None if !at_end => {
                        progress.scanned = at;
                        return;
                    }
                    Some(next) if *next == self.escape || *next == self.quote => at += 1,
                    _ => {}
                }
            } else if sign == self.quote {
                self.in_quotes = !self.in_quotes;
            }
            at += 1;
            progress.scanned = at;
        }
    }

    /// Counts a line end at `at`, which ends a record unless it is within quotes.
    fn line_end(&mut self, at: usize, progress: &mut ScanProgress) {
        self.open_lines += 1;
        if !self.in_quotes {
            progress.lines += std::mem::take(&mut self.open_lines);
            progress.boundary = at + 1;
        }
    }

    /// Finds the first line end outside quotes; `None` if it has not arrived yet.
    fn find_eol(&mut self, bytes: &[u8], progress: &mut ScanProgress, at_end: bool) -> Option<LineEnding> {
        // Searching anew only when the input has doubled keeps the work linear.
        if bytes.len() < 2 * self.searched_bytes && !at_end {
            return None;
        }
        self.searched_bytes = bytes.len();
        let (mut in_quotes, mut at) = (false, 0);
        while let Some(found) = bytes.get(at).copied() {
            let next = bytes.get(at + 1).copied();
            if in_quotes && found == self.escape && self.escape != self.quote && next.is_some() {
                at += 1;
            } else if found == self.quote {
                in_quotes = !in_quotes;
            } else if !in_quotes && found == b'\n' {
                return Some(LineEnding::Lf);
            } else if !in_quotes && found == b'\r' {
                return match next {
                    Some(b'\n') => Some(LineEnding::CrLf),
                    None if !at_end => None,
                    _ => Some(LineEnding::Cr),
                };
            }
            at += 1;
        }
        // The input may consist of the marker alone, without a line end.
        if at_end && self.accepts_marker && bytes == b"\\." {
            progress.is_ended = true;
        }
        None
    }
}

/// Verdict on a backslash at the start of a line.
pub(super) enum Marker {
    /// End-of-data marker: `\.` alone on its line.
    EndOfData,
    /// Undecided without more bytes.
    Undecided,
    /// Malformed marker, with PostgreSQL's message for 22P04.
    Malformed(&'static str),
    /// Ordinary escape.
    None,
}

/// Decides whether `rest`, a line that starts with a backslash, is the end-of-data marker.
pub(super) fn match_marker(rest: &[u8], eol: LineEnding, at_end: bool) -> Marker {
    match (rest, eol) {
        ([b'\\'], _) if !at_end => Marker::Undecided,
        ([b'\\', b'.'], _) | ([b'\\', b'.', b'\r'], LineEnding::CrLf) => {
            if at_end {
                Marker::EndOfData
            } else {
                Marker::Undecided
            }
        }
        ([b'\\', b'.', b'\n', ..], LineEnding::Lf)
        | ([b'\\', b'.', b'\r', ..], LineEnding::Cr)
        | ([b'\\', b'.', b'\r', b'\n', ..], LineEnding::CrLf) => Marker::EndOfData,
        ([b'\\', b'.', b'\n' | b'\r', ..], _) => {
            Marker::Malformed("end-of-copy marker does not match previous newline style")
        }
        ([b'\\', b'.', ..], _) => Marker::Malformed("end-of-copy marker is not alone on its line"),
        _ => Marker::None,
    }
}
