use super::*;

fn parse(text: &str) -> Script {
    parse_slt(text, SltDialect::DuckDb, &Bindings::from([("TEST_DIR".to_owned(), "/tmp/x".to_owned())]))
}

fn statements(script: &Script) -> Vec<(usize, &str)> {
    let steps = script.steps.iter();
    steps
        .map(|step| match step {
            Step::Run(record) => (record.line, record.sql.as_str()),
            Step::Reconnect => (0, "reconnect"),
        })
        .collect()
}

#[test]
fn records_end_before_their_results() {
    let script = parse(
        "# c\nstatement ok\nCREATE TABLE t (a int);\n\nquery I rowsort\nSELECT a\nFROM t\n----\n1\n2\n\nrestart\n",
    );
    assert_eq!(statements(&script), [(3, "CREATE TABLE t (a int)"), (6, "SELECT a\nFROM t"), (0, "reconnect")]);
    assert!(matches!(&script.steps[1], Step::Run(record) if record.ignores_order && record.session.is_empty()));
    assert!(matches!(&script.steps[0], Step::Run(record) if !record.ignores_order));
}

#[test]
fn statements_of_one_record_are_records() {
    let script = parse("statement ok con1\nBEGIN; SELECT 1;\nCOMMIT\n");
    assert_eq!(statements(&script), [(2, "BEGIN"), (2, "SELECT 1"), (3, "COMMIT")]);
    assert!(matches!(&script.steps[2], Step::Run(record) if record.session == "con1"));
}

#[test]
fn loops_are_unrolled() {
    let script = parse("loop i 0 2\n\nforeach t a b\n\nstatement ok\nSELECT ${i}, '{t}'\n\nendloop\n\nendloop\n");
    let sql: Vec<&str> = statements(&script).into_iter().map(|(_, sql)| sql).collect();
    assert_eq!(sql, ["SELECT 0, 'a'", "SELECT 0, 'b'", "SELECT 1, 'a'", "SELECT 1, 'b'"]);
}

#[test]
fn conditions_hold_for_one_record() {
    let script = parse(
        "onlyif mysql\nstatement ok\nSELECT 1\n\nskipif mysql\nstatement ok\nSELECT 2\n\nonlyif mysql\nhalt\n\nquery I\nSELECT 3\n",
    );
    assert_eq!(statements(&script), [(7, "SELECT 2"), (13, "SELECT 3")]);
    assert_eq!(script.skipped["skipif and onlyif"], 1);
}

#[test]
fn requirements_skip_files_unless_they_are_harmless() {
    assert_eq!(statements(&parse("require vector_size 512\n\nstatement ok\nSELECT 1\n")), [(4, "SELECT 1")]);
    let script = parse("statement ok\nSELECT 1\n\nrequire parquet\n\nstatement ok\nSELECT 2\n");
    assert_eq!((script.unmet.as_deref(), script.steps.len()), (Some("require parquet"), 0));
}

#[test]
fn unknown_lines_are_counted_and_their_blocks_are_left_out() {
    let script = parse(
        "let $a\nSELECT 1\n\nmode skip\n\nstatement ok\nSELECT 2\n\nmode unskip\n\nstatement ok\nSELECT '__TEST_DIR__'\n",
    );
    assert_eq!(statements(&script), [(12, "SELECT '/tmp/x'")]);
    assert_eq!((script.skipped["let"], script.skipped["mode skip"]), (1, 1));
}

#[test]
fn only_duckdb_names_sessions_after_types() {
    let script = parse_slt("query I label-1\nSELECT 1\n", SltDialect::Standard, &Bindings::new());
    assert!(matches!(&script.steps[0], Step::Run(record) if record.session.is_empty()));
}
