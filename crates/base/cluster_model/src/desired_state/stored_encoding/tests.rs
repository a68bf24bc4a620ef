use std::path::PathBuf;

use super::*;
use crate::desired_state::{Change, ClusterOptions, Grantee, Privilege};
use crate::fixtures::{apply_changes, create, initial_state, role, with_nodes};

/// Returns a state that uses all fields.
fn full() -> DesiredState {
    let options = ClusterOptions {
        auto_suspend: Some(Some(300)),
        auto_resume: Some(false),
        max_spill_pct: Some(Some(50)),
        max_cache_pct: Some(Some(80)),
        ..with_nodes(4)
    };
    let grant = Change::Grant {
        clusters: vec!["etl \"ü\"\n".to_owned()],
        privileges: vec![Privilege::Usage, Privilege::Operate],
        to: vec![Grantee::Public, Grantee::Role(role(16_400, "u"))],
    };
    let names = vec!["bi".to_owned(), "default".to_owned()];
    let set = Change::SetDefaultClusters { role: role(16_400, "u"), clusters: names };
    let suspend = Change::Suspend { name: "bi".to_owned() };
    apply_changes(&initial_state(), &[create("etl \"ü\"\n", options), create("bi", with_nodes(2)), grant, set, suspend])
}

/// Every released format must stay readable. This file is never rewritten; a new format gets a new file.
#[test]
fn the_format_is_stable() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/clusters.v{FORMAT_VERSION}.json"));
    let bytes = encode(&full());
    if std::env::var_os("KILN_WRITE_GOLDEN").is_some() && !path.exists() {
        std::fs::write(&path, &bytes).unwrap();
    }
    let golden = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(decode(&golden).unwrap(), full(), "{} reads", path.display());
    assert!(golden == bytes, "{} differs from the present encoding", path.display());
}

#[test]
fn states_round_trip() {
    for state in [initial_state(), full()] {
        assert_eq!(decode(&encode(&state)), Ok(state));
    }
}

#[test]
fn every_damaged_byte_is_detected() {
    let bytes = encode(&full());
    for index in 0..bytes.len() {
        for flip in [0x01, 0x20, 0x80] {
            let mut damaged = bytes.clone();
            damaged[index] ^= flip;
            let error = decode(&damaged).expect_err("every flipped bit is detected").to_string();
            assert!(error.starts_with("the stored cluster definitions "), "{error}");
        }
    }
    for length in 0..bytes.len() {
        decode(&bytes[..length]).expect_err("every truncation is detected");
    }
    decode(&[&bytes[..], b" "].concat()).expect_err("trailing bytes are detected");
}

#[test]
fn a_later_format_has_its_own_error() {
    let text = String::from_utf8(encode(&initial_state())).unwrap();
    let later = text.replacen("format 1,", "format 12,", 1);
    assert_eq!(decode(later.as_bytes()), Err(StoredError::Format { found: 12, supported: 1 }));
    for never in ["format 0,", "format 01,", "format ,", "format 99999999999,", "format +1,"] {
        let changed = text.replacen("format 1,", never, 1);
        assert!(matches!(decode(changed.as_bytes()), Err(StoredError::Damaged { .. })), "{never}");
    }
}

#[test]
fn states_with_violated_invariants_are_damaged() {
    let text = String::from_utf8(encode(&full())).unwrap();
    let json = text.split_once('\n').unwrap().1;
    let sealed = |json: &str| format!("{HEADER_START}1{CHECKSUM_LABEL}{:016x}\n{json}", xxh3_64(json.as_bytes()));
    assert_eq!(decode(sealed(json).as_bytes()), Ok(full()));
    let broken = json.replacen("\"node_count\": 4", "\"node_count\": 4000", 1);
    assert_ne!(broken, json);
    let error = decode(sealed(&broken).as_bytes()).expect_err("a violated invariant is detected");
    assert!(error.to_string().contains("NODE_COUNT"), "{error}");
    for broken in ["", "null", "[]", "{}", &json[1..], &json.replacen("\"clusters\"", "\"klusters\"", 1)] {
        assert!(matches!(decode(sealed(broken).as_bytes()), Err(StoredError::Damaged { .. })));
    }
}
