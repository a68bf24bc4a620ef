use super::*;
use crate::sql::{Statement, effects};

fn names(sql: &str) -> BTreeSet<String> {
    Statement::new(sql).names()
}

fn after(refused: &[&str], accepted: &[&str]) -> OutOfStep {
    let mut noted = OutOfStep::default();
    for sql in refused {
        noted.note_refused(&effects(&Statement::new(sql)), &Reason::TimedOut);
    }
    for sql in accepted {
        noted.note_accepted(&effects(&Statement::new(sql)), &names(sql));
    }
    noted
}

fn missing(message: &str) -> Failure {
    Failure { sqlstate: "42P01".to_owned(), message: message.to_owned() }
}

#[test]
fn refusals_follow_from_those_of_definitions() {
    let noted = after(&["CREATE TABLE s.t (a int)", "CREATE FUNCTION f() RETURNS int", "ALTER TABLE u ADD c int"], &[]);
    for message in [
        "relation \"t\" does not exist",
        "relation \"s.t\" does not exist",
        "function f() does not exist",
        "column \"c\" does not exist",
    ] {
        assert_eq!(noted.reason_for_refusal(&missing(message)), Some(Reason::TimedOut), "{message}");
    }
    assert_eq!(noted.reason_for_refusal(&missing("relation \"v\" does not exist")), None);
    assert_eq!(noted.reason_for_refusal(&missing("t is not supported")), None);
}

#[test]
fn differences_follow_from_refused_writes_and_from_what_was_made_of_them() {
    let noted =
        after(&["INSERT INTO t VALUES (1)"], &["CREATE TABLE u AS SELECT * FROM t", "INSERT INTO w SELECT * FROM u"]);
    for sql in ["SELECT * FROM t", "SELECT * FROM u", "SELECT * FROM w"] {
        assert_eq!(noted.reason_for_difference(&names(sql)), Some(Reason::TimedOut), "{sql}");
    }
    assert_eq!(noted.reason_for_difference(&names("SELECT * FROM x")), None);
}

#[test]
fn objects_made_anew_are_in_step() {
    let noted =
        after(&["INSERT INTO t VALUES (1)", "CREATE TABLE u (a int)"], &["DROP TABLE t", "CREATE TABLE u (b int)"]);
    assert_eq!(noted, OutOfStep::default());
}
