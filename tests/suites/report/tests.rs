use super::*;
use crate::answer::{Answer, Failure};
use crate::compare::Difference;
use crate::file_report::FileReport;
use crate::reason::{Feature, Reason};
use crate::run_suite::SuiteReport;
use crate::script::Record;

fn failure(message: &str) -> Failure {
    Failure { sqlstate: "0A000".to_owned(), message: message.to_owned() }
}

fn record(line: usize, sql: &str) -> Record {
    Record { line, sql: sql.to_owned(), ..Record::default() }
}

fn report() -> SuiteReport {
    let mut file = FileReport { path: "a.test".to_owned(), ..FileReport::default() };
    file.counts.run = 9;
    file.counts.accepted = 6;
    let answer = |text: &str| Answer {
        columns: vec!["c".to_owned()],
        rows: vec![vec![Some(text.to_owned())]],
        row_count: 1,
        affected: 1,
    };
    file.add_right(&record(1, "SELECT 1"), &answer("1"), &answer("1"));
    file.add_difference(&record(2, "SELECT\n2"), Difference::Values, (&answer("2"), &answer("3")));
    for line in [3, 4] {
        let reason = Reason::ToDo("0A000 X is not supported".to_owned());
        file.add_refusal(&record(line, "-- c\nX"), failure("X is not supported"), reason);
    }
    file.add_refusal(&record(5, "GRANT"), failure("GRANT is not supported"), Reason::Feature(Feature::Privileges));
    file.add_follower(Reason::Feature(Feature::Privileges));
    let unmet = FileReport { path: "b.test".to_owned(), unmet: Some("require x".to_owned()), ..FileReport::default() };
    SuiteReport { files: vec![file, unmet], errors: Vec::new() }
}

#[test]
fn the_summary_counts_reasons_with_examples() {
    let text = summary("suite x", &report());
    for line in [
        "  right                                     1   16.7 %\n",
        "        1  values\n",
        "        2       0  0A000 X is not supported\n                   a.test:3: X\n",
        "        1       1  grants and policies\n                   a.test:5: GRANT\n",
        "        1  require x\n",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
}

#[test]
fn the_lists_have_every_place() {
    let [(_, different), (_, refused), (_, files), ..] = lists(&report());
    assert_eq!(different, "a.test:2: values\nSELECT\n2\nPostgreSQL:\n(c)\n2\nKiln:\n(c)\n3\n\n");
    assert!(refused.starts_with("2 0A000 X is not supported [to do]\n  a.test:3: X\n  a.test:4: X\n"), "{refused}");
    assert!(
        files.ends_with("       6     1         1       3       1         0    0 a.test\nnot run: require x: b.test\n"),
        "{files}"
    );
}
