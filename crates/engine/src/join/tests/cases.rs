//! Joins of few rows.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{ArrayRef, AsArray, BooleanArray, StringViewArray};
use arrow::datatypes::{DataType, Int64Type};

use crate::expression::{Expression, Foreign};
use crate::join::{Build, JoinKind, JoinSpec, JoinTable, OutputColumn, ProbeScratch, Residual, slots};
use crate::{BATCH_ROWS, Batch, Bits, Bounds, Column, Data, Error, Form, NONE, Result, Strings};

fn ints(values: impl IntoIterator<Item = i64>) -> Batch {
    let values: Vec<i64> = values.into_iter().collect();
    Batch {
        rows: values.len(),
        columns: vec![Column::new(Data::Ints { values: Arc::new(values), bounds: Bounds::I64 })],
    }
}

/// A join of one column with another.
fn one_key(kind: JoinKind, output: OutputColumn) -> JoinSpec {
    JoinSpec {
        kind,
        keys: vec![(0, 0)],
        nulls_are_equal: false,
        output: vec![output],
        residual: None,
        build_forms: vec![Form::Ints],
    }
}

fn table(spec: JoinSpec, batch: Batch) -> JoinTable {
    let spec = Arc::new(spec);
    let mut build = Build::new(&spec);
    build.push(batch).expect("a column of the build side's form");
    JoinTable::finish(spec, vec![build], 1 << 20).expect("a table")
}

/// Counts the rows that are given.
fn count(rows: &mut usize) -> impl FnMut(Batch) -> Result<()> {
    |batch| {
        *rows += batch.rows;
        Ok(())
    }
}

#[test]
fn columns_of_the_probe_side_stay_where_all_rows_match() {
    let output = vec![OutputColumn::Probe(0), OutputColumn::Build(0)];
    let table = table(JoinSpec { output, ..one_key(JoinKind::Inner, OutputColumn::Probe(0)) }, ints(0..100));
    let probe = ints((0..50).rev());
    let mut batches = Vec::new();
    let mut next = |batch| {
        batches.push(batch);
        Ok(())
    };
    table.probe(&probe, &mut ProbeScratch::default(), &mut next).expect("probing");
    let [joined] = &*batches else { panic!("one batch") };
    let (Data::Ints { values: given, .. }, Data::Ints { values: own, .. }) =
        (&joined.columns[0].data, &probe.columns[0].data)
    else {
        panic!("integers");
    };
    assert!(Arc::ptr_eq(given, own));
}

#[test]
fn an_error_of_the_receiver_stops_probing() {
    let table = table(one_key(JoinKind::Inner, OutputColumn::Probe(0)), ints(std::iter::repeat_n(1, 3 * BATCH_ROWS)));
    let mut calls = 0;
    let mut next = |_| {
        calls += 1;
        Err(Error::Memory("a test"))
    };
    let result = table.probe(&ints([1, 1]), &mut ProbeScratch::default(), &mut next);
    assert!(matches!(result, Err(Error::Memory(_))));
    assert_eq!(calls, 1);
}

#[test]
fn filters_know_bounds_and_values() {
    let filter_of = |values: &[i64]| {
        let table = table(one_key(JoinKind::Inner, OutputColumn::Probe(0)), ints(values.iter().copied()));
        table.key_filter(0).expect("a filter")
    };
    let filter = filter_of(&[5, 7, 11]);
    assert_eq!(filter.bounds(), (5, 11));
    assert!(!filter.is_exact_range());
    let kept = filter.keep(&[4, 5, 6, 7, 11, 12, i64::MIN, i64::MAX], None);
    assert_eq!(kept.ones().collect::<Vec<_>>(), [1, 3, 4]);
    let kept = filter.keep(&[5, 5, 6], Some(&Bits::of(3, |row| row == 0)));
    assert_eq!(kept.ones().collect::<Vec<_>>(), [0]);

    assert!(filter_of(&[3, 4, 5, 6, 7, 8, 9]).is_exact_range());
    let filter = filter_of(&[i64::MIN, i64::MAX]);
    assert_eq!(filter.bounds(), (i64::MIN, i64::MAX));
    assert_eq!(filter.keep(&[0, 1], None).count(), 2);
    let filter = filter_of(&[]);
    assert!(filter.bounds().0 > filter.bounds().1 && !filter.is_exact_range());
    assert_eq!(filter.keep(&[0, i64::MIN, i64::MAX], None).count(), 0);
}

#[test]
fn joins_that_keep_probe_rows_have_no_filters() {
    for kind in [JoinKind::Right, JoinKind::Full, JoinKind::RightAnti, JoinKind::RightMark] {
        assert!(table(one_key(kind, OutputColumn::Probe(0)), ints([5, 7, 11])).key_filter(0).is_none());
    }
}

