use proptest::prelude::*;

use super::*;

#[test]
fn both_forms_are_read() {
    assert_eq!(parse_bytea("\\x6869"), Ok(b"hi".to_vec()));
    assert_eq!(parse_bytea("\\x DE AD\nbe ef"), Ok(vec![0xde, 0xad, 0xbe, 0xef]));
    assert_eq!(parse_bytea("\\x"), Ok(vec![]));
    assert_eq!(parse_bytea("a\\000\\\\b"), Ok(vec![b'a', 0, b'\\', b'b']));
}

#[test]
fn malformed_bytes_are_refused() {
    assert_eq!(parse_bytea("\\x6").unwrap_err().message, "invalid hexadecimal data: odd number of digits");
    assert_eq!(parse_bytea("\\xgg").unwrap_err().message, "invalid hexadecimal digit: \"g\"");
    assert_eq!(parse_bytea("a\\b").unwrap_err().message, "invalid input syntax for type bytea");
    assert_eq!(parse_bytea("\\400").unwrap_err().condition, Condition::InvalidTextRepresentation);
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(bytes: Vec<u8>) {
        let mut text = String::new();
        format_bytea(&bytes, &mut text);
        prop_assert_eq!(parse_bytea(&text), Ok(bytes));
    }
}
