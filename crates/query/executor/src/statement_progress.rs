//! Progress of a running statement, as shown by `pg_stat_progress_copy`.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use types::Oid;

/// Counters of one running statement, written as it runs and read by other sessions.
#[derive(Debug, Default)]
pub struct StatementProgress {
    copy_kind: OnceLock<CopyKind>,
    bytes_processed: AtomicU64,
    bytes_total: AtomicU64,
    tuples_processed: AtomicU64,
    tuples_excluded: AtomicU64,
    tuples_skipped: AtomicU64,
}

/// Table, direction and medium of a COPY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyKind {
    /// Table; 0 for COPY of a query.
    pub table: Oid,
    /// `COPY FROM` or `COPY TO`.
    pub command: &'static str,
    /// `PIPE` for STDIN and STDOUT, `FILE` for files and URLs.
    pub medium: &'static str,
}

/// Snapshot of the counters, in the terms of `pg_stat_progress_copy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyProgress {
    /// Table, direction and medium of the COPY.
    pub kind: CopyKind,
    /// Bytes read or written so far.
    pub bytes_processed: u64,
    /// Bytes to read in total; 0 if unknown.
    pub bytes_total: u64,
    /// Rows read or written so far.
    pub tuples_processed: u64,
    /// Rows excluded by the WHERE clause.
    pub tuples_excluded: u64,
    /// Rows skipped by ON_ERROR ignore.
    pub tuples_skipped: u64,
}

impl StatementProgress {
    /// Returns the progress of the running COPY; `None` for other statements.
    #[must_use]
    pub fn copy(&self) -> Option<CopyProgress> {
        let kind = *self.copy_kind.get()?;
        Some(CopyProgress {
            kind,
            bytes_processed: self.bytes_processed.load(Ordering::Relaxed),
            bytes_total: self.bytes_total.load(Ordering::Relaxed),
            tuples_processed: self.tuples_processed.load(Ordering::Relaxed),
            tuples_excluded: self.tuples_excluded.load(Ordering::Relaxed),
            tuples_skipped: self.tuples_skipped.load(Ordering::Relaxed),
        })
    }

    /// Marks the statement as a COPY; the first mark counts.
    pub fn start_copy(&self, kind: CopyKind) {
        self.copy_kind.get_or_init(|| kind);
    }

    /// Sets the number of bytes to read.
    pub fn set_bytes_total(&self, bytes: u64) {
        self.bytes_total.store(bytes, Ordering::Relaxed);
    }

    /// Adds bytes read or written.
    pub fn add_bytes(&self, bytes: usize) {
        add_count(&self.bytes_processed, bytes);
    }

    /// Adds rows read or written.
    pub fn add_tuples(&self, rows: usize) {
        add_count(&self.tuples_processed, rows);
    }

    /// Adds rows skipped by ON_ERROR ignore.
    pub fn add_skipped(&self, rows: usize) {
        add_count(&self.tuples_skipped, rows);
    }
}

fn add_count(counter: &AtomicU64, count: usize) {
    counter.fetch_add(u64::try_from(count).expect("a count fits 64 bits"), Ordering::Relaxed);
}
