//! Tests of the inputs that statements need before planning, and that planning needs no others.

use std::sync::Arc;

use binder::StatementPlan;
use session_context::{FetchedInputs, HistoricalState, ListedFiles, MissingInputs, StatementContext};
use types::{CommitTs, TimeTravelTarget};

use crate::tests::fixture::Fixture;
use crate::{Planner, PossibleInputs};

const TABLES: &str = "CREATE TABLE t (id int PRIMARY KEY, name text); \
                      CREATE EXTERNAL TABLE e (id int, name text) STORED AS parquet LOCATION '/e'; \
                      CREATE EXTERNAL TABLE f (id int, name text) STORED AS parquet LOCATION '/f'";
const VIEWS: &str = "CREATE VIEW plain AS SELECT id FROM t; CREATE VIEW over AS SELECT id FROM e WHERE id > 1; \
                     CREATE VIEW twice AS SELECT o.id FROM over o JOIN plain p ON o.id = p.id";

/// Creates the tables and the views; views are defined without rows.
fn fixture() -> Fixture {
    let mut fixture = Fixture::of(TABLES);
    let mut context = StatementContext::clone(&fixture.context);
    for parsed in fixture.planner.parse(VIEWS).expect("they are SQL") {
        let bare = StatementContext { has_rows: false, ..context.clone() };
        let planned = fixture.planner.plan(&parsed, &[], &Arc::new(bare)).expect("it can be planned");
        let StatementPlan::Define(plan) = planned else { panic!("{} defines nothing", parsed.text) };
        for change in &plan.changes {
            context.snapshot = Arc::new(context.snapshot.apply(change).expect("it is new"));
        }
    }
    fixture.context = Arc::new(context);
    fixture
}

fn missing(fixture: &Fixture, context: &Arc<StatementContext>, sql: &str) -> MissingInputs {
    let parsed = fixture.planner.parse(sql).expect("it is SQL").remove(0);
    let missing = fixture.planner.missing_inputs(&parsed, &[], context);
    let may_miss = Planner::may_miss_inputs(&parsed, &context.snapshot);
    let is_expected = match may_miss {
        PossibleInputs::Nothing => missing.is_empty(),
        PossibleInputs::FilesOfFewTables => {
            missing.moments.is_empty() && missing.location.is_none() && missing.last_drop.is_none()
        }
        PossibleInputs::Any => true,
    };
    assert!(is_expected, "nobody would ask for all: {sql}");
    missing
}

/// Formats missing inputs: commits, tables and locations.
fn spelled(missing: &MissingInputs) -> String {
    let moments = missing.moments.iter().map(|moment| match moment {
        TimeTravelTarget::Commit(CommitTs(commit)) => commit.to_string(),
        TimeTravelTarget::Newest => "newest".to_owned(),
        TimeTravelTarget::Time(_) => "time".to_owned(),
    });
    let tables = missing.external_tables.values().map(|table| table.name.clone());
    let mut all: Vec<String> = moments.chain(tables).chain(missing.location.clone()).collect();
    all.sort();
    all.join(" ")
}

/// Returns the context with all missing inputs filled in.
fn fetched(context: &Arc<StatementContext>, missing: MissingInputs) -> Arc<StatementContext> {
    let mut inputs = FetchedInputs::default();
    for moment in missing.moments {
        let state = HistoricalState { state: Arc::clone(&context.snapshot), pin: Arc::new(()) };
        inputs.states.insert(moment, Ok(state));
    }
    inputs.files.extend(missing.external_tables.into_keys().map(|oid| (oid, Ok(ListedFiles::new(Vec::new())))));
    inputs.columns.extend(missing.location.map(|location| (location, Ok([].into()))));
    Arc::new(StatementContext { inputs: Arc::new(inputs), ..StatementContext::clone(context) })
}

