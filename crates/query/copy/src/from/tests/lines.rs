//! Property tests for arbitrary input, and contexts of rows.

use proptest::prelude::*;

use super::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Checks that sizes of pieces and chunks do not change the outcome, and that nothing panics.
    #[test]
    fn cutting_changes_nothing(input in "[a1,\"\\\\.\t\n\r]{0,24}", escape in prop::sample::select(vec![b'"', b'\\'])) {
        let csv = Copy::new(RecordFormat::Csv { delimited: delimited(b',', ""), quote: b'"', escape }, &[TEXT, TEXT]);
        let _ = csv.run(&input);
        let _ = Copy::text(&[TEXT, TEXT]).run(&input);
    }

    #[test]
    fn any_bytes_are_refused_or_read(input in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = Copy::csv(&[TEXT, INT]).run(&input);
        let _ = Copy::text(&[TEXT, INT]).run(&input);
        let _ = Copy::new(RecordFormat::Binary, &[TEXT, INT]).run(&input);
    }
}

#[test]
fn rows_know_where_they_stand() {
    let headed = Copy::csv(&[INT, TEXT]).file("/a.csv").delimited(|delimited| delimited.header = HeaderMode::Skip);
    let places = headed.places("a,b\n1,\"two\nlines\"\n2,x\n");
    assert_eq!(
        places,
        ["COPY t, file \"/a.csv\", line 3: \"1,\"two\nlines\"\"", "COPY t, file \"/a.csv\", line 4: \"2,x\""]
    );
    let places = Copy::text(&[INT, TEXT]).ignoring(None, false).places("1\ta\nx\tb\n3\tc\n");
    assert_eq!(places, ["COPY t, line 1: \"1\ta\"", "COPY t, line 3: \"3\tc\""]);
}
