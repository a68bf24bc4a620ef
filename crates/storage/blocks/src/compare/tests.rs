use bytes::Bytes;
use proptest::prelude::*;

use crate::compare::condition_ranges::condition_matches;
use crate::test_columns::{
    Column, Nulls, Shape, bitmap, cases, columns, conditions_on, is_valid, like, numbers, words,
};
use crate::text_condition::TextMatcher;
use crate::*;

/// Returns constants for conditions on a column: its values, their neighbours and the extremes.
fn constants(values: &[i128], seed: u64) -> Vec<i128> {
    let mut constants = vec![0, i64::MIN.into(), i64::MAX.into(), i128::MIN, i128::MAX];
    for number in numbers(seed).take(if values.is_empty() { 0 } else { 4 }) {
        let value = values[number as usize % values.len()];
        constants.extend([value, value.saturating_add(1), value.saturating_sub(1)]);
    }
    constants
}

fn conditions(values: &[i128], seed: u64) -> Vec<Condition<i128>> {
    let constants = constants(values, seed);
    let mut conditions = vec![Condition::IsNull, Condition::IsNotNull, Condition::In(vec![])];
    for constant in &constants {
        conditions.extend(Comparison::ALL.map(|comparison| Condition::Compare(comparison, *constant)));
    }
    for pair in constants.windows(2) {
        conditions.push(Condition::Between(pair[0].min(pair[1]), pair[0].max(pair[1])));
        conditions.push(Condition::Between(pair[0], pair[1]));
    }
    conditions.push(Condition::In(constants.clone()));
    let step = (values.len() / 40).max(1);
    conditions.push(Condition::In(values.iter().step_by(step).map(|value| value.saturating_add(1)).collect()));
    conditions
}

/// Returns initial row sets: all, most, few and almost no rows.
fn starts(rows: usize, seed: u64) -> Vec<RowSet> {
    let mut starts = vec![RowSet::all(rows)];
    for every in [2, 100, 3000] {
        let mut set = RowSet::none(rows);
        numbers(seed).take(rows / every).for_each(|row| set.insert(row as usize % rows));
        starts.push(set);
    }
    starts
}

/// Checks that the verdict of a header agrees with the rows.
#[track_caller]
fn check_zone(zone: PruneResult, before: &RowSet, after: &RowSet) {
    assert!(zone != PruneResult::None || after.is_empty(), "a row passed");
    assert!(zone != PruneResult::All || after == before, "a row did not pass");
}

#[test]
fn a_head_tells_what_no_row_and_what_every_row_passes() {
    let values: Vec<i64> = (0..3000).map(|row| 100 + row % 50).collect();
    let far: Vec<i128> = values.iter().map(|value| i128::from(*value) << 64).collect();
    let floats: Vec<f64> = values.iter().map(|value| *value as f64).collect();
    let header = |bytes: Bytes| BlockHeader::read(&bytes[..BlockHeader::header_bytes_for(3000)]).unwrap();
    let integers = header(encode_i64(&values, None).unwrap());
    let wide = header(encode_i128(&far, None).unwrap());
    let doubles = header(encode_f64(&floats, None).unwrap());
    for (low, high, zone) in [
        (0, 99, PruneResult::None),
        (100, 149, PruneResult::All),
        (120, 200, PruneResult::Some),
        (150, 200, PruneResult::None),
    ] {
        assert_eq!(integers.prune_integers(&Condition::Between(low, high)), zone);
        assert_eq!(wide.prune_integers(&Condition::Between(low << 64, high << 64)), zone);
        assert_eq!(doubles.prune_floats(&Condition::Between(low as f64, high as f64)), zone);
    }
    assert_eq!(integers.prune_integers(&Condition::IsNull), PruneResult::None);
    assert_eq!(integers.prune_integers(&Condition::IsNotNull), PruneResult::All);
    let words: Vec<&[u8]> =
        values.iter().map(|value| if value % 2 == 0 { b"abc".as_slice() } else { b"abd" }).collect();
    let text = header(encode_text(&words, None, Compression::None).unwrap());
    assert_eq!(text.prune_text(&like(b"x", &[], b"", false)), PruneResult::None);
    assert_eq!(text.prune_text(&TextCondition::Compare(Comparison::Less, b"b".to_vec())), PruneResult::All);
    assert_eq!(text.prune_text(&TextCondition::Compare(Comparison::Equal, b"abc".to_vec())), PruneResult::Some);
}

