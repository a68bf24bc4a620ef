//! Tests of compact groups: merging those of parts of the rows gives the groups of all rows, any number of times.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::StringViewArray;

use super::super::tests::Random;
use super::super::{AggregateKind, AggregateSpec, CompactGroups, GroupRows, GroupingSet, Groups, StateSpec};
use crate::{Batch, Bitmap, Bounds, Column, ColumnData, Dictionary, NEVER_STOPPED, PhysicalType};

const KEPT: [AggregateKind; 6] = [
    AggregateKind::Count,
    AggregateKind::Sum,
    AggregateKind::FloatSum,
    AggregateKind::Min(PhysicalType::Ints),
    AggregateKind::Max(PhysicalType::Floats),
    AggregateKind::Max(PhysicalType::Texts),
];

/// Creates a specification whose keys are among the first two columns, with states of numbers, floats and strings.
fn spec(keys: &[usize], sets: Vec<GroupingSet>) -> Arc<AggregateSpec> {
    let columns = [None, Some(2), Some(3), Some(2), Some(3), Some(1)];
    let states = KEPT.into_iter().zip(columns).map(|(kept, column)| StateSpec { kind: kept, column, filter: None });
    let (keys, states) = (keys.to_vec(), states.collect());
    Arc::new(AggregateSpec { keys, states, sets, ..AggregateSpec::default() })
}

/// Creates rows: an integer key and a string key, some of them NULL, then a number and a float whose sums are exact.
fn batch(chance: &mut Random, rows: usize) -> Batch {
    let mut ints = |end: u64, nulls: bool| {
        let values: Vec<i64> = (0..rows).map(|_| i64::try_from(chance.below(end)).expect("it is small") - 2).collect();
        let valid = nulls.then(|| Arc::new(Bitmap::from_fn(rows, |row| values[row] != 1)));
        let bounds = Bounds { min: -2, max: i128::from(end) };
        Column { data: ColumnData::Ints { values: Arc::new(values), bounds }, validity: valid }
    };
    let (keys, values) = (ints(6, true), ints(100, true));
    let strings: Vec<String> = (0..9).map(|_| format!("s{}", chance.below(30))).collect();
    let codes = (0..rows).map(|_| u32::try_from(chance.below(9)).expect("it is small")).collect();
    let valid = Some(Arc::new(Bitmap::from_fn(rows, |_| chance.below(7) != 0)));
    let strings = Dictionary::new(StringViewArray::from_iter_values(strings));
    let texts =
        Column { data: ColumnData::Dictionary { indices: Arc::new(codes), dictionary: strings }, validity: valid };
    let floats = (0..rows).map(|_| f64::from(u32::try_from(chance.below(64)).expect("it is small")) / 4.0).collect();
    Batch { rows, columns: vec![keys, texts, values, Column::new(ColumnData::Floats(Arc::new(floats)))] }
}

fn value(column: &Column, row: usize) -> String {
    if !column.is_valid(row) {
        return "NULL".to_owned();
    }
    match &column.data {
        ColumnData::Ints { values, .. } => values[row].to_string(),
        ColumnData::WideInts(values) => values[row].to_string(),
        ColumnData::Floats(values) => values[row].to_string(),
        ColumnData::Dictionary { indices: codes, dictionary: strings } => strings.get(codes[row]).to_owned(),
        ColumnData::Texts(texts) => texts.value(row).to_owned(),
        other => panic!("{other:?}"),
    }
}

/// Returns the number of times that each row occurs.
fn shown(rows: &GroupRows) -> BTreeMap<Vec<String>, usize> {
    let mut shown = BTreeMap::new();
    for batch in (0..).map_while(|number| rows.batch(number)) {
        for row in 0..batch.rows {
            *shown.entry(batch.columns.iter().map(|column| value(column, row)).collect()).or_default() += 1;
        }
    }
    shown
}

