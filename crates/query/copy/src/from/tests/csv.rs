use types::Condition;

use super::*;

#[test]
fn an_unquoted_empty_field_is_null_and_a_quoted_one_is_empty_text() {
    Copy::csv(&[TEXT, TEXT]).gives(",\"\"\nx,\n", &["NULL|", "x|NULL"]);
}

#[test]
fn quotes_open_anywhere_and_doubled_quotes_are_one() {
    let copy = Copy::csv(&[TEXT, TEXT]);
    copy.gives("\"a\"\"b\",\"c,d\"\n", &["a\"b|c,d"]);
    copy.gives("ab\"c,\"d,\"\"\"\"\n", &["abc,d|\""]);
    copy.gives("\"x\"y,z\n", &["xy|z"]);
    copy.gives("\"two\nlines\",\"\r\n\"\n", &["two\nlines|\r\n"]);
}

#[test]
fn an_escape_other_than_the_quote_only_escapes_itself_and_the_quote() {
    let copy =
        Copy::new(RecordFormat::Csv { delimited: delimited(b',', ""), quote: b'\'', escape: b'\\' }, &[TEXT, TEXT]);
    copy.gives("'it\\'s','a\\\\'\n", &["it's|a\\"]);
    copy.gives("'a\\nb','\\'\\''\n", &["a\\nb|''"]);
    copy.gives("a\\b,'c\nd'\n'e\\'\nf',g\n", &["a\\b|c\nd", "e'\nf|g"]);
}

#[test]
fn null_marker_default_marker_and_force_options() {
    let copy = Copy::csv(&[TEXT, TEXT]).delimited(|delimited| delimited.null = "nil".to_owned());
    copy.gives("nil,\"nil\"\n,x\n", &["NULL|nil", "|x"]);
    let forced = Copy::csv(&[TEXT, TEXT]).column(0, |column| column.force_not_null = true).column(1, |column| {
        column.force_null = true;
    });
    forced.gives(",\"\"\n", &["|NULL"]);
    let with_default = Copy::csv(&[TEXT, INT])
        .delimited(|delimited| delimited.default = Some("\\D".to_owned()))
        .column(1, |column| column.default = Some(Some("42".to_owned())));
    with_default.gives("x,\\D\ny,1\n", &["x|42", "y|1"]);
    with_default.fails("\\D,1\n", "unexpected default marker in COPY data", "COPY t, line 1, column a: null input");
}

#[test]
fn line_ends_are_those_of_the_first_line() {
    let copy = Copy::csv(&[INT, TEXT]);
    copy.gives("1,a\r\n2,b\r\n", &["1|a", "2|b"]);
    copy.gives("1,a\r2,b", &["1|a", "2|b"]);
    copy.gives("1,a\n2,b", &["1|a", "2|b"]);
    let error = copy.fails("1,a\n2,b\r\n", "unquoted carriage return found in data", "COPY t, line 2");
    assert_eq!(error.hint.as_deref(), Some("Use quoted CSV field to represent carriage return."));
    copy.fails("1,a\r\n2,b\n", "unquoted newline found in data", "COPY t, line 2");
}

#[test]
fn too_few_and_too_many_fields() {
    let copy = Copy::csv(&[INT, TEXT]);
    copy.fails("1,a\n2\n", "missing data for column \"b\"", "COPY t, line 2: \"2\"");
    let error = copy.fails("1,a\n2,b,c\n", "extra data after last expected column", "COPY t, line 2: \"2,b,c\"");
    assert_eq!(error.condition, Condition::BadCopyFileFormat);
    copy.fails("1,a\n\n", "missing data for column \"b\"", "COPY t, line 2: \"\"");
}

#[test]
fn a_bad_field_before_the_missing_one_is_reported_first() {
    Copy::csv(&[INT, TEXT]).fails(
        "1,a\nx\n",
        "invalid input syntax for type integer: \"x\"",
        "COPY t, line 2, column a: \"x\"",
    );
}

#[test]
fn a_bad_value_gives_line_column_and_value() {
    let copy = Copy::csv(&[INT, TEXT, INT]);
    copy.fails(
        "1,\"two\nlines\",3\n4,x,five\n",
        "invalid input syntax for type integer: \"five\"",
        "COPY t, line 3, column c: \"five\"",
    );
    let error = copy.file("/data/x.csv").fails(
        "99999999999,a,1\n",
        "value \"99999999999\" is out of range for type integer",
        "COPY t, file \"/data/x.csv\", line 1, column a: \"99999999999\"",
    );
    assert_eq!(error.condition, Condition::NumericValueOutOfRange);
}

