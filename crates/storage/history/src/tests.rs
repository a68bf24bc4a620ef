use crate::{checkpoint, timeline};

#[test]
fn stored_formats_are_unchanged() {
    let begin = timeline::TimelineBegin { format: 2, parent: 3, after: 7 };
    let stored = r#"{"format":2,"parent":3,"after":7}"#;
    assert_eq!(serde_json::from_str::<timeline::TimelineBegin>(stored).unwrap(), begin);
    assert_eq!(serde_json::to_string(&begin).unwrap(), stored);
    let old = serde_json::from_str::<timeline::TimelineBegin>(r#"{"parent": 3, "after": 7}"#).unwrap();
    assert_eq!(old, timeline::TimelineBegin { format: 1, ..begin });

    let manifest = checkpoint::Manifest {
        format: 2,
        instance: "i".to_owned(),
        timeline: 3,
        record: 7,
        record_checksum: Some("00000000000000ff".to_owned()),
        written_us: 8,
        commit: 9,
        bytes: 10,
        checksum: "ab".to_owned(),
    };
    let stored = concat!(
        r#"{"format":2,"instance":"i","timeline":3,"record":7,"record_checksum":"00000000000000ff","#,
        r#""written_us":8,"commit":9,"bytes":10,"checksum":"ab"}"#
    );
    assert_eq!(serde_json::from_str::<checkpoint::Manifest>(stored).unwrap(), manifest);
    assert_eq!(serde_json::to_string(&manifest).unwrap(), stored);
    let old = stored.replace(r#""record_checksum":"00000000000000ff","#, "").replace(r#""format":2"#, r#""format":1"#);
    let expected = checkpoint::Manifest { format: 1, record_checksum: None, ..manifest };
    assert_eq!(serde_json::from_str::<checkpoint::Manifest>(&old).unwrap(), expected);
}