#[track_caller]
fn check(bytes: &Bytes, values: &[i128], validity: Option<&Vec<u8>>, seed: u64) {
    let block = Block::open(bytes.clone()).unwrap();
    for (number, condition) in conditions(values, seed).iter().enumerate() {
        let start = &starts(values.len(), seed)[number % 4];
        let mut rows = start.clone();
        block.filter_integers(condition, &mut rows).unwrap();
        let mut expected = RowSet::none(values.len());
        for (row, value) in values.iter().enumerate() {
            let value = is_valid(validity, row).then_some(value);
            if start.contains(row) && condition_matches(condition, value) {
                expected.insert(row);
            }
        }
        assert!(rows == expected, "{condition:?} on {:?}: {rows:?}, not {expected:?}", block.header().encoding);
        check_zone(block.header().prune_integers(condition), start, &rows);
    }
}

fn check_column(column: Column) {
    let (values, validity) = (column.integers(), column.validity());
    let valid = bitmap(validity.as_ref());
    let wide: Vec<i128> = values.iter().map(|value| i128::from(*value)).collect();
    check(&encode_i64(&values, valid).unwrap(), &wide, validity.as_ref(), column.seed);
    let shifted: Vec<i128> = wide.iter().map(|value| (value << 62) + (1 << 90)).collect();
    check(&encode_i128(&shifted, valid).unwrap(), &shifted, validity.as_ref(), column.seed);
    let far: Vec<i128> = wide.iter().map(|value| value + (1 << 90)).collect();
    check(&encode_i128(&far, valid).unwrap(), &far, validity.as_ref(), column.seed);
}

proptest! {
    #![proptest_config(cases(40))]
    #[test]
    fn conditions_keep_what_a_plain_loop_keeps(column in columns()) {
        check_column(column);
    }
}

#[test]
fn every_scheme_is_compared_at_full_size() {
    for shape in
        [Shape::Constant, Shape::Narrow(5), Shape::Narrow(33), Shape::Runs(40), Shape::Outliers(8), Shape::Extremes]
    {
        for nulls in [Nulls::None, Nulls::Few, Nulls::Runs] {
            check_column(Column { shape, nulls, rows: 65_536, seed: 7 });
        }
    }
}

/// Compares doubles in PostgreSQL's order.
fn order(one: f64, other: f64) -> std::cmp::Ordering {
    one.partial_cmp(&other).unwrap_or_else(|| one.is_nan().cmp(&other.is_nan()))
}

fn float_holds(condition: &Condition<f64>, value: f64) -> bool {
    match condition {
        Condition::Compare(comparison, constant) => comparison.holds(order(value, *constant)),
        Condition::Between(low, high) => order(*low, value).is_le() && order(value, *high).is_le(),
        Condition::In(values) => values.iter().any(|constant| order(value, *constant).is_eq()),
        Condition::IsNull => false,
        Condition::IsNotNull => true,
    }
}

fn check_floats(column: Column) {
    let (values, validity) = (column.floats(), column.validity());
    let singles: Vec<f32> = values.iter().map(|value| *value as f32).collect();
    let wide: Vec<f64> = singles.iter().map(|value| f64::from(*value)).collect();
    let mut constants = vec![0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-300, -1e-300, 1e300, 0.1];
    for number in numbers(column.seed).take(if values.is_empty() { 0 } else { 3 }) {
        let value = values[number as usize % values.len()];
        constants.extend([value, f64::from(value as f32), value + 0.01, value.next_up(), value.next_down()]);
    }
    let mut conditions = vec![Condition::IsNull, Condition::IsNotNull, Condition::In(constants.clone())];
    for constant in &constants {
        conditions.extend(Comparison::ALL.map(|comparison| Condition::Compare(comparison, *constant)));
    }
    conditions.extend(constants.windows(2).map(|pair| Condition::Between(pair[0], pair[1])));
    let valid = bitmap(validity.as_ref());
    for (bytes, values) in
        [(encode_f64(&values, valid).unwrap(), &values), (encode_f32(&singles, valid).unwrap(), &wide)]
    {
        let block = Block::open(bytes).unwrap();
        for (number, condition) in conditions.iter().enumerate() {
            let start = &starts(values.len(), column.seed)[number % 4];
            let mut rows = start.clone();
            block.filter_floats(condition, &mut rows).unwrap();
            let passes = |row: &usize| match is_valid(validity.as_ref(), *row) {
                true => float_holds(condition, values[*row]),
                false => *condition == Condition::IsNull,
            };
            assert!(
                rows.iter().eq(start.iter().filter(passes)),
                "{condition:?} on {:?} {column:?}",
                block.header().kind
            );
            check_zone(block.header().prune_floats(condition), start, &rows);
        }
    }
}

