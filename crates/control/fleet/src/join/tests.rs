use cluster_model::{ClusterId, WorkerId, WorkerOptions};
use proptest::prelude::*;

use super::message_framing::FRAME_BYTES_MAX;
use super::*;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("build a runtime without drivers");
    runtime.block_on(future)
}

/// Decodes all messages from bytes.
fn decode_all<M: serde::de::DeserializeOwned>(mut bytes: &[u8]) -> Result<Vec<M>, FrameError> {
    block_on(async {
        let mut found = Vec::new();
        while let Some(message) = read_message(&mut bytes).await? {
            found.push(message);
        }
        Ok(found)
    })
}

fn encode_all(messages: &[FromInstance]) -> Vec<u8> {
    block_on(async {
        let mut bytes = Vec::new();
        for message in messages {
            write_message(&mut bytes, message).await.expect("write to memory");
        }
        bytes
    })
}

fn resources() -> WorkerResources {
    WorkerResources {
        cores: 2,
        memory_bytes: u64::MAX,
        cache_bytes: 0,
        cache_disk_bytes: 1,
        cache_disk_divisor: 4,
        options: WorkerOptions { max_cache_pct: Some(100), ..WorkerOptions::default() },
    }
}

#[test]
fn messages_round_trip() {
    let assignment = WorkerAssignment {
        cluster: ClusterId(3),
        slot: 63,
        storage: "s3://bucket/prefix".to_owned(),
        folder: "/data/workers".into(),
        reserve_bytes: 1 << 28,
    };
    let welcome = Welcome { certificate: Base64Bytes(vec![0, 255, 7]), assignment, resources: resources() };
    let said = [
        FromInstance::Welcome(Box::new(welcome)),
        FromInstance::Refused("no".to_owned()),
        FromInstance::HeartbeatReceived,
        FromInstance::Configure(resources()),
        FromInstance::Drain,
        FromInstance::Certificate(Base64Bytes(Vec::new())),
        FromInstance::Stop,
    ];
    assert_eq!(decode_all::<FromInstance>(&encode_all(&said)).expect("decode the messages"), said);
}

#[test]
fn unknown_fields_are_ignored() {
    let hello = br#"{"protocol":9,"version":"2.0","worker":7,"secret":null,"public_key":"BAQ=","colour":"blue"}"#;
    let mut frame = u32::try_from(hello.len()).expect("the length fits into 32 bits").to_be_bytes().to_vec();
    frame.extend(hello);
    let hellos = decode_all::<Hello>(&frame).expect("unknown fields are ignored");
    let expected = Hello {
        protocol: 9,
        version: "2.0".to_owned(),
        worker: WorkerId(7),
        secret: None,
        token: None,
        public_key: Base64Bytes(vec![4, 4]),
    };
    assert_eq!(hellos, [expected]);
}

#[test]
fn truncated_and_oversized_messages_are_errors() {
    let frame = encode_all(&[FromInstance::Configure(resources())]);
    for length in 1..frame.len() {
        assert!(matches!(decode_all::<FromInstance>(&frame[..length]), Err(FrameError::Io(_))), "{length}");
    }
    let too_long = u32::try_from(FRAME_BYTES_MAX + 1).expect("the length fits into 32 bits").to_be_bytes();
    assert!(matches!(decode_all::<FromInstance>(&too_long), Err(FrameError::TooLong { .. })));
    let long = FromInstance::Refused("x".repeat(FRAME_BYTES_MAX));
    let refused = block_on(async { write_message(&mut Vec::new(), &long).await });
    assert!(matches!(refused, Err(FrameError::TooLong { .. })));
    let mut deep = u32::try_from(FRAME_BYTES_MAX).expect("the length fits into 32 bits").to_be_bytes().to_vec();
    deep.extend([b'['; FRAME_BYTES_MAX]);
    assert!(matches!(decode_all::<FromInstance>(&deep), Err(FrameError::Malformed(_))), "deep nesting is an error");
}

proptest! {
    #[test]
    fn decoding_never_panics_on_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode_all::<FromWorker>(&bytes);
        let _ = decode_all::<FromInstance>(&bytes);
    }

    #[test]
    fn decoding_never_panics_on_any_text(body in "[\\[\\]{}\",:a-z0-9]{0,200}") {
        let mut frame = u32::try_from(body.len()).expect("the length fits into 32 bits").to_be_bytes().to_vec();
        frame.extend(body.as_bytes());
        let _ = decode_all::<Hello>(&frame);
        let _ = decode_all::<FromWorker>(&frame);
        let _ = decode_all::<FromInstance>(&frame);
    }

    #[test]
    fn decoding_never_panics_on_damaged_messages(at in 0_usize..400, byte: u8) {
        let mut frame = encode_all(&[FromInstance::Configure(resources()), FromInstance::HeartbeatReceived]);
        let length = frame.len();
        frame[at % length] = byte;
        let _ = decode_all::<FromInstance>(&frame);
    }
}
