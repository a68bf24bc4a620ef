//! Summary of a suite: totals, refusals by reason, and what did not run.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::file_report::{Counts, FileReport, RecordLocation};
use crate::reason::Reason;
use crate::run_suite::SuiteReport;

/// Most reasons that are shown of what is to do.
const TO_DO_SHOWN: usize = 40;
/// Most characters of a statement that are shown as an example.
const EXAMPLE_LENGTH: usize = 90;

/// Records of one reason.
#[derive(Default)]
struct ReasonCount<'a> {
    refused: usize,
    follows: usize,
    example: Option<(&'a str, &'a RecordLocation)>,
}

/// Returns the summary, in an order that the results alone decide.
pub(crate) fn summary(title: &str, report: &SuiteReport) -> String {
    let mut text = totals(title, &report.files);
    let reasons = count_reasons(&report.files);
    let (features, to_do): (Vec<_>, Vec<_>) =
        reasons.into_iter().partition(|(reason, _)| matches!(reason, Reason::Feature(_)));
    let shown = to_do.len().min(TO_DO_SHOWN);
    text.push_str(&reason_table(&format!("Refused, to do ({} reasons, {shown} shown)", to_do.len()), &to_do[..shown]));
    text.push_str(&reason_table("Refused, of the closed list", &features));
    text.push_str(&count_table(
        "Files not run",
        report.files.iter().filter_map(|file| Some((file.unmet.as_ref()?, 1))),
    ));
    let skipped = report.files.iter().flat_map(|file| file.skipped.iter().map(|(cause, count)| (cause, *count)));
    text.push_str(&count_table("Records and commands not run", skipped));
    for file in &report.files {
        for (location, _) in &file.server_ends {
            let _ = writeln!(
                text,
                "KILN ENDED at {}:{}: {}",
                file.path,
                location.line,
                location.first_line(EXAMPLE_LENGTH)
            );
        }
    }
    for error in &report.errors {
        let _ = writeln!(text, "NOT FINISHED: {error}");
    }
    text
}

fn totals(title: &str, files: &[FileReport]) -> String {
    let mut counts = Counts::default();
    files.iter().for_each(|file| counts.add(&file.counts));
    let of_accepted = |count: usize| {
        let share = if counts.accepted == 0 { 0.0 } else { 100.0 * count as f64 / counts.accepted as f64 };
        format!("{count:>9}  {share:5.1} %")
    };
    let mut text = format!("{title}\n");
    let internal = files.iter().flat_map(|file| &file.refusals).filter(|refusal| refusal.failure.sqlstate == "XX000");
    for (name, value) in [
        ("files", format!("{:>9}", files.len())),
        ("  not run", format!("{:>9}", files.iter().filter(|file| file.unmet.is_some()).count())),
        ("records run on PostgreSQL", format!("{:>9}", counts.run)),
        ("accepted by PostgreSQL", of_accepted(counts.accepted)),
        ("  right", of_accepted(counts.right)),
        ("    with other forms of numbers", of_accepted(counts.number_forms)),
        ("    with other names of columns", of_accepted(counts.column_names)),
        ("  different", of_accepted(counts.different)),
        ("  refused", of_accepted(counts.refused)),
        ("    internal errors (XX000)", of_accepted(internal.count())),
        ("  following from a refusal", of_accepted(counts.follows)),
        ("  timed out", of_accepted(counts.timed_out)),
        ("  connection lost", of_accepted(counts.lost)),
        ("  without one answer on PostgreSQL", of_accepted(counts.unstable)),
        ("accepted where PostgreSQL refuses", format!("{:>9}", counts.accepted_by_kiln_alone)),
        ("timed out on PostgreSQL", format!("{:>9}", counts.postgres_timed_out)),
    ] {
        let _ = writeln!(text, "{name:<36}{value}");
    }
    let mut differences: BTreeMap<_, usize> = BTreeMap::new();
    for (difference, count) in files.iter().flat_map(|file| &file.differences_by_kind) {
        *differences.entry(*difference).or_default() += count;
    }
    let kinds: Vec<_> = differences.iter().map(|(kind, count)| (kind.to_string(), *count)).collect();
    text.push_str(&count_table("Different", kinds.iter().map(|(kind, count)| (kind, *count))));
    text
}

/// Counts the reasons, most frequent ones first.
fn count_reasons(files: &[FileReport]) -> Vec<(Reason, ReasonCount<'_>)> {
    let mut reasons: BTreeMap<Reason, ReasonCount<'_>> = BTreeMap::new();
    for file in files {
        for refusal in &file.refusals {
            let count = reasons.entry(refusal.reason.clone()).or_default();
            count.refused += 1;
            count.example.get_or_insert((file.path.as_str(), &refusal.location));
        }
        for (reason, follows) in &file.follows {
            reasons.entry(reason.clone()).or_default().follows += follows;
        }
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(count.refused + count.follows));
    reasons
}

fn reason_table(title: &str, reasons: &[(Reason, ReasonCount<'_>)]) -> String {
    if reasons.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{title}\n  refused  follow  reason\n");
    for (reason, count) in reasons {
        let _ = writeln!(text, "{:>9} {:>7}  {reason}", count.refused, count.follows);
        if let Some((path, location)) = count.example {
            let _ = writeln!(text, "{:19}{path}:{}: {}", "", location.line, location.first_line(EXAMPLE_LENGTH));
        }
    }
    text
}

fn count_table<'a>(title: &str, counts: impl Iterator<Item = (&'a String, usize)>) -> String {
    let mut sums: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, count) in counts {
        *sums.entry(name).or_default() += count;
    }
    if sums.is_empty() {
        return String::new();
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut text = format!("\n{title}\n");
    for (name, count) in sums {
        let _ = writeln!(text, "{count:>9}  {name}");
    }
    text
}