/// Merges compact groups that one worker made of consecutive parts of the rows, both into an empty aggregation and into
/// one with groups.
fn parts_make_the_whole(spec: &Arc<AggregateSpec>, seed: u64) {
    let mut chance = Random(seed | 1);
    let (mut whole, mut worker) = (Groups::new(spec), Groups::new(spec));
    let mut kept: Vec<CompactGroups> = Vec::new();
    for _ in 0..5 {
        for _ in 0..chance.below(4) {
            let rows = 1 + chance.below(300) as usize;
            let batch = batch(&mut chance, rows);
            whole.add(&batch).expect("there is memory");
            worker.add(&batch).expect("there is memory");
        }
        kept.push(worker.take().into_compact().expect("there is memory").expect("they are few"));
    }
    let last = batch(&mut chance, 50);
    whole.add(&last).expect("there is memory");
    let expected = shown(&whole.finish().expect("there is memory"));
    for begins_with_rows in [false, true] {
        // Compact groups can be merged several times.
        let mut all = Groups::new(spec);
        if begins_with_rows {
            all.add(&last).expect("there is memory");
        }
        kept.iter().for_each(|part| all.merge_compact(part, &NEVER_STOPPED).expect("there is memory"));
        if !begins_with_rows {
            all.add(&last).expect("there is memory");
        }
        assert_eq!(shown(&all.finish().expect("there is memory")), expected, "seed {seed}");
    }
}

#[test]
fn parts_are_what_the_whole_is() {
    for seed in 1..60 {
        parts_make_the_whole(&spec(&[0, 1], Vec::new()), seed * 7919);
        parts_make_the_whole(&spec(&[1], Vec::new()), seed * 104_729);
        parts_make_the_whole(&spec(&[], Vec::new()), seed * 15_485_863);
        let set = |absent_keys: [bool; 2], id| GroupingSet { absent_keys: absent_keys.to_vec(), id, is_hidden: false };
        let sets = vec![set([false, false], 0), set([false, true], 1), set([true, true], 3)];
        parts_make_the_whole(&spec(&[0, 1], sets), seed * 32_452_843);
    }
}

#[test]
fn strings_that_no_group_has_are_not_kept() {
    let spec = spec(&[1], Vec::new());
    let strings: Vec<String> = (0..20_000).map(|number| format!("a long string of many {number}")).collect();
    let strings = Dictionary::new(StringViewArray::from_iter_values(strings));
    let codes: Vec<u32> = (0..100).map(|row| row % 3).collect();
    let zeros = Column::new(ColumnData::Ints { values: Arc::new(vec![0; 100]), bounds: Bounds::from_value(0) });
    let texts = Column::new(ColumnData::Dictionary { indices: Arc::new(codes), dictionary: strings });
    let floats = Column::new(ColumnData::Floats(Arc::new(vec![0.0; 100])));
    let mut groups = Groups::new(&spec);
    groups.add(&Batch { rows: 100, columns: vec![zeros.clone(), texts, zeros, floats] }).expect("there is memory");
    assert!(1 << 20 < groups.memory_bytes());
    let compact = groups.into_compact().expect("there is memory").expect("they are few");
    assert_eq!(compact.len(), 3);
    assert!(compact.memory_bytes() < 4_096, "{}", compact.memory_bytes());
}

#[test]
fn groups_that_were_put_aside_are_not_kept() {
    let mut groups = Groups::with_first_check(&spec(&[0], Vec::new()), 1);
    let rows = 200;
    let keys = Column::new(ColumnData::Ints {
        values: Arc::new((0..rows).map(|row| row << 40).collect()),
        bounds: Bounds::I64,
    });
    let texts = Column::new(ColumnData::Texts(StringViewArray::from_iter_values((0..rows).map(|_| "t"))));
    let floats = Column::new(ColumnData::Floats(Arc::new((0..rows).map(|_| 0.5).collect())));
    groups.add(&Batch { rows: 200, columns: vec![keys.clone(), texts, keys, floats] }).expect("there is memory");
    assert!(groups.has_flushed());
    assert!(groups.into_compact().expect("there is memory").is_none());
}
