use proptest::prelude::*;

use super::*;

#[test]
fn every_spelling_reads_the_same() {
    for text in [
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
        "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",
        "a0eebc999c0b4ef8bb6d6bb9bd380a11",
        "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
    ] {
        let mut out = String::new();
        format_uuid(&parse_uuid(text).unwrap(), &mut out);
        assert_eq!(out, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "{text}");
    }
}

#[test]
fn what_is_no_uuid_is_refused() {
    for text in [
        "",
        "a0eebc99",
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1g",
        "a0e-ebc999c0b4ef8bb6d6bb9bd380a11",
        "{a0eebc999c0b4ef8bb6d6bb9bd380a11",
    ] {
        assert_eq!(parse_uuid(text).unwrap_err().message, format!("invalid input syntax for type uuid: \"{text}\""));
    }
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(value: [u8; 16]) {
        let mut text = String::new();
        format_uuid(&value, &mut text);
        prop_assert_eq!(parse_uuid(&text), Ok(value));
    }
}
