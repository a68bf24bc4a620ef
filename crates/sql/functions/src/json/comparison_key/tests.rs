use super::*;

fn key_of(json: &str) -> Vec<u8> {
    let mut out = Vec::new();
    append_value(&parse_json(json).unwrap(), &mut out);
    out
}

#[test]
fn values_lie_as_postgresql_has_them() {
    let ordered = [
        "null",
        r#""""#,
        r#""a""#,
        r#""ab""#,
        r#""b""#,
        "-100",
        "-20",
        "-10.5",
        "-10",
        "-0.5",
        "-0.01",
        "0",
        "0.001",
        "0.01",
        "0.5",
        "9",
        "10",
        "10.25",
        "100",
        "12345678901234567890",
        "false",
        "true",
        "[]",
        "[1]",
        "[2]",
        "[[1]]",
        "[{}]",
        "[1, 1]",
        "{}",
        r#"{"aa": 1}"#,
        r#"{"b": 9}"#,
        r#"{"a": 1, "b": 1}"#,
    ];
    for pair in ordered.windows(2) {
        assert!(key_of(pair[0]) < key_of(pair[1]), "{} < {}", pair[0], pair[1]);
    }
}

#[test]
fn numbers_are_equal_by_value() {
    for (a, b) in [("1", "1.0"), ("0", "-0.00"), ("100", "100.000"), ("[1, {\"a\": 2.50}]", "[1.0, {\"a\": 2.5}]")] {
        assert_eq!(key_of(a), key_of(b), "{a} = {b}");
    }
}
