//! Tests of COPY TO: encoded bytes of columns.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::Schema;
use types::text::DateContext;
use types::{SessionZone, SqlType};
use value_codec::decode::ColumnBuilder;

use super::row_encoding::*;
use crate::fixtures::text_style;

fn format(style: RowStyle, types: &[SqlType]) -> RowFormat {
    let columns = types
        .iter()
        .zip(["a", "b c", "d"])
        .map(|(sql_type, name)| Column { name: name.to_owned(), sql_type: sql_type.clone(), force_quote: false })
        .collect();
    RowFormat { columns, style, text_style: text_style(SessionZone::UTC) }
}

fn csv(header: bool) -> RowStyle {
    RowStyle::Csv { delimiter: b',', null: String::new(), header, quote: b'"', escape: b'"' }
}

fn text(header: bool) -> RowStyle {
    RowStyle::Text { delimiter: b'\t', null: "\\N".to_owned(), header }
}

/// Builds a batch of the columns of `format`.
fn batch(format: &RowFormat, rows: &[&[Option<&str>]]) -> RecordBatch {
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for (index, column) in format.columns.iter().enumerate() {
        let mut builder = ColumnBuilder::new(&column.sql_type, &DateContext::default(), rows.len());
        for row in rows {
            match row[index] {
                Some(text) => builder.push_text(text).unwrap(),
                None => builder.push_null(),
            }
        }
        fields.push(column.sql_type.arrow_field(&column.name, true));
        columns.push(builder.finish());
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

/// Returns the messages of a complete COPY.
fn messages(format: &RowFormat, data: &[&[Option<&str>]]) -> Vec<Vec<u8>> {
    let mut rows = EncodedRows::default();
    format.write_header(&mut rows);
    format.write_batch(&batch(format, data), &mut rows).unwrap();
    format.write_trailer(&mut rows);
    let mut start = 0;
    let mut messages = Vec::new();
    for end in rows.ends {
        messages.push(rows.bytes[start..end].to_vec());
        start = end;
    }
    assert_eq!(start, rows.bytes.len(), "every byte belongs to a message");
    messages
}

#[track_caller]
fn writes(format: &RowFormat, data: &[&[Option<&str>]], lines: &[&str]) {
    let written: Vec<_> = messages(format, data).into_iter().map(|line| String::from_utf8(line).unwrap()).collect();
    assert_eq!(written, lines);
}

#[test]
fn text_format_escapes_what_would_be_read_otherwise() {
    let format = format(text(true), &[SqlType::Text, SqlType::Int4]);
    writes(
        &format,
        &[
            &[Some("a\tb\nc\\d\r"), Some("1")],
            &[None, None],
            &[Some(""), Some("2")],
            &[Some("\x08\x0c\x0b"), Some("3")],
            &[Some("\\N"), Some("4")],
        ],
        &["a\tb c\n", "a\\tb\\nc\\\\d\\r\t1\n", "\\N\t\\N\n", "\t2\n", "\\b\\f\\v\t3\n", "\\\\N\t4\n"],
    );
}

#[test]
fn csv_quotes_only_what_needs_it() {
    let format = format(csv(true), &[SqlType::Text, SqlType::Int4]);
    writes(
        &format,
        &[
            &[Some("plain"), Some("1")],
            &[Some("a,b"), None],
            &[Some(""), Some("2")],
            &[None, Some("3")],
            &[Some("say \"hi\""), Some("4")],
            &[Some("two\nlines"), Some("5")],
            &[Some("\\."), Some("6")],
        ],
        &[
            "a,b c\n",
            "plain,1\n",
            "\"a,b\",\n",
            "\"\",2\n",
            ",3\n",
            "\"say \"\"hi\"\"\",4\n",
            "\"two\nlines\",5\n",
            "\\.,6\n",
        ],
    );
}

#[test]
fn csv_quotes_the_end_marker_where_it_is_alone_and_forced_columns_always() {
    writes(&format(csv(false), &[SqlType::Text]), &[&[Some("\\.")]], &["\"\\.\"\n"]);
    let mut forced = format(csv(false), &[SqlType::Text, SqlType::Int4]);
    forced.columns[1].force_quote = true;
    writes(&forced, &[&[Some("a"), Some("1")], &[Some("b"), None]], &["a,\"1\"\n", "b,\n"]);
}

#[test]
fn csv_with_other_signs() {
    let style = RowStyle::Csv { delimiter: b';', null: "nil".to_owned(), header: false, quote: b'\'', escape: b'\\' };
    writes(
        &format(style, &[SqlType::Text, SqlType::Text]),
        &[&[Some("it's"), Some("a;b\\")], &[None, Some("nil")]],
        &["'it\\'s';'a;b\\\\'\n", "nil;'nil'\n"],
    );
}

#[test]
fn binary_joins_the_signature_to_the_first_row_and_ends_with_a_trailer() {
    let format = format(RowStyle::Binary, &[SqlType::Int4, SqlType::Text]);
    let written = messages(&format, &[&[Some("7"), None], &[None, Some("x")]]);
    assert_eq!(written.len(), 3);
    assert_eq!(written[0], b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\x04\0\0\0\x07\xff\xff\xff\xff");
    assert_eq!(written[1], b"\0\x02\xff\xff\xff\xff\0\0\0\x01x");
    assert_eq!(written[2], b"\xff\xff");
    assert_eq!(messages(&format, &[]).len(), 1, "without rows signature and trailer are one message");
}
