use cluster_model::{ClusterId, WorkerId};
use proptest::prelude::*;

use super::frame::FRAME_BYTES_MAX;
use super::*;

fn now<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("build a runtime without drivers");
    runtime.block_on(future)
}

/// Decodes all messages from bytes.
fn all<M: serde::de::DeserializeOwned>(mut bytes: &[u8]) -> Result<Vec<M>, FrameError> {
    now(async {
        let mut found = Vec::new();
        while let Some(message) = read(&mut bytes).await? {
            found.push(message);
        }
        Ok(found)
    })
}

fn written(messages: &[FromInstance]) -> Vec<u8> {
    now(async {
        let mut bytes = Vec::new();
        for message in messages {
            write(&mut bytes, message).await.expect("write to memory");
        }
        bytes
    })
}

fn means() -> Means {
    Means {
        cores: 2,
        memory_bytes: u64::MAX,
        cache_bytes: 0,
        cache_disk_bytes: 1,
        cache_disk_part: 4,
        max_cache_pct: Some(100),
        max_spill_pct: None,
    }
}

#[test]
fn what_is_written_is_read() {
    let place = Place {
        cluster: ClusterId(3),
        slot: 63,
        storage: "s3://bucket/prefix".to_owned(),
        folder: "/data/workers".into(),
        reserve_bytes: 1 << 28,
    };
    let welcome = Welcome { certificate: Base64(vec![0, 255, 7]), place, means: means() };
    let said = [
        FromInstance::Welcome(Box::new(welcome)),
        FromInstance::Refused("no".to_owned()),
        FromInstance::Heard,
        FromInstance::Configure(means()),
        FromInstance::Drain,
        FromInstance::Certificate(Base64(Vec::new())),
        FromInstance::Stop,
    ];
    assert_eq!(all::<FromInstance>(&written(&said)).expect("decode the messages"), said);
}

#[test]
fn a_later_version_may_say_more() {
    let hello = br#"{"protocol":9,"version":"2.0","worker":7,"secret":null,"public_key":"BAQ=","colour":"blue"}"#;
    let mut frame = u32::try_from(hello.len()).expect("the length fits into 32 bits").to_be_bytes().to_vec();
    frame.extend(hello);
    let hellos = all::<Hello>(&frame).expect("unknown fields are ignored");
    let expected = Hello {
        protocol: 9,
        version: "2.0".to_owned(),
        worker: WorkerId(7),
        secret: None,
        token: None,
        public_key: Base64(vec![4, 4]),
    };
    assert_eq!(hellos, [expected]);
}

#[test]
fn what_ends_halfway_or_is_too_long_is_no_message() {
    let frame = written(&[FromInstance::Configure(means())]);
    for length in 1..frame.len() {
        assert!(matches!(all::<FromInstance>(&frame[..length]), Err(FrameError::Io(_))), "{length}");
    }
    let too_long = u32::try_from(FRAME_BYTES_MAX + 1).expect("the length fits into 32 bits").to_be_bytes();
    assert!(matches!(all::<FromInstance>(&too_long), Err(FrameError::TooLong { .. })));
    let long = FromInstance::Refused("x".repeat(FRAME_BYTES_MAX));
    let refused = now(async { write(&mut Vec::new(), &long).await });
    assert!(matches!(refused, Err(FrameError::TooLong { .. })));
    let mut deep = u32::try_from(FRAME_BYTES_MAX).expect("the length fits into 32 bits").to_be_bytes().to_vec();
    deep.extend([b'['; FRAME_BYTES_MAX]);
    assert!(matches!(all::<FromInstance>(&deep), Err(FrameError::Malformed(_))), "deep nesting is an error");
}

proptest! {
    #[test]
    fn any_bytes_are_messages_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = all::<FromWorker>(&bytes);
        let _ = all::<FromInstance>(&bytes);
    }

    #[test]
    fn any_text_in_a_frame_is_a_message_or_none(body in "[\\[\\]{}\",:a-z0-9]{0,200}") {
        let mut frame = u32::try_from(body.len()).expect("the length fits into 32 bits").to_be_bytes().to_vec();
        frame.extend(body.as_bytes());
        let _ = all::<Hello>(&frame);
        let _ = all::<FromWorker>(&frame);
        let _ = all::<FromInstance>(&frame);
    }

    #[test]
    fn a_damaged_message_is_another_one_or_none(at in 0_usize..400, byte: u8) {
        let mut frame = written(&[FromInstance::Configure(means()), FromInstance::Heard]);
        let length = frame.len();
        frame[at % length] = byte;
        let _ = all::<FromInstance>(&frame);
    }
}
