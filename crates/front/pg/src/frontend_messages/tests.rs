use bytes::BufMut;
use proptest::prelude::*;

use super::*;

fn frame(kind: u8, body: &[u8]) -> BytesMut {
    let mut bytes = BytesMut::new();
    bytes.put_u8(kind);
    bytes.put_u32(u32::try_from(body.len() + 4).unwrap());
    bytes.put_slice(body);
    bytes
}

fn content(kind: u8, body: &[u8]) -> SqlResult<FrontendMessage> {
    decode(&mut frame(kind, body), MESSAGE_BYTES_MAX).unwrap().unwrap().message
}

#[test]
fn a_bind_decodes_to_what_was_sent() {
    let mut body = BytesMut::new();
    body.put_slice(b"p\0s\0");
    body.put_slice(&[0, 1, 0, 1, 0, 2]);
    body.put_slice(&[0, 0, 0, 2, 7, 8]);
    body.put_i32(-1);
    body.put_slice(&[0, 1, 0, 0]);
    let expected = BindRequest {
        portal: "p".into(),
        statement: "s".into(),
        parameter_formats: vec![1],
        parameters: vec![Some(Bytes::from_static(&[7, 8])), None],
        result_formats: vec![0],
    };
    assert_eq!(content(b'B', &body), Ok(FrontendMessage::Bind(expected)));
}

#[test]
fn inner_lengths_that_lie_are_violations_and_consume_their_frame() {
    for (kind, body) in [
        (b'P', &b"\0select 1\0\0\x02\0\0\0\x17"[..]),
        (b'B', b"\0\0\0\0\0\x01\x00\x00\x00\x09ab\0\0"),
        (b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0"),
        (b'E', b"\0\0\0"),
        (b'D', b"Zx\0"),
        (b'Q', b"select 1"),
        (b'S', b"x"),
    ] {
        let mut buffer = frame(kind, body);
        let decoded = decode(&mut buffer, MESSAGE_BYTES_MAX).unwrap().unwrap();
        assert_eq!(decoded.message.unwrap_err().condition, Condition::ProtocolViolation, "{kind} {body:?}");
        assert!(buffer.is_empty());
    }
}

#[test]
fn text_that_is_not_utf8_is_22021() {
    assert_eq!(content(b'Q', b"select '\xff'\0").unwrap_err().condition, Condition::CharacterNotInRepertoire);
}

#[test]
fn an_impossible_length_ends_the_stream() {
    for bytes in [&b"Q\0\0\0\x03"[..], b"Q\xff\xff\xff\xff", b"Q\x7f\xff\xff\xff", b"?\0\0\0\x04"] {
        assert!(decode(&mut BytesMut::from(bytes), MESSAGE_BYTES_MAX).is_err(), "{bytes:?}");
    }
    assert!(decode_first_packet(&mut BytesMut::from(&b"\0\0\x27\x11\0\x03\0\0"[..])).is_err());
    assert!(decode_first_packet(&mut BytesMut::from(&b"\0\0\0\x07\0\x03\0\0"[..])).is_err());
}

#[test]
fn a_startup_packet_decodes_to_its_pairs() {
    let mut bytes = BytesMut::new();
    bytes.put_u32(8 + 12 + 1);
    bytes.put_slice(&[0, 3, 0, 2]);
    bytes.put_slice(b"user\0sandra\0\0");
    let expected = FirstPacket::Startup { major: 3, minor: 2, parameters: vec![("user".into(), "sandra".into())] };
    assert_eq!(decode_first_packet(&mut bytes), Ok(Some(expected)));
}

proptest! {
    #[test]
    fn any_bytes_decode_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode_first_packet(&mut BytesMut::from(&bytes[..]));
        let mut buffer = BytesMut::from(&bytes[..]);
        while let Ok(Some(_)) = decode(&mut buffer, 1000) {}
    }

    #[test]
    fn any_body_decodes_without_panic(
        kind in proptest::sample::select(&b"QPBDECHSpdcfX"[..]),
        body in proptest::collection::vec(prop_oneof![4 => 0u8..4, 1 => any::<u8>()], 0..64),
    ) {
        let mut buffer = frame(kind, &body);
        prop_assert!(decode(&mut buffer, 1000).unwrap().is_some());
        prop_assert!(buffer.is_empty());
    }

    #[test]
    fn a_message_cut_short_waits_for_the_rest(cut in 0usize..18) {
        let whole = frame(b'Q', b"select 12345\0");
        let mut buffer = BytesMut::from(&whole[..cut.min(whole.len() - 1)]);
        prop_assert!(decode(&mut buffer, 1000).unwrap().is_none());
    }
}
