use super::*;

fn parse(text: &str) -> Script {
    parse_psql(text, &[("PG_ABS_SRCDIR".to_owned(), "/src".to_owned())].into())
}

fn records(script: &Script) -> Vec<(usize, &str)> {
    let steps = script.steps.iter();
    steps
        .filter_map(|step| match step {
            Step::Run(record) => Some((record.line, record.sql.as_str())),
            Step::Reconnect => None,
        })
        .collect()
}

#[test]
fn statements_end_at_semicolons_and_sending_commands() {
    let script = parse("-- c\nSELECT 1;\nSELECT 2 AS a \\gset\nSELECT 3\\; SELECT 4 \\g\nSELECT 5");
    assert_eq!(
        records(&script),
        [(2, "SELECT 1"), (3, "SELECT 2 AS a"), (4, "SELECT 3"), (4, "SELECT 4"), (5, "SELECT 5")]
    );
    assert_eq!(script.skipped["\\gset"], 1);
}

#[test]
fn variables_come_from_set_and_the_environment() {
    let script = parse("\\getenv dir PG_ABS_SRCDIR\n\\set file :dir '/data/a.data'\nCOPY t FROM :'file';");
    assert_eq!(records(&script), [(3, "COPY t FROM '/src/data/a.data'")]);
    assert!(script.skipped.is_empty());
}

#[test]
fn branches_of_unknown_conditions_are_left_out() {
    let script = parse("\\if :skip_test\n\\quit\n\\else\nSELECT 1;\n\\endif\nSELECT 2;\n\\quit\nSELECT 3;");
    assert_eq!(records(&script), [(4, "SELECT 1"), (6, "SELECT 2")]);
}

#[test]
fn data_follow_copies_that_are_expected_to_succeed() {
    let script = parse(
        "COPY t FROM stdin;\n\\N\ta;\n2\tb\n\\.\nSELECT 1;\nCOPY x FROM stdin;\n-- fails\nCOPY y FROM stdin;\n\n\\.\n",
    );
    let data: Vec<Option<&str>> = script
        .steps
        .iter()
        .map(|step| match step {
            Step::Run(record) => record.copy_data.as_deref(),
            Step::Reconnect => None,
        })
        .collect();
    assert_eq!(data, [Some("\\N\ta;\n2\tb\n"), None, None, Some("\n")]);
}

#[test]
fn commands_are_counted_and_end_with_their_lines() {
    let script = parse("\\d t's\n\\pset null '\\\\n' \\t\nSELECT 1;\n\\copy t from stdin\n1\n\\.\nSELECT 2;");
    assert_eq!(records(&script), [(3, "SELECT 1"), (7, "SELECT 2")]);
    assert_eq!(script.skipped.keys().collect::<Vec<_>>(), ["\\copy", "\\d", "\\pset", "\\t"]);
}
