use proptest::prelude::*;

use super::*;

#[test]
fn normal_forms_are_postgresqls() {
    for (text, normal) in [
        (r#" {"b":1,"aa":2,"a":3,"a":4} "#, r#"{"a": 4, "b": 1, "aa": 2}"#),
        (r#"["\u00e9\n\u0001\/"]"#, "[\"é\\n\\u0001/\"]"),
        (r#""\ud83d\ude00""#, "\"😀\""),
        ("[1,2 , [ ] ,{}]", "[1, 2, [], {}]"),
        ("-0", "0"),
        ("1e2", "100"),
        ("1.50", "1.50"),
        ("1.0e1", "10"),
        ("1.0e-3", "0.0010"),
        ("12.5E+1", "125"),
        ("0e5", "0"),
        ("-1.5e-1", "-0.15"),
        ("null", "null"),
    ] {
        assert_eq!(normalize_jsonb(text), Ok(normal.to_owned()), "{text}");
    }
}

#[test]
fn what_is_no_json_is_refused() {
    for text in [
        "",
        "{",
        "[1,]",
        "{\"a\"}",
        "{a:1}",
        "01",
        "1.",
        "\"a",
        "tru",
        "truee",
        "'a'",
        "[1] 2",
        "\"\\x\"",
        "\"\\ud800\"",
        "\"\\u0000\"",
        "\"\n\"",
        "nul",
    ] {
        assert_eq!(check_json(text).unwrap_err().condition, Condition::InvalidTextRepresentation, "{text}");
    }
    assert_eq!(check_json(&"[".repeat(100_000)).unwrap_err().condition, Condition::StatementTooComplex);
}

#[test]
fn parts_are_found_without_copying() {
    let text = r#"{"a": [1, "x,]"], "b\"": {"c": null}}"#;
    let found = members(text).unwrap();
    assert_eq!(found[0], (Cow::Borrowed("a"), r#"[1, "x,]"]"#));
    assert_eq!(found[1].0, "b\"");
    assert_eq!(found[1].1, r#"{"c": null}"#);
    assert_eq!(elements(found[0].1).unwrap(), ["1", "\"x,]\""]);
    assert_eq!(string_value("\"x\\n\"").unwrap(), "x\n");
    assert_eq!(members("[]"), None);
    assert_eq!(elements("[ ]"), Some(vec![]));
}

proptest! {
    #[test]
    fn normalising_twice_changes_nothing(text in r#"[\[\]{}",:0-9a\\n eE.+-]{0,20}"#) {
        if let Ok(normal) = normalize_jsonb(&text) {
            prop_assert_eq!(normalize_jsonb(&normal), Ok(normal));
        }
    }

    #[test]
    fn strings_read_back(text: String) {
        let mut json = String::new();
        format_json_string(&text, &mut json);
        if !text.contains('\0') {
            prop_assert_eq!(string_value(&json).map(Cow::into_owned), Some(text));
        }
    }

    #[test]
    fn walking_any_text_ends(text: String) {
        let _ = members(&text);
        let _ = elements(&text);
    }
}
