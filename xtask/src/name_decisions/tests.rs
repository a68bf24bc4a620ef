//! Sources in which names decide, and sources in which they do not.

use super::decision_finder::{Finding, find_decisions};
use super::exceptions::Exceptions;

/// Returns the items of a source in which a name decides.
fn items(source: &str) -> Vec<String> {
    let file = syn::parse_file(source).expect("the source parses");
    find_decisions(&file).into_iter().map(|finding| finding.item).collect()
}

/// Returns how often names decide in the body of a function.
fn count(body: &str) -> usize {
    items(&format!("fn f() {{ {body} }}")).len()
}

#[test]
fn comparisons_and_tests_of_names_are_found() {
    for body in [
        r#"field.name() == "cast""#,
        r#""cast" != field.name()"#,
        "call.func.name() == ARRAY_SUBQUERY",
        "rule.name() == JoinOrder::NAME",
        "field.name().as_str() == Self::NAME",
        r#"column.name == "task""#,
        r#"expr.schema_name().to_string() == "a""#,
        r#"name.name().starts_with("key ")"#,
        r#"field.name().to_lowercase().ends_with("_id")"#,
        r#"relation.name.contains("key ")"#,
        r#"let (table, id) = scan.name().split_once(" with ")?;"#,
        r#"let plain = operator.name().strip_suffix("Exec");"#,
        r#"["sum", "count"].contains(&call.fun().name())"#,
        "KNOWN.contains(&rule.name())",
        r#"field.name() == &format!("key {at}")"#,
        r#"batch.column_by_name("task")"#,
        "schema.index_of(ROW_ID)",
        "reference.schema() == Some(PROVIDED_SCHEMA)",
        "if let Some(moment) = reference.catalog().strip_prefix(TIME_TRAVEL) {}",
    ] {
        assert_eq!(count(body), 1, "{body}");
    }
}

#[test]
fn matches_of_names_are_found() {
    for body in [
        r#"match call.fun().name() { "sum" => 1, _ => 2 };"#,
        r#"match (value, call.name()) { (_, "a") => 1, _ => 2 };"#,
        r#"matches!(function.name(), "rank" | "row_number");"#,
        r#"matches!(expr, Expr::AggregateFunction(call) if call.func.name() == "grouping");"#,
        r#"if let Some("x") = column.map(|column| column.name()) {}"#,
        r#"let ("lag", Some(offset)) = (call.fun.name(), offset) else { return };"#,
        "match rule.name() { SANITY_CHECK => 1, _ => 2 };",
    ] {
        assert_eq!(count(body), 1, "{body}");
    }
}

#[test]
fn names_are_followed_through_variables_closures_and_calls_of_the_file() {
    for body in [
        r#"let name = field.name(); if name == "a" {}"#,
        r#"let name = field.name().clone(); let name = name.as_str(); match name { "a" => 1, _ => 2 };"#,
        r#"let known = ["a", "b"]; known.contains(&field.name())"#,
        r#"fields.iter().map(|field| field.name()).any(|name| name == "a")"#,
        r#"fields.iter().map(Field::name).filter(|name| name.starts_with("a"))"#,
        r#"for name in fields.iter().map(|field| field.name()) { if name == "a" {} }"#,
        r#"let named = |name: &str| rules.iter().find(|rule| rule.name() == name); named("push_down");"#,
        r#"let text = format!("{}", field.name()); if text.contains("a") {}"#,
        r#"let name = field.name(); let text = format!("{name}!"); if text.contains("a") {}"#,
    ] {
        assert_eq!(count(body), 1, "{body}");
    }
    let passed = r#"
        fn caller(call: &Call) { decide(1, call.fun().name()) }
        fn decide(at: usize, name: &str) { match name { "sum" => 1, _ => 2 }; }
    "#;
    assert_eq!(items(passed), ["decide"]);
    let passed = r#"
        fn caller(rules: &[Rule]) { decide(rules, "push_down") }
        fn decide(rules: &[Rule], name: &str) { rules.iter().any(|rule| rule.name() == name) }
    "#;
    assert_eq!(items(passed), ["decide"]);
}