#[test]
fn of_two_bad_values_the_first_of_the_input_is_reported() {
    Copy::csv(&[INT, INT]).fails(
        "1,x\ny,2\n",
        "invalid input syntax for type integer: \"x\"",
        "COPY t, line 1, column b: \"x\"",
    );
}

#[test]
fn a_quote_left_open_is_an_error_with_the_line() {
    Copy::csv(&[INT, TEXT]).fails(
        "1,a\n2,\"b\n3,c\n",
        "unterminated CSV quoted field",
        "COPY t, line 4: \"2,\"b\n3,c\n\"",
    );
}

#[test]
fn the_end_marker_ends_a_clients_data_and_is_data_in_a_file() {
    let copy = Copy::csv(&[TEXT]);
    copy.gives("a\n\\.\nignored,\"\n", &["a"]);
    copy.gives("a\r\n\\.\r\nb\r\n", &["a"]);
    copy.gives("a\n\\.", &["a"]);
    copy.gives("\\.", &[]);
    copy.gives("\"x\n\\.\ny\"\n\\.b\nc\n", &["x\n\\.\ny", "\\.b", "c"]);
    Copy::csv(&[TEXT]).file("x").gives("a\n\\.\nb\n", &["a", "\\.", "b"]);
}

#[test]
fn a_header_is_skipped_or_must_match() {
    let skip = Copy::csv(&[INT, TEXT]).delimited(|delimited| delimited.header = HeaderMode::Skip);
    skip.gives("any,\"thing\nat all\",here\n1,a\n", &["1|a"]);
    skip.gives("", &[]);
    skip.fails("h\n1\n", "missing data for column \"b\"", "COPY t, line 2: \"1\"");
    let matching = Copy::csv(&[INT, TEXT]).delimited(|delimited| delimited.header = HeaderMode::Match);
    matching.gives("a,\"b\"\n1,x\n", &["1|x"]);
    matching.fails(
        "a,c\n1,x\n",
        "column name mismatch in header line field 2: got \"c\", expected \"b\"",
        "COPY t, line 1: \"a,c\"",
    );
    matching.fails("a\n1\n", "wrong number of fields in header line: got 1, expected 2", "COPY t, line 1: \"a\"");
    matching.fails(
        "a,\n",
        "column name mismatch in header line field 2: got null value (\"\"), expected \"b\"",
        "COPY t, line 1: \"a,\"",
    );
}

#[test]
fn bytes_that_are_no_text_are_refused_where_they_stand() {
    let copy = Copy::csv(&[INT, TEXT]);
    let error = copy.fails(b"1,a\n2,\xff\n", "invalid byte sequence for encoding \"UTF8\": 0xff", "COPY t, line 2");
    assert_eq!(error.condition, Condition::CharacterNotInRepertoire);
    copy.fails(b"1,a\n2,b\n3,\0\n", "invalid byte sequence for encoding \"UTF8\": 0x00", "COPY t, line 3");
    // The error does not depend on the sizes of pieces and chunks.
    copy.fails(b"1,\0\n2,\xff\n", "invalid byte sequence for encoding \"UTF8\": 0x00", "COPY t, line 1");
    copy.fails(b"1,\xef\n\xdf", "invalid byte sequence for encoding \"UTF8\": 0xef 0x0a", "COPY t, line 1");
    copy.fails(b"1,\xc3(\n", "invalid byte sequence for encoding \"UTF8\": 0xc3 0x28", "COPY t, line 1");
    copy.fails(b"x,a\n2,\xff\n", "invalid input syntax for type integer: \"x\"", "COPY t, line 1, column a: \"x\"");
}

#[test]
fn bad_values_are_skipped_and_counted_when_asked() {
    let copy = Copy::csv(&[INT, INT]).ignoring(None, true);
    let outcome = copy.run("1,2\nx,3\n4,y\nz,z\n5,6\n").unwrap();
    assert_eq!(outcome.rows, ["1|2", "5|6"]);
    assert_eq!(outcome.skipped, 3);
    let mut notices = outcome.notices;
    notices.sort();
    assert_eq!(
        notices,
        [
            "skipping row due to data type incompatibility at line 2 for column \"a\": \"x\"",
            "skipping row due to data type incompatibility at line 3 for column \"b\": \"y\"",
            "skipping row due to data type incompatibility at line 4 for column \"a\": \"z\"",
        ]
    );
    copy.fails("x,1\n2\n", "missing data for column \"b\"", "COPY t, line 2: \"2\"");
}

#[test]
fn more_bad_values_than_the_limit_fail_the_copy() {
    let copy = Copy::csv(&[INT]).ignoring(Some(1), false);
    assert_eq!(copy.run("1\nx\n2\n").unwrap().rows, ["1", "2"]);
    copy.fails("1\nx\ny\n2\n", "skipped more than REJECT_LIMIT (1) rows due to data type incompatibility", "");
}
