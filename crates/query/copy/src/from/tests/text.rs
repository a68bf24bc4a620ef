use types::Condition;

use super::*;

#[test]
fn escapes_are_resolved_and_the_null_marker_is_not_one() {
    let copy = Copy::text(&[TEXT, TEXT]);
    copy.gives("\\N\t\\\\N\n", &["NULL|\\N"]);
    copy.gives("a\\tb\\nc\\\\d\t\\b\\f\\r\\v\n", &["a\tb\nc\\d|\x08\x0c\r\x0b"]);
    copy.gives("\\101\\x42\\x4\t\\q\\xg\n", &["AB\x04|qxg"]);
    copy.gives("\\303\\244\t\\xc3\\xa4\n", &["ä|ä"]);
    copy.gives("\\1234\t\\x414\n", &["S4|A4"]);
    copy.gives("a\\\tb\tc\n", &["a\tb|c"]);
    copy.gives("line\\\nbreak\tx\n", &["line\nbreak|x"]);
    copy.gives("\\ä\tb\\\n", &["ä|b\n"]);
}

#[test]
fn an_empty_field_is_empty_text() {
    Copy::text(&[TEXT, TEXT]).gives("\t\n", &["|"]);
    Copy::text(&[TEXT]).gives("\n\nx\n", &["", "", "x"]);
}

#[test]
fn bytes_named_by_escapes_must_be_text() {
    let copy = Copy::text(&[TEXT, TEXT]);
    let error = copy.fails("a\t\\xff\n", "invalid byte sequence for encoding \"UTF8\": 0xff", "COPY t, line 1");
    assert_eq!(error.condition, Condition::CharacterNotInRepertoire);
    copy.fails("a\tb\n\\0\tb\n", "invalid byte sequence for encoding \"UTF8\": 0x00", "COPY t, line 2");
}

#[test]
fn the_end_marker_ends_the_data() {
    let copy = Copy::text(&[INT]);
    copy.gives("1\n\\.\n2\n", &["1"]);
    copy.gives("1\n2\n\\.", &["1", "2"]);
    copy.gives("\\.\n", &[]);
    copy.gives("1\r\n\\.\r\n", &["1"]);
    copy.fails("1\n\\.x\n", "end-of-copy marker is not alone on its line", "COPY t, line 2");
    copy.fails("1\n\\.\r\n", "end-of-copy marker does not match previous newline style", "COPY t, line 2");
    Copy::text(&[TEXT]).fails("1\nx\\.\n", "end-of-copy marker is not alone on its line", "COPY t, line 2");
    // The error is found only at the end of the input, behind the last chunk.
    Copy::text(&[TEXT]).fails("abcdefgh\n\\.xy", "end-of-copy marker is not alone on its line", "COPY t, line 2");
    // An escaped backslash before the point makes no marker.
    Copy::text(&[TEXT]).gives("1\n\\\\.\n", &["1", "\\."]);
}

#[test]
fn line_ends_are_those_of_the_first_line() {
    let copy = Copy::text(&[INT, TEXT]);
    copy.gives("1\ta\r\n2\tb\r\n", &["1|a", "2|b"]);
    copy.gives("1\ta\r2\tb\r", &["1|a", "2|b"]);
    let error = copy.fails("1\ta\n2\tb\r\n", "literal carriage return found in data", "COPY t, line 2");
    assert_eq!(error.hint.as_deref(), Some("Use \"\\r\" to represent carriage return."));
    copy.fails("1\ta\r\n2\tb\n", "literal newline found in data", "COPY t, line 2");
}

#[test]
fn too_few_and_too_many_fields() {
    let copy = Copy::text(&[INT, TEXT]);
    copy.fails("1\ta\n2\n", "missing data for column \"b\"", "COPY t, line 2: \"2\"");
    copy.fails("1\ta\tx\n", "extra data after last expected column", "COPY t, line 1: \"1\ta\tx\"");
}

#[test]
fn long_values_are_cut_in_the_context() {
    let long = "ä".repeat(80);
    let error = Copy::text(&[INT]).run(format!("{long}\n")).unwrap_err();
    assert_eq!(error.context.unwrap(), format!("COPY t, line 1, column a: \"{}...\"", "ä".repeat(50)));
}

#[test]
fn modifiers_apply_as_in_an_assignment() {
    let copy =
        Copy::text(&[SqlType::Varchar(Some(3)), SqlType::Char(Some(3)), SqlType::Numeric { precision: 5, scale: 2 }]);
    copy.gives("abc  \tä\t1.005\n", &["abc|ä  |1.01"]);
    copy.gives("äöü\tabc \t-999.994\n", &["äöü|abc|-999.99"]);
    let error = copy.fails(
        "abcd\tx\t1\n",
        "value too long for type character varying(3)",
        "COPY t, line 1, column a: \"abcd\"",
    );
    assert_eq!(error.condition, Condition::StringDataRightTruncation);
    copy.fails("a\tabcd\t1\n", "value too long for type character(3)", "COPY t, line 1, column b: \"abcd\"");
    copy.fails("a\tb\t999.995\n", "numeric field overflow", "COPY t, line 1, column c: \"999.995\"");
}
