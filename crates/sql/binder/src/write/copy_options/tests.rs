use datafusion::sql::sqlparser::ast::Ident;
use syntax::statement::{CopyDirection, OptionValue, StatementOption};

use super::*;

fn option(name: &str, value: &str) -> StatementOption {
    let value = match value {
        "" => None,
        "*" => Some(OptionValue::Star),
        list if list.starts_with('(') => {
            Some(OptionValue::List(list.trim_matches(['(', ')']).split(',').map(str::to_owned).collect()))
        }
        text if text.starts_with('\'') => Some(OptionValue::Text(text.trim_matches('\'').to_owned())),
        word => Some(OptionValue::Word(word.to_owned())),
    };
    StatementOption { name: Ident::new(name), value }
}

fn from(options: &[(&str, &str)]) -> Result<CopyOptions, String> {
    read_all(options, CopyDirection::From)
}

fn to(options: &[(&str, &str)]) -> Result<CopyOptions, String> {
    read_all(options, CopyDirection::To)
}

fn read_all(options: &[(&str, &str)], direction: CopyDirection) -> Result<CopyOptions, String> {
    let options: Vec<StatementOption> = options.iter().map(|(name, value)| option(name, value)).collect();
    parse_options(&options, direction).map_err(|error| error.message)
}

#[test]
fn the_format_gives_what_is_not_written() {
    let text = from(&[]).unwrap();
    assert_eq!((text.format, text.delimiter, text.null.as_str()), (CopyFormat::Text, b'\t', "\\N"));
    let csv = from(&[("format", "csv")]).unwrap();
    assert_eq!((csv.delimiter, csv.null.as_str(), csv.quote, csv.escape), (b',', "", b'"', b'"'));
    let quoted = from(&[("format", "'csv'"), ("quote", "'!'")]).unwrap();
    assert_eq!((quoted.quote, quoted.escape), (b'!', b'!'));
}

#[test]
fn header_takes_words_and_numbers_for_truth() {
    for on in ["", "true", "on", "1", "TRUE"] {
        assert_eq!(from(&[("header", on)]).unwrap().header, CopyHeader::Present, "{on}");
    }
    assert_eq!(from(&[("header", "0")]).unwrap().header, CopyHeader::Absent);
    assert_eq!(from(&[("header", "match")]).unwrap().header, CopyHeader::Match);
    assert_eq!(to(&[("header", "match")]).unwrap_err(), "cannot use \"match\" with HEADER in COPY TO");
    assert_eq!(from(&[("header", "2")]).unwrap_err(), "header requires a Boolean value or \"match\"");
}

#[test]
fn wrong_combinations_are_told_as_postgresql_tells_them() {
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[("format", "xml")], "COPY format \"xml\" not recognized"),
        (&[("colour", "red")], "option \"colour\" not recognized"),
        (&[("format", "csv"), ("format", "csv")], "conflicting or redundant options"),
        (&[("format", "binary"), ("delimiter", "','")], "cannot specify DELIMITER in BINARY mode"),
        (&[("format", "parquet"), ("null", "'x'")], "cannot specify NULL in PARQUET mode"),
        (&[("format", "binary"), ("header", "")], "cannot specify HEADER in BINARY mode"),
        (&[("delimiter", "'ab'")], "COPY delimiter must be a single one-byte character"),
        (&[("delimiter", "'é'")], "COPY delimiter must be a single one-byte character"),
        (&[("delimiter", "'\n'")], "COPY delimiter cannot be newline or carriage return"),
        (&[("delimiter", "'a'")], "COPY delimiter cannot be \"a\""),
        (&[("null", "'a\nb'")], "COPY null representation cannot use newline or carriage return"),
        (&[("quote", "'x'")], "COPY quote available only in CSV mode"),
        (&[("format", "csv"), ("quote", "'xx'")], "COPY quote must be a single one-byte character"),
        (&[("format", "csv"), ("quote", "','")], "COPY delimiter and quote must be different"),
        (&[("escape", "'x'")], "COPY escape available only in CSV mode"),
        (&[("force_null", "(a)")], "COPY force null available only in CSV mode"),
        (&[("format", "csv"), ("force_quote", "*")], "COPY force quote only available using COPY TO"),
        (&[("format", "csv"), ("force_null", "a")], "argument to option \"force_null\" must be a list of column names"),
        (&[("delimiter", "','"), ("null", "'a,b'")], "COPY delimiter must not appear in the NULL specification"),
        (&[("format", "csv"), ("null", "'\"'")], "CSV quote character must not appear in the NULL specification"),
        (&[("null", "'x'"), ("default", "'x'")], "NULL specification and DEFAULT specification cannot be the same"),
        (&[("on_error", "skip")], "COPY ON_ERROR \"skip\" not recognized"),
        (&[("reject_limit", "3")], "COPY REJECT_LIMIT requires ON_ERROR to be set to IGNORE"),
        (&[("on_error", "ignore"), ("reject_limit", "0")], "REJECT_LIMIT (0) must be greater than zero"),
        (&[("format", "")], "format requires a parameter"),
        (&[("encoding", "'klingon'")], "argument to option \"encoding\" must be a valid encoding name"),
    ];
    for (options, message) in cases {
        assert_eq!(from(options).unwrap_err(), *message);
    }
    assert_eq!(to(&[("default", "'x'")]).unwrap_err(), "COPY DEFAULT only available using COPY FROM");
    assert_eq!(
        to(&[("format", "csv"), ("force_null", "*")]).unwrap_err(),
        "COPY force null only available using COPY FROM"
    );
}

#[test]
fn bad_rows_may_be_left_out_up_to_a_limit() {
    let options = from(&[("on_error", "ignore"), ("reject_limit", "3")]).unwrap();
    assert_eq!((options.on_error, options.reject_limit), (OnError::Ignore, Some(3)));
}
