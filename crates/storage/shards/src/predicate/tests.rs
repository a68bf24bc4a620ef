use proptest::prelude::*;

use super::*;

fn passes(test: &Test, value: Option<i64>) -> bool {
    match test {
        Test::All(tests) => return tests.iter().all(|test| passes(test, value)),
        Test::Any(tests) => return tests.iter().any(|test| passes(test, value)),
        _ => {}
    }
    let Some(value) = value.map(Datum::Int) else { return *test == Test::IsNull };
    match test {
        Test::All(_) | Test::Any(_) => unreachable!("answered above"),
        Test::Like { .. } => unreachable!("numbers are like nothing"),
        Test::IsNull => false,
        Test::IsNotNull => true,
        Test::In(list) => list.contains(&value),
        Test::Between(low, high) => *low <= value && value <= *high,
        Test::Compare(op, other) => match op {
            CompareOp::Eq => value == *other,
            CompareOp::NotEq => value != *other,
            CompareOp::Less => value < *other,
            CompareOp::LessEq => value <= *other,
            CompareOp::Greater => value > *other,
            CompareOp::GreaterEq => value >= *other,
        },
    }
}

fn test_strategy() -> impl Strategy<Value = Test> {
    let datum = || (-4_i64..4).prop_map(Datum::Int);
    let op = prop::sample::select(vec![
        CompareOp::Eq,
        CompareOp::NotEq,
        CompareOp::Less,
        CompareOp::LessEq,
        CompareOp::Greater,
        CompareOp::GreaterEq,
    ]);
    let leaf = prop_oneof![
        (op, datum()).prop_map(|(op, value)| Test::Compare(op, value)),
        prop::collection::vec(datum(), 0..4).prop_map(Test::In),
        (datum(), datum()).prop_map(|(low, high)| Test::Between(low, high)),
        Just(Test::IsNull),
        Just(Test::IsNotNull),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Test::All),
            prop::collection::vec(inner, 0..3).prop_map(Test::Any),
        ]
    })
}

proptest! {
    #[test]
    fn a_zone_with_a_passing_row_is_never_skipped(
        values in prop::collection::vec(prop::option::of(-3_i64..3), 1..6),
        widen in 0_i64..2,
        test in test_strategy(),
    ) {
        let present: Vec<i64> = values.iter().copied().flatten().collect();
        let min = present.iter().min().map(|min| Datum::Int(min - widen));
        let max = present.iter().max().map(|max| Datum::Int(max + widen));
        let zone = ZoneMapEntry {
            rows: values.len() as u64,
            nulls: Some((values.len() - present.len()) as u64),
            min: min.as_ref(),
            max: max.as_ref(),
            exact: widen == 0,
        };
        if values.iter().any(|value| passes(&test, *value)) {
            prop_assert!(test.may_pass(&zone));
            let unknown = ZoneMapEntry { rows: zone.rows, nulls: None, min: None, max: None, exact: false };
            prop_assert!(test.may_pass(&unknown));
        }
    }
}

#[test]
fn texts_that_cannot_begin_so_are_skipped() {
    let (min, max) = (Datum::Text("abc".to_owned()), Datum::Text("ad".to_owned()));
    let zone = ZoneMapEntry { rows: 5, nulls: Some(0), min: Some(&min), max: Some(&max), exact: false };
    for (pattern, may_pass) in [
        ("%", true),
        ("a%", true),
        ("abb%", false),
        ("abc%", true),
        ("abcd%", true),
        ("ac%", true),
        ("add%", false),
        ("b%", false),
    ] {
        let like = |is_negated| Test::Like { pattern: LikePattern::parse(pattern).unwrap(), is_negated };
        assert_eq!(like(false).may_pass(&zone), may_pass, "{pattern}");
        assert!(like(true).may_pass(&zone), "not {pattern}");
    }
}

#[test]
fn zones_outside_a_test_are_skipped() {
    let (min, max) = (Datum::Int(10), Datum::Int(20));
    let zone = ZoneMapEntry { rows: 5, nulls: Some(0), min: Some(&min), max: Some(&max), exact: true };
    for test in [
        Test::Compare(CompareOp::Eq, Datum::Int(9)),
        Test::Compare(CompareOp::Less, Datum::Int(10)),
        Test::Compare(CompareOp::Greater, Datum::Int(20)),
        Test::Compare(CompareOp::GreaterEq, Datum::Int(21)),
        Test::In(vec![Datum::Int(1), Datum::Int(21)]),
        Test::In(vec![]),
        Test::Between(Datum::Int(21), Datum::Int(30)),
        Test::Between(Datum::Int(15), Datum::Int(12)),
        Test::IsNull,
    ] {
        assert!(!test.may_pass(&zone), "{test:?}");
    }
}