proptest! {
    #![proptest_config(cases(40))]
    #[test]
    fn conditions_on_floats_keep_what_a_plain_loop_keeps(column in columns()) {
        check_floats(column);
    }
}

#[test]
fn codes_are_kept_by_their_ranges() {
    let codes: Vec<u32> = numbers(1).take(9000).map(|number| (number % 3000) as u32).collect();
    let block = Block::open(encode_codes(&codes, None).unwrap()).unwrap();
    let ranges = KeyRanges::new((0..40).map(|range| (range * 70, range * 70 + range % 9)).collect());
    let mut rows = RowSet::all(codes.len());
    block.filter_codes(&ranges, &mut rows).unwrap();
    let kept = (0..codes.len()).filter(|row| ranges.contains(codes[*row].into()));
    assert!(rows.iter().eq(kept));
    assert!(Block::open(encode_i64(&[1], None).unwrap()).unwrap().filter_codes(&ranges, &mut RowSet::all(1)).is_err());
}

fn check_text(column: Column) {
    let (words, validity) = (words(column.rows, column.seed), column.validity());
    let values: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    for compression in [Compression::None, Compression::Symbols] {
        let block = Block::open(encode_text(&values, bitmap(validity.as_ref()), compression).unwrap()).unwrap();
        for (number, condition) in conditions_on(&words, column.seed).iter().enumerate() {
            let matcher = TextMatcher::new(condition);
            let start = &starts(values.len(), column.seed)[number % 4];
            let mut rows = start.clone();
            block.filter_text(condition, &mut rows).unwrap();
            let passes = |row: &usize| match is_valid(validity.as_ref(), *row) {
                true => matcher.matches(values[*row]),
                false => *condition == TextCondition::IsNull,
            };
            assert!(rows.iter().eq(start.iter().filter(passes)), "{condition:?} on {:?}", block.header().encoding);
            check_zone(block.header().prune_text(condition), start, &rows);
        }
    }
}

proptest! {
    #![proptest_config(cases(25))]
    #[test]
    fn conditions_on_strings_keep_what_a_plain_loop_keeps(column in columns()) {
        check_text(column);
    }
}

#[test]
fn a_condition_on_strings_is_what_it_says() {
    for (condition, text, holds) in [
        (like(b"", &[b"a", b"b"], b"", false), "xaxbx", true),
        (like(b"", &[b"a", b"b"], b"", false), "ba", false),
        (like(b"", &[b"aa", b"a"], b"", false), "aa", false),
        (like(b"ab", &[], b"ba", false), "aba", false),
        (like(b"ab", &[b"c"], b"ba", false), "abcba", true),
        (like(b"ab", &[b"c"], b"ba", true), "abcba", false),
        (like(b"ab", &[], b"", false), "abc", true),
        (like(b"abc", &[], b"", false), "ab", false),
        (TextCondition::Compare(Comparison::Less, b"b".to_vec()), "ab", true),
        (TextCondition::Between(b"a".to_vec(), b"b".to_vec()), "b", true),
        (TextCondition::In(vec![b"y".to_vec(), b"x".to_vec()]), "x", true),
        (TextCondition::In(vec![]), "", false),
    ] {
        assert_eq!(TextMatcher::new(&condition).matches(text.as_bytes()), holds, "{condition:?} of {text}");
    }
}
