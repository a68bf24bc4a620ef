use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn byte_order_is_the_order_of_the_parts(
        left in parts(), right in parts()
    ) {
        prop_assert_eq!(write(&left).cmp(&write(&right)), left.cmp(&right));
    }

    #[test]
    fn what_was_written_is_read(part in parts()) {
        let key = write(&part);
        let mut reader = KeyReader::new(&key);
        prop_assert_eq!(reader.u32().unwrap(), part.0);
        prop_assert_eq!(reader.bytes().unwrap(), part.1);
        prop_assert_eq!(reader.i64().unwrap(), part.2);
        prop_assert_eq!(reader.str().unwrap(), part.3);
        prop_assert_eq!(reader.u64_descending().unwrap(), part.4.0);
        reader.finish().unwrap();
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let mut reader = KeyReader::new(&bytes);
        while reader.str().is_ok() {}
        let mut reader = KeyReader::new(&bytes);
        while reader.u128().is_ok() {}
        let mut reader = KeyReader::new(&bytes);
        while reader.u8().is_ok() {}
        reader.finish().unwrap();
    }

    #[test]
    fn the_prefix_end_parts_keys_with_the_prefix_from_later_ones(
        prefix in prop::collection::vec(prop_oneof![Just(0xFE), Just(0xFF), any::<u8>()], 0..4),
        key in prop::collection::vec(prop_oneof![Just(0xFE), Just(0xFF), any::<u8>()], 0..6),
    ) {
        let inside = prefix <= key && prefix_end(&prefix).is_none_or(|end| key < end);
        prop_assert_eq!(inside, key.starts_with(&prefix));
    }
}

#[test]
fn a_string_sorts_before_its_extensions_whatever_follows() {
    let short = KeyWriter::new().bytes(b"a").u64(u64::MAX).finish();
    for longer in [&b"a\0"[..], b"a\0\0", b"a\x01", b"aa", b"a\xFF"] {
        assert!(short < KeyWriter::new().bytes(longer).u64(0).finish(), "{longer:?}");
    }
}

#[test]
fn a_cut_key_is_refused_with_its_position() {
    let key = KeyWriter::new().u32(7).bytes(b"name").finish();
    let mut reader = KeyReader::new(&key[..6]);
    reader.u32().unwrap();
    assert!(matches!(reader.bytes(), Err(Error::MalformedKey { position: 6, .. })));
}

type Parts = (u32, Vec<u8>, i64, String, std::cmp::Reverse<u64>);

fn parts() -> impl Strategy<Value = Parts> {
    let byte = prop_oneof![Just(0x00), Just(0xFF), Just(0x01), any::<u8>()];
    let bytes = prop::collection::vec(byte, 0..5);
    let number = prop_oneof![Just(0), Just(i64::MIN), Just(-1), any::<i64>()];
    (0_u32..3, bytes, number, "[a-c\0é]{0,3}", (0_u64..3).prop_map(std::cmp::Reverse))
}

fn write(part: &Parts) -> Vec<u8> {
    KeyWriter::new().u32(part.0).bytes(&part.1).i64(part.2).str(&part.3).u64_descending(part.4.0).finish()
}
