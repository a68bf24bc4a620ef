//! Cuts the bytes of one input into chunks at record boundaries, in one fast sequential pass, for parallel parsing.

use bytes::{Bytes, BytesMut};
use types::{Condition, SqlError};

use super::binary_boundaries::BinaryScanner;
use super::csv_boundaries::CsvScanner;
use super::input_layout::{InputLayout, RecordFormat};
use super::text_boundaries::TextScanner;

/// Minimum bytes of a chunk but the last: large enough that the handover to a thread is cheap compared to parsing.
pub(crate) const CHUNK_BYTES: usize = 1 << 20;
/// Maximum bytes of a record, as in PostgreSQL.
const RECORD_MAX: usize = 1 << 30;

/// Line ending of an input, determined by its first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum LineEnding {
    #[default]
    Lf,
    CrLf,
    Cr,
}

impl LineEnding {
    /// Returns the last byte of the line ending.
    pub(super) fn last_byte(self) -> u8 {
        match self {
            LineEnding::Lf | LineEnding::CrLf => b'\n',
            LineEnding::Cr => b'\r',
        }
    }
}

/// Complete records of one input.
#[derive(Debug, Clone)]
pub(super) struct Chunk {
    pub(super) bytes: Bytes,
    /// Number of the first line (text, CSV) or record (binary), from 1.
    pub(super) first_line: u64,
    /// True for the first chunk of an input, which has the header if there is one.
    pub(super) is_first: bool,
    pub(super) eol: LineEnding,
}

/// State of the search for record boundaries in the pending bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ScanProgress {
    /// Bytes scanned; the bytes behind them can only be decided with more input.
    pub(super) scanned: usize,
    /// End of the last complete record.
    pub(super) boundary: usize,
    /// Lines (records, in binary) that end before the boundary.
    pub(super) lines: u64,
    /// True if the end-of-data marker starts at the boundary: bytes behind it are ignored.
    pub(super) is_ended: bool,
}

/// Incremental scanner for record boundaries.
#[derive(Debug)]
enum RecordScanner {
    Text(TextScanner),
    Csv(CsvScanner),
    Binary(BinaryScanner),
}

/// Cutter of one input: takes bytes and returns chunks.
#[derive(Debug)]
pub(super) struct ChunkCutter {
    scan: RecordScanner,
    chunk_bytes: usize,
    pending: BytesMut,
    progress: ScanProgress,
    /// Line number of the first pending byte.
    line: u64,
    is_first: bool,
    failure: Option<SqlError>,
}

impl ChunkCutter {
    /// Creates a cutter for an input in the format of `layout`; CSV from a client may also end with `\.`.
    pub(super) fn new(layout: &InputLayout, from_client: bool) -> ChunkCutter {
        let scan = match &layout.record_format {
            RecordFormat::Text(_) => RecordScanner::Text(TextScanner::default()),
            RecordFormat::Csv { quote, escape, .. } => {
                RecordScanner::Csv(CsvScanner::new(*quote, *escape, from_client))
            }
            RecordFormat::Binary => RecordScanner::Binary(BinaryScanner::new(layout.columns.len())),
        };
        ChunkCutter {
            scan,
            chunk_bytes: layout.chunk_bytes,
            pending: BytesMut::new(),
            progress: ScanProgress::default(),
            line: 1,
            is_first: true,
            failure: None,
        }
    }

    /// Adds bytes; the caller must drain [`ChunkCutter::next_chunk`] before adding more.
    pub(super) fn push(&mut self, piece: &[u8]) {
        if self.progress.is_ended {
            if let (RecordScanner::Binary(scan), None) = (&self.scan, &self.failure) {
                self.failure = scan.check_no_more_data(piece).err();
            }
            return;
        }
        self.pending.extend_from_slice(piece);
        self.scan(false);
        if self.pending.len() - self.progress.boundary > RECORD_MAX {
            self.fail(SqlError::new(Condition::ProgramLimitExceeded, "a COPY record exceeds 1 GB"));
        }
    }

    /// Returns the next chunk, if there are enough bytes for one.
    pub(super) fn next_chunk(&mut self) -> Option<Chunk> {
        if self.progress.boundary >= self.chunk_bytes || (self.progress.is_ended && self.progress.boundary > 0) {
            return Some(self.take_chunk(self.progress.boundary));
        }
        None
    }

    /// Returns the last chunk at the end of the input, even if its last record is incomplete.
    pub(super) fn finish(&mut self) -> Option<Chunk> {
        if !self.progress.is_ended {
            self.scan(true);
        }
        let rest = if self.progress.is_ended { self.progress.boundary } else { self.pending.len() };
        // A binary input has a header even where it has no rows.
        let lacks_header = self.is_first && matches!(self.scan, RecordScanner::Binary(_)) && self.failure.is_none();
        (rest > 0 || lacks_header).then(|| self.take_chunk(rest))
    }

    /// Takes the error behind the last chunk, with its line: 54000 for a record beyond 1 GB; 22P04 for a malformed
    /// end-of-data marker, an invalid header, or bytes behind a binary trailer.
    pub(super) fn take_failure(&mut self) -> Option<(SqlError, u64)> {
        self.failure.take().map(|error| (error, self.line))
    }

    /// Records an error, after which bytes behind the boundary are ignored.
    fn fail(&mut self, error: SqlError) {
        self.failure = Some(error);
        self.progress.is_ended = true;
    }

    fn scan(&mut self, at_end: bool) {
        let scanned = match &mut self.scan {
            RecordScanner::Text(scan) => scan.scan(&self.pending, &mut self.progress, at_end),
            RecordScanner::Csv(scan) => {
                scan.scan(&self.pending, &mut self.progress, at_end);
                Ok(())
            }
            RecordScanner::Binary(scan) => scan.scan(&self.pending, &mut self.progress),
        };
        if let Err(error) = scanned {
            self.fail(error);
        }
    }

    fn take_chunk(&mut self, length: usize) -> Chunk {
        let eol = match &self.scan {
            RecordScanner::Text(scan) => scan.eol(),
            RecordScanner::Csv(scan) => scan.eol(),
            RecordScanner::Binary(_) => LineEnding::default(),
        };
        let chunk = Chunk {
            bytes: self.pending.split_to(length).freeze(),
            first_line: self.line,
            is_first: std::mem::take(&mut self.is_first),
            eol,
        };
        self.line += self.progress.lines;
        self.progress.lines = 0;
        self.progress.scanned = self.progress.scanned.saturating_sub(length);
        self.progress.boundary = 0;
        chunk
    }
}
