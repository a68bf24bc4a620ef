use bytes::{BufMut, BytesMut};

use super::*;

fn header() -> BytesMut {
    let mut bytes = BytesMut::new();
    bytes.put_slice(b"PGCOPY\n\xff\r\n\0");
    bytes.put_u32(0);
    bytes.put_u32(0);
    bytes
}

fn record(bytes: &mut BytesMut, number: Option<i32>, text: &str) {
    bytes.put_i16(2);
    match number {
        None => bytes.put_i32(-1),
        Some(number) => {
            bytes.put_i32(4);
            bytes.put_i32(number);
        }
    }
    bytes.put_i32(i32::try_from(text.len()).unwrap());
    bytes.put_slice(text.as_bytes());
}

fn copy() -> Copy {
    Copy::new(RecordFormat::Binary, &[INT, TEXT])
}

#[test]
fn records_are_read_up_to_the_trailer() {
    let mut bytes = header();
    record(&mut bytes, Some(7), "x");
    record(&mut bytes, None, "");
    // The trailer may be missing at a record's end, as in PostgreSQL.
    copy().gives(&bytes, &["7|x", "NULL|"]);
    bytes.put_i16(-1);
    copy().gives(&bytes, &["7|x", "NULL|"]);
    bytes.put_u8(0);
    copy().fails(&bytes, "received copy data after EOF marker", "COPY t, line 3");
}

#[test]
fn no_records_are_no_rows() {
    copy().gives(header(), &[]);
    let mut bytes = header();
    bytes.put_i16(-1);
    copy().gives(&bytes, &[]);
}

#[test]
fn a_header_extension_is_skipped() {
    let mut bytes = BytesMut::from(&b"PGCOPY\n\xff\r\n\0"[..]);
    bytes.put_u32(1);
    bytes.put_u32(3);
    bytes.put_slice(b"abc");
    record(&mut bytes, Some(1), "x");
    copy().gives(&bytes, &["1|x"]);
}

#[test]
fn what_is_no_binary_copy_is_refused() {
    copy().fails("PGCOPX", "COPY file signature not recognized", "COPY t, line 1");
    copy().fails("", "COPY file signature not recognized", "");
    copy().fails(&header()[..13], "invalid COPY file header (missing flags)", "");
    copy().fails(&header()[..17], "invalid COPY file header (missing length)", "");
    let mut critical = header();
    critical[11] = 0x20;
    copy().fails(&critical, "unrecognized critical flags in COPY file header", "COPY t, line 1");
    let mut extended = header();
    extended[18] = 5;
    copy().fails(&extended, "invalid COPY file header (wrong length)", "");
}

#[test]
fn broken_records_are_refused() {
    let mut bytes = header();
    record(&mut bytes, Some(7), "x");
    copy().fails(&bytes[..bytes.len() - 1], "unexpected EOF in COPY data", "COPY t, line 1");
    bytes.put_i16(3);
    copy().fails(&bytes, "row field count is 3, expected 2", "COPY t, line 2");
    let mut negative = header();
    negative.put_i16(2);
    negative.put_i32(-2);
    negative.put_i32(-2);
    copy().fails(&negative, "invalid field size", "COPY t, line 1");
}

#[test]
fn a_value_of_the_wrong_size_gives_line_and_column() {
    let mut long = header();
    long.put_i16(2);
    long.put_i32(5);
    long.put_slice(&[0; 5]);
    long.put_i32(-1);
    copy().fails(&long, "incorrect binary data format", "COPY t, line 1, column a");
    let mut short = header();
    short.put_i16(2);
    short.put_i32(3);
    short.put_slice(&[0; 3]);
    short.put_i32(-1);
    copy().fails(&short, "insufficient data left in message", "COPY t, line 1, column a");
}