#[test]
fn decisions_by_the_text_of_an_error_are_found() {
    for body in [
        r#"error.to_string().contains("overflow")"#,
        r#"let text = format!("{error:#}"); if text.contains("timed out") {}"#,
        r#"error.message.starts_with("a worker")"#,
        r#"let text = error.to_string(); if text.contains(PLAN_TIMEOUT) {}"#,
        r#"match error { DataFusionError::Plan(text) if text.starts_with("No field") => 1, _ => 2 };"#,
        r#"if let ArrowError::CastError(text) = error && text.contains("Can't cast") {}"#,
    ] {
        assert_eq!(count(body), 1, "{body}");
    }
}

#[test]
fn control_characters_that_mark_names_are_found() {
    assert_eq!(items(r#"const MARK: &str = "past\u{1}";"#), ["MARK"]);
    assert_eq!(count(r#"let name = format!("key\u{1}{at}");"#), 1);
    assert_eq!(count(r"let is_seen = !text.contains('\u{1}');"), 1);
    assert_eq!(count(r#"let name = "parameter\0";"#), 1);
    assert_eq!(count(r"let text = text.replace('\0', other);"), 0);
    assert_eq!(count(r#"let line = "\x1b[2K\r\t\n";"#), 0);
}

#[test]
fn other_uses_of_names_and_of_constants_are_not_found() {
    for body in [
        "own.name() == wanted.name()",
        "table.name() == name",
        "let name = field.name(); let copy = format!(\"{name}_key\");",
        r#"option == "format""#,
        r#"match option.as_str() { "header" => 1, _ => 2 };"#,
        r#"path.starts_with("/metrics")"#,
        "names.get(field.name())",
        r#"let name = field.name(); { let name = option; if name == "header" {} }"#,
        "kind == Kind::Sum",
        "name.name().split_once('.')",
        "name.name().starts_with(|char: char| char == '_')",
        "function.func.inner().is::<Count>()",
        r#"tracing::debug!(name = field.name(), "compared with \"a\"")"#,
        r#"Column::new("task", 1)"#,
    ] {
        assert_eq!(count(body), 0, "{body}");
    }
    assert_eq!(items(r#"#[cfg(test)] mod tests { fn f() { assert!(field.name() == "a"); } }"#), [""; 0]);
    assert_eq!(items(r#"#[test] fn f() { assert!(field.name() == "a"); }"#), [""; 0]);
}

#[test]
fn findings_name_their_line_and_their_innermost_item() {
    let source = "impl Rule for A {\n    const NAME: &str = \"a\";\n    fn is_it(&self) -> bool {\n        x.name() == NAME\n    }\n}\n";
    let file = syn::parse_file(source).expect("the source parses");
    let found = find_decisions(&file);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].line, found[0].item.as_str()), (4, "is_it"));
}

#[test]
fn exceptions_cover_functions_and_adapters_cover_files() {
    let finding = |file: &str, item: &str| {
        (file.to_owned(), Finding { line: 1, item: item.to_owned(), text: "a comparison".to_owned() })
    };
    let exceptions = |text: &str| Exceptions::parse(text).expect("the exceptions parse");
    let found = [finding("a.rs", "f"), finding("a.rs", "g"), finding("b.rs", "f")];

    let none = exceptions("").find_violations(&found);
    assert_eq!(none.len(), 3);
    assert!(none[0].contains("a.rs:1 (f)"), "{none:?}");

    let some = "[[exception]]\nfile = \"a.rs\"\nitem = \"f\"\nreason = \"text of a user\"\n";
    let left = exceptions(some).find_violations(&found);
    assert_eq!(left.len(), 2);

    let adapter = "[[adapter]]\nfile = \"a.rs\"\nreason = \"a library's texts\"\n";
    let left = exceptions(&format!("{adapter}{}", some.replace("a.rs", "b.rs"))).find_violations(&found);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn exceptions_that_cover_nothing_or_have_no_reason_are_reported() {
    let text = "[[adapter]]\nfile = \"a.rs\"\nreason = \"\"\n\
                [[exception]]\nfile = \"b.rs\"\nitem = \"f\"\nreason = \"text of a user\"\n";
    let problems = Exceptions::parse(text).expect("the exceptions parse").find_violations(&[]);
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(problems[0].contains("the adapter a.rs") && problems[1].contains("f of b.rs"), "{problems:?}");
    assert!(problems[2].contains("no reason"), "{problems:?}");
}