#[test]
fn a_statement_is_planned_once_all_that_it_misses_is_fetched() {
    let fixture = fixture();
    for (sql, expected) in [
        ("SELECT id FROM t", ""),
        ("SELECT 1", ""),
        ("SELECT id FROM plain", ""),
        ("SELECT relname FROM pg_class", ""),
        ("SELECT id FROM e", "e"),
        ("SELECT id FROM kiln.public.e", "e"),
        ("TABLE e", "e"),
        ("SELECT id FROM twice", "e"),
        ("SELECT id FROM twice UNION SELECT id FROM over UNION SELECT id FROM e", "e"),
        ("SELECT id FROM t WHERE id IN (SELECT id FROM e) ORDER BY (SELECT max(id) FROM f)", "e f"),
        ("WITH c AS (SELECT id FROM e) SELECT id FROM c", "e"),
        ("WITH c AS (SELECT id FROM t AS OF SNAPSHOT 5) SELECT id FROM c", "5"),
        ("SELECT id FROM (SELECT id FROM e) s, LATERAL (SELECT name FROM f WHERE f.id = s.id) l", "e f"),
        ("SELECT ((SELECT id FROM t AS OF SNAPSHOT 2 + 1 LIMIT 1)) FROM t AS OF SNAPSHOT 3", "3"),
        ("SELECT 1 FROM t AS OF SNAPSHOT 3, plain AS OF SNAPSHOT 4, t AS OF TIMESTAMP now() AS u", "3 4 time"),
        ("SELECT 1 FROM t AS OF SNAPSHOT $1", "newest"),
        ("INSERT INTO t SELECT id, name FROM e", "e"),
        ("INSERT INTO t SELECT id, name FROM t AS OF SNAPSHOT 7", "7"),
        ("UPDATE t SET name = e.name FROM e WHERE e.id = t.id", "e"),
        ("DELETE FROM t USING t AS OF SNAPSHOT 7 AS old WHERE old.id = t.id", "7"),
        ("MERGE INTO t USING e ON t.id = e.id WHEN MATCHED THEN DELETE", "e"),
        ("COPY e TO STDOUT", "e"),
        ("COPY (SELECT id FROM t AS OF SNAPSHOT 7) TO STDOUT", "7"),
        ("INSERT INTO t VALUES ((SELECT max(id) FROM e), 'x')", "e"),
        ("UPDATE t SET name = (SELECT max(name) FROM e WHERE e.id = t.id)", "e"),
        ("SELECT id FROM t LIMIT (SELECT max(id) FROM e)", "e"),
        ("CREATE TABLE n AS SELECT id FROM e", "e"),
        ("EXPLAIN CREATE TABLE n AS SELECT id FROM e", "e"),
        ("CREATE VIEW n AS SELECT id FROM f", "f"),
        ("CREATE TABLE n CLONE t AS OF SNAPSHOT 7", "7"),
        ("CREATE TABLE n CLONE t", ""),
        ("CREATE EXTERNAL TABLE n STORED AS parquet LOCATION '/n'", "/n"),
        ("CREATE EXTERNAL TABLE n (id int) STORED AS parquet LOCATION '/n'", ""),
        ("EXPLAIN SELECT e.id FROM e, t AS OF SNAPSHOT 7", "7 e"),
        ("DECLARE c CURSOR FOR SELECT e.id FROM e, t AS OF SNAPSHOT 7", "7 e"),
        ("DROP TABLE e CASCADE", ""),
        ("COMMENT ON TABLE e IS 'files'", ""),
        // A WITH query with the name of a table is not distinguished from the table.
        ("WITH e AS (SELECT 1 AS id) SELECT id FROM e", "e"),
    ] {
        let found = missing(&fixture, &fixture.context, sql);
        assert_eq!(spelled(&found), expected, "{sql}");
        let context = fetched(&fixture.context, found);
        assert!(missing(&fixture, &context, sql).is_empty(), "{sql} misses more");
        let parsed = fixture.planner.parse(sql).expect("it is SQL").remove(0);
        let planned = fixture.planner.plan(&parsed, &[], &context);
        assert!(planned.is_ok() || sql.contains("LOCATION '/n'"), "{sql}: {planned:?}");
    }
}

#[test]
fn what_is_wrong_with_a_statement_is_told_by_its_plan() {
    let fixture = fixture();
    for sql in [
        "SELECT id FROM nowhere",
        "SELECT id FROM other.public.e",
        "SELECT id FROM t AS OF SNAPSHOT -1",
        "SELECT id FROM t AS OF SNAPSHOT NULL",
        "SELECT id FROM t AS OF SNAPSHOT random()::int",
        "SELECT id FROM t AS OF TIMESTAMP 'yonder'",
        "UNDROP TABLE gone",
        "CREATE EXTERNAL TABLE e STORED AS parquet LOCATION '/n'",
        "CREATE EXTERNAL TABLE n STORED AS parquet LOCATION 'n'",
    ] {
        assert!(missing(&fixture, &fixture.context, sql).is_empty(), "{sql}");
        let error = fixture.plan(sql).expect_err(sql);
        assert_ne!(error.condition, types::Condition::InternalError, "{sql}: {error}");
    }
}

#[test]
fn plans_without_rows_need_no_files() {
    let fixture = fixture();
    let bare = Arc::new(StatementContext { has_rows: false, ..StatementContext::clone(&fixture.context) });
    assert!(missing(&fixture, &bare, "SELECT id FROM twice").is_empty());
    let parsed = fixture.planner.parse("SELECT id FROM twice").expect("it is SQL").remove(0);
    fixture.planner.plan(&parsed, &[], &bare).expect("it has no file");
}
