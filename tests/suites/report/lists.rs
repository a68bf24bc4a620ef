//! Lists of a suite's differences, refusals and files.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::file_report::{FileReport, RecordLocation};
use crate::reason::{Reason, key};
use crate::run_suite::SuiteReport;

/// Most characters of a statement in a list of locations.
const STATEMENT_LENGTH: usize = 160;

/// Returns the lists, by the names of their files.
pub(crate) fn lists(report: &SuiteReport) -> [(&'static str, String); 5] {
    [
        ("different.txt", differences(&report.files)),
        ("refused.txt", refusals(&report.files)),
        ("files.txt", files(&report.files)),
        ("accepted.txt", locations(&report.files, |file| &file.accepted_by_kiln_alone)),
        ("column-names.txt", locations(&report.files, |file| &file.column_names)),
    ]
}

fn differences(files: &[FileReport]) -> String {
    let mut text = String::new();
    for file in files {
        for different in &file.differences {
            let location = &different.location;
            let _ = writeln!(text, "{}:{}: {}\n{}", file.path, location.line, different.difference, location.sql);
            let _ = writeln!(text, "PostgreSQL:\n{}\nKiln:\n{}\n", different.expected, different.actual);
        }
        let left_out = file.counts.different - file.differences.len();
        if 0 < left_out {
            let _ = writeln!(text, "{}: {left_out} more\n", file.path);
        }
    }
    text
}

/// Lists the refusals by reason and key, most frequent ones first, and then timeouts and lost connections.
fn refusals(files: &[FileReport]) -> String {
    let mut by_key: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    let shown = |file: &FileReport, location: &RecordLocation| {
        format!("  {}:{}: {}", file.path, location.line, location.first_line(STATEMENT_LENGTH))
    };
    for file in files {
        for refusal in &file.refusals {
            let reason = match &refusal.reason {
                Reason::ToDo(_) => "to do".to_owned(),
                other => other.to_string(),
            };
            let locations = by_key.entry((reason, key(&refusal.failure))).or_default();
            locations.push(shown(file, &refusal.location));
        }
        for location in &file.timed_out {
            by_key.entry(("timed out".to_owned(), String::new())).or_default().push(shown(file, location));
        }
        for (location, cause) in &file.lost {
            by_key.entry(("connection lost".to_owned(), cause.clone())).or_default().push(shown(file, location));
        }
    }
    let mut keys: Vec<_> = by_key.into_iter().collect();
    keys.sort_by_key(|(_, locations)| std::cmp::Reverse(locations.len()));
    let mut text = String::new();
    for ((reason, key), locations) in keys {
        let _ = writeln!(text, "{} {key} [{reason}]\n{}\n", locations.len(), locations.join("\n"));
    }
    text
}

fn files(files: &[FileReport]) -> String {
    let mut text = "accepted right different refused follows timed-out lost file\n".to_owned();
    for file in files {
        let counts = &file.counts;
        let _ = match &file.unmet {
            Some(unmet) => writeln!(text, "not run: {unmet}: {}", file.path),
            None => writeln!(
                text,
                "{:>8} {:>5} {:>9} {:>7} {:>7} {:>9} {:>4} {}",
                counts.accepted,
                counts.right,
                counts.different,
                counts.refused,
                counts.follows,
                counts.timed_out,
                counts.lost,
                file.path
            ),
        };
    }
    text
}

fn locations(files: &[FileReport], of: impl Fn(&FileReport) -> &[RecordLocation]) -> String {
    let mut text = String::new();
    for file in files {
        for location in of(file) {
            let _ = writeln!(text, "{}:{}: {}", file.path, location.line, location.first_line(STATEMENT_LENGTH));
        }
    }
    text
}
