//! How far a running statement has come; what `pg_stat_progress_copy` shows.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use types::Oid;

/// Counters of one running statement, written as it runs and read by anyone.
#[derive(Debug, Default)]
pub struct Progress {
    copy: OnceLock<CopyKind>,
    bytes_processed: AtomicU64,
    bytes_total: AtomicU64,
    tuples_processed: AtomicU64,
    tuples_excluded: AtomicU64,
    tuples_skipped: AtomicU64,
}

/// What a running COPY does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyKind {
    /// The table; 0 for COPY of a query.
    pub table: Oid,
    /// `COPY FROM` or `COPY TO`.
    pub command: &'static str,
    /// `PIPE` for STDIN and STDOUT, `FILE` for files and URLs.
    pub medium: &'static str,
}

/// The counters at one moment, in `pg_stat_progress_copy`'s terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyProgress {
    /// What the COPY does.
    pub kind: CopyKind,
    /// Bytes read or written so far.
    pub bytes_processed: u64,
    /// Bytes there are to read, 0 where that is not known.
    pub bytes_total: u64,
    /// Rows read or written so far.
    pub tuples_processed: u64,
    /// Rows left out by a WHERE clause.
    pub tuples_excluded: u64,
    /// Rows left out by ON_ERROR ignore.
    pub tuples_skipped: u64,
}

impl Progress {
    /// The running COPY, `None` for other statements.
    #[must_use]
    pub fn copy(&self) -> Option<CopyProgress> {
        let kind = *self.copy.get()?;
        Some(CopyProgress {
            kind,
            bytes_processed: self.bytes_processed.load(Ordering::Relaxed),
            bytes_total: self.bytes_total.load(Ordering::Relaxed),
            tuples_processed: self.tuples_processed.load(Ordering::Relaxed),
            tuples_excluded: self.tuples_excluded.load(Ordering::Relaxed),
            tuples_skipped: self.tuples_skipped.load(Ordering::Relaxed),
        })
    }

    /// Marks the statement as a COPY; the first mark stays.
    pub fn start_copy(&self, kind: CopyKind) {
        self.copy.get_or_init(|| kind);
    }

    pub fn set_bytes_total(&self, bytes: u64) {
        self.bytes_total.store(bytes, Ordering::Relaxed);
    }

    pub fn add_bytes(&self, bytes: usize) {
        add(&self.bytes_processed, bytes);
    }

    pub fn add_tuples(&self, rows: usize) {
        add(&self.tuples_processed, rows);
    }

    pub fn add_skipped(&self, rows: usize) {
        add(&self.tuples_skipped, rows);
    }
}

fn add(counter: &AtomicU64, count: usize) {
    counter.fetch_add(u64::try_from(count).expect("a count fits 64 bits"), Ordering::Relaxed);
}
