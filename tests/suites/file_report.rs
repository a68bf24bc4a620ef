//! Results of one test file.

use std::collections::BTreeMap;

use crate::answer::{Answer, Failure, Row};
use crate::compare::Difference;
use crate::reason::Reason;
use crate::script::Record;

/// Most differences of a file of which both answers are kept.
const DIFFERENCES_MAX: usize = 200;
/// Most characters of a statement that are kept.
const STATEMENT_LENGTH_MAX: usize = 4_000;
/// Rows and characters of a value that are shown of an answer.
const SHOWN_ROWS: usize = 10;
const SHOWN_CHARACTERS: usize = 200;

/// Numbers of records by what came of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Records that ran on PostgreSQL.
    pub(crate) run: usize,
    /// Records that PostgreSQL accepted: all of the following up to `lost`.
    pub(crate) accepted: usize,
    pub(crate) right: usize,
    pub(crate) different: usize,
    pub(crate) refused: usize,
    /// Refused or different because of an earlier refusal.
    pub(crate) follows: usize,
    /// Records to which PostgreSQL itself gives two answers.
    pub(crate) unstable: usize,
    pub(crate) timed_out: usize,
    pub(crate) lost: usize,
    /// Right records whose numbers are written otherwise.
    pub(crate) number_forms: usize,
    /// Right records whose columns have other names.
    pub(crate) column_names: usize,
    /// Records that PostgreSQL refuses in a transaction block and Kiln accepts there.
    pub(crate) accepted_by_kiln_alone: usize,
    pub(crate) postgres_timed_out: usize,
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.run += other.run;
        self.accepted += other.accepted;
        self.right += other.right;
        self.different += other.different;
        self.refused += other.refused;
        self.follows += other.follows;
        self.unstable += other.unstable;
        self.timed_out += other.timed_out;
        self.lost += other.lost;
        self.number_forms += other.number_forms;
        self.column_names += other.column_names;
        self.accepted_by_kiln_alone += other.accepted_by_kiln_alone;
        self.postgres_timed_out += other.postgres_timed_out;
    }
}

/// Record at its location in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordLocation {
    pub(crate) line: usize,
    pub(crate) sql: String,
}

impl RecordLocation {
    pub(crate) fn new(record: &Record) -> Self {
        Self { line: record.line, sql: clip(&record.sql, STATEMENT_LENGTH_MAX) }
    }

    /// Returns the first line of the statement, cut at a number of characters.
    pub(crate) fn first_line(&self, characters: usize) -> String {
        let line = self.sql.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with("--"));
        clip(line.unwrap_or_default(), characters)
    }
}

/// Refused record.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) location: RecordLocation,
    pub(crate) failure: Failure,
    pub(crate) reason: Reason,
}

/// Record with two answers.
#[derive(Debug, Clone)]
pub(crate) struct DifferentRecord {
    pub(crate) location: RecordLocation,
    pub(crate) difference: Difference,
    pub(crate) expected: String,
    pub(crate) actual: String,
}

/// Results of a file.
#[derive(Debug, Default)]
pub(crate) struct FileReport {
    /// Path below the suite's folder.
    pub(crate) path: String,
    /// Requirement for which the file was skipped.
    pub(crate) unmet: Option<String>,
    pub(crate) skipped: BTreeMap<String, usize>,
    pub(crate) counts: Counts,
    pub(crate) differences_by_kind: BTreeMap<Difference, usize>,
    pub(crate) differences: Vec<DifferentRecord>,
    pub(crate) refusals: Vec<Refusal>,
    /// Number of records that follow from each reason.
    pub(crate) follows: BTreeMap<Reason, usize>,
    pub(crate) timed_out: Vec<RecordLocation>,
    pub(crate) lost: Vec<(RecordLocation, String)>,
    pub(crate) accepted_by_kiln_alone: Vec<RecordLocation>,
    pub(crate) column_names: Vec<RecordLocation>,
    /// Records at which the server process ended, with the end of its log.
    pub(crate) server_ends: Vec<(RecordLocation, String)>,
}

impl FileReport {
    pub(crate) fn add_right(&mut self, record: &Record, expected: &Answer, actual: &Answer) {
        self.counts.right += 1;
        if expected.columns != actual.columns {
            self.counts.column_names += 1;
            self.column_names.push(RecordLocation::new(record));
        }
    }

    pub(crate) fn add_difference(&mut self, record: &Record, difference: Difference, answers: (&Answer, &Answer)) {
        self.counts.different += 1;
        *self.differences_by_kind.entry(difference).or_default() += 1;
        if self.differences.len() < DIFFERENCES_MAX {
            let (expected, actual) = (shown(answers.0), shown(answers.1));
            self.differences.push(DifferentRecord {
                location: RecordLocation::new(record),
                difference,
                expected,
                actual,
            });
        }
    }

    pub(crate) fn add_refusal(&mut self, record: &Record, failure: Failure, reason: Reason) {
        self.counts.refused += 1;
        self.refusals.push(Refusal { location: RecordLocation::new(record), failure, reason });
    }

    pub(crate) fn add_follower(&mut self, reason: Reason) {
        self.counts.follows += 1;
        *self.follows.entry(reason).or_default() += 1;
    }

    pub(crate) fn add_timeout(&mut self, record: &Record) {
        self.counts.timed_out += 1;
        self.timed_out.push(RecordLocation::new(record));
    }

    pub(crate) fn add_lost(&mut self, record: &Record, cause: String) {
        self.counts.lost += 1;
        self.lost.push((RecordLocation::new(record), cause));
    }

    pub(crate) fn add_accepted_by_kiln_alone(&mut self, record: &Record) {
        self.counts.accepted_by_kiln_alone += 1;
        self.accepted_by_kiln_alone.push(RecordLocation::new(record));
    }
}

/// Shows the first rows of an answer.
fn shown(answer: &Answer) -> String {
    let value = |value: &Option<String>| {
        value.as_deref().map_or_else(|| "NULL".to_owned(), |text| clip(text, SHOWN_CHARACTERS))
    };
    let row = |row: &Row| row.iter().map(value).collect::<Vec<_>>().join(" | ");
    let mut lines: Vec<String> = answer.rows.iter().take(SHOWN_ROWS).map(row).collect();
    if SHOWN_ROWS < answer.row_count {
        lines.push(format!("… {} rows", answer.row_count));
    }
    if answer.columns.is_empty() {
        lines.push(format!("({} affected)", answer.affected));
    } else {
        lines.insert(0, format!("({})", answer.columns.join(" | ")));
    }
    lines.join("\n")
}

fn clip(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