#[test]
fn other_forms_are_errors() {
    let spec = one_key(JoinKind::Inner, OutputColumn::Probe(0));
    let floats = || Batch { rows: 1, columns: vec![Column::new(Data::Floats(Arc::new(vec![1.0])))] };
    assert!(matches!(Build::new(&Arc::new(spec.clone())).push(floats()), Err(Error::Form(_))));
    let table = table(spec, ints([1]));
    let mut scratch = ProbeScratch::default();
    let none = Batch { rows: 1, columns: Vec::new() };
    for batch in [floats(), none] {
        assert!(matches!(table.probe(&batch, &mut scratch, &mut |_| Ok(())), Err(Error::Form(_))));
    }
    for output in [OutputColumn::Mark, OutputColumn::Build(1)] {
        let spec = one_key(JoinKind::Inner, output);
        assert!(matches!(JoinTable::finish(Arc::new(spec), Vec::new(), 1 << 20), Err(Error::Form(_))));
    }
    let spec = one_key(JoinKind::LeftSemi, OutputColumn::Probe(0));
    assert!(matches!(JoinTable::finish(Arc::new(spec), Vec::new(), 1 << 20), Err(Error::Form(_))));
}

/// A worker's memory of codes is of one table, whichever strings come again.
#[test]
fn a_scratch_serves_one_table_after_the_other() {
    let spec = JoinSpec { build_forms: vec![Form::Texts], ..one_key(JoinKind::RightSemi, OutputColumn::Probe(0)) };
    let strings = Strings::new(StringViewArray::from_iter_values(["a", "b"]));
    let codes = |codes: Vec<u32>| {
        let data = Data::Codes { codes: Arc::new(codes), strings: Arc::clone(&strings) };
        Batch { rows: 1, columns: vec![Column::new(data)] }
    };
    let mut scratch = ProbeScratch::default();
    for (build, probe, found) in [(0, 0, 1), (1, 0, 0), (1, 1, 1), (0, 1, 0)] {
        let mut rows = 0;
        let table = table(spec.clone(), codes(vec![build]));
        table.probe(&codes(vec![probe]), &mut scratch, &mut count(&mut rows)).expect("probing");
        assert_eq!(rows, found);
    }
}

/// Tells how often it is called.
#[derive(Debug, Default)]
struct IsOdd(AtomicUsize);

impl Foreign for IsOdd {
    fn id(&self) -> u64 {
        11
    }

    fn takes(&self) -> &[DataType] {
        &[DataType::Int64]
    }

    fn call(&self, arguments: &[ArrayRef], _: usize) -> Result<ArrayRef> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let values = arguments[0].as_primitive::<Int64Type>().iter();
        Ok(Arc::new(values.map(|value| value.map(|value| value % 2 == 1)).collect::<BooleanArray>()))
    }

    fn is_immutable(&self) -> bool {
        true
    }

    fn sql(&self) -> String {
        "is odd".to_owned()
    }
}

#[test]
fn a_worker_remembers_its_condition_from_batch_to_batch() {
    let function = Arc::new(IsOdd::default());
    let called = Arc::clone(&function);
    let condition = Expression::Foreign { function, arguments: vec![Expression::Column(0)] };
    let columns = vec![OutputColumn::Probe(0)];
    let residual = Residual { columns, condition };
    let spec = JoinSpec { residual: Some(residual), ..one_key(JoinKind::Inner, OutputColumn::Probe(0)) };
    let table = table(spec, ints(0..10));
    let values = |values: Range<i64>| {
        let bounds = Bounds { min: 0, max: 9 };
        Batch { rows: 5, columns: vec![Column::new(Data::Ints { values: Arc::new(values.collect()), bounds })] }
    };
    let (mut scratch, mut rows) = (ProbeScratch::default(), 0);
    for probe in [0..5, 5..10] {
        table.probe(&values(probe), &mut scratch, &mut count(&mut rows)).expect("probing");
    }
    assert_eq!((rows, called.0.load(Ordering::Relaxed)), (5, 1));
}

/// Workers that probe at the same time mark the rows of one table.
#[test]
fn workers_mark_the_same_rows() {
    let table = table(one_key(JoinKind::LeftAnti, OutputColumn::Build(0)), ints((0..10_000).chain(0..10_000)));
    std::thread::scope(|scope| {
        for worker in 0..3 {
            let table = &table;
            scope.spawn(move || {
                let mut scratch = ProbeScratch::default();
                for start in (0..9_000).step_by(1000) {
                    let batch = ints((start + worker * 100)..(start + 900));
                    table.probe(&batch, &mut scratch, &mut |_| Ok(())).expect("probing");
                }
            });
        }
    });
    let mut rows = 0;
    for part in 0..3 {
        table.rest(part, 3, &[], &mut count(&mut rows)).expect("the rest");
    }
    assert_eq!(rows, 2 * (10_000 - 9 * 900));
}

#[test]
fn slots_grow() {
    let words: Vec<u64> = (0..3000).map(|word| word % 2000 * 1_000_003).collect();
    let slots = slots::Slots::with_slots(&words, words.len(), 16);
    assert_eq!(slots.groups(), 2000);
    let (mut found, mut open) = (vec![0; 4000], Vec::new());
    slots.find(|row| row as u64 * 1_000_003, &mut found, &mut open);
    let is_right = |(row, group): (u32, &u32)| *group == if row < 2000 { row } else { NONE };
    assert!((0..).zip(&found).all(is_right));
}
