//! Individual cases on few rows.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arrow::array::{ArrayRef, AsArray, BooleanArray, StringViewArray};
use arrow::datatypes::{DataType, Int64Type};

use crate::expression::{ArrowFunction, Expression};
use crate::join::{
    BuildCollector, JoinHashTable, JoinKind, JoinSpec, OutputColumn, ProbeScratch, Residual, TextKeyFilter, hash_index,
};
use crate::{
    BATCH_ROWS, Batch, Bitmap, Bounds, Column, ColumnData, Dictionary, Error, NEVER_STOPPED, NONE, PhysicalType, Result,
};

fn ints(values: impl IntoIterator<Item = i64>) -> Batch {
    let values: Vec<i64> = values.into_iter().collect();
    Batch {
        rows: values.len(),
        columns: vec![Column::new(ColumnData::Ints { values: Arc::new(values), bounds: Bounds::I64 })],
    }
}

/// Returns a join on the first column of both sides.
fn one_key(kind: JoinKind, output: OutputColumn) -> JoinSpec {
    JoinSpec {
        kind,
        keys: vec![(0, 0)],
        nulls_are_equal: false,
        output: vec![output],
        residual: None,
        build_types: vec![PhysicalType::Ints],
    }
}

fn table(spec: JoinSpec, batch: Batch) -> JoinHashTable {
    let spec = Arc::new(spec);
    let mut build = BuildCollector::new(&spec);
    build.push(batch).expect("a column of the build side's form");
    JoinHashTable::finish(spec, vec![build], 1 << 20, &NEVER_STOPPED).expect("a table")
}

/// Returns a consumer that counts the output rows.
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
    let (ColumnData::Ints { values: given, .. }, ColumnData::Ints { values: own, .. }) =
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
        Err(Error::OutOfMemory("a test"))
    };
    let result = table.probe(&ints([1, 1]), &mut ProbeScratch::default(), &mut next);
    assert!(matches!(result, Err(Error::OutOfMemory(_))));
    assert_eq!(calls, 1);
}

#[test]
fn key_filter_tests_bounds_and_values() {
    let filter_of = |values: &[i64]| {
        let table = table(one_key(JoinKind::Inner, OutputColumn::Probe(0)), ints(values.iter().copied()));
        table.key_filter(0).expect("a filter")
    };
    let filter = filter_of(&[5, 7, 11]);
    assert_eq!(filter.bounds(), (5, 11));
    assert!(!filter.is_exact_range());
    let kept = filter.matching_rows(&[4, 5, 6, 7, 11, 12, i64::MIN, i64::MAX], None);
    assert_eq!(kept.ones().collect::<Vec<_>>(), [1, 3, 4]);
    let kept = filter.matching_rows(&[5, 5, 6], Some(&Bitmap::from_fn(3, |row| row == 0)));
    assert_eq!(kept.ones().collect::<Vec<_>>(), [0]);

    assert!(filter_of(&[3, 4, 5, 6, 7, 8, 9]).is_exact_range());
    let filter = filter_of(&[i64::MIN, i64::MAX]);
    assert_eq!(filter.bounds(), (i64::MIN, i64::MAX));
    assert_eq!(filter.matching_rows(&[i64::MIN, i64::MAX], None).count_ones(), 2);
    assert!(
        filter.matching_rows(&(0..1000).collect::<Vec<_>>(), None).count_ones() < 100,
        "most absent values are rejected"
    );
    assert!(filter.is_worthwhile(8) && !filter.is_worthwhile(7));
    let filter = filter_of(&[]);
    assert!(filter.bounds().0 > filter.bounds().1 && !filter.is_exact_range());
    assert_eq!(filter.matching_rows(&[0, i64::MIN, i64::MAX], None).count_ones(), 0);
}

#[test]
fn joins_that_keep_probe_rows_have_no_filters() {
    for kind in [JoinKind::Right, JoinKind::Full, JoinKind::RightAnti, JoinKind::RightMark] {
        assert!(table(one_key(kind, OutputColumn::Probe(0)), ints([5, 7, 11])).key_filter(0).is_none());
    }
}

#[test]
fn text_filter_rejects_absent_strings() {
    let strings = Dictionary::new(StringViewArray::from_iter_values(["a", "b", "c"]));
    let codes = |codes: Vec<u32>, valid: Option<Vec<bool>>| {
        let validity = valid.map(|valid| Arc::new(Bitmap::from_fn(codes.len(), |row| valid[row])));
        Column { data: ColumnData::Dictionary { indices: Arc::new(codes), dictionary: Arc::clone(&strings) }, validity }
    };
    let table_of = |kind| {
        let spec = JoinSpec { build_types: vec![PhysicalType::Texts], ..one_key(kind, OutputColumn::Build(0)) };
        Arc::new(table(spec, Batch { rows: 2, columns: vec![codes(vec![2, 0], None)] }))
    };
    let probe = codes(vec![1, 0, 2, 1, 0], Some(vec![true, true, true, true, false]));
    for (kind, expected) in [(JoinKind::Inner, vec![1, 2]), (JoinKind::LeftNotIn, vec![1, 2, 4])] {
        let mut filter = TextKeyFilter::try_new(&table_of(kind), 0).expect("a filter");
        assert_eq!(filter.matching_rows(&probe).expect("strings").ones().collect::<Vec<_>>(), expected, "{kind:?}");
    }
    assert!(
        TextKeyFilter::try_new(&Arc::new(table(one_key(JoinKind::Inner, OutputColumn::Probe(0)), ints([1]))), 0)
            .is_none()
    );
}

/// The filter of a NOT IN join passes NULLs, and there is no filter if a build key is NULL, because then any probe
/// row matters.
#[test]
fn filters_of_not_in_let_nulls_pass() {
    let keys = |nulls: &[usize]| {
        let mut batch = ints([5, 7, 11]);
        if !nulls.is_empty() {
            batch.columns[0].validity = Some(Arc::new(Bitmap::from_fn(3, |row| !nulls.contains(&row))));
        }
        batch
    };
    let filter = table(one_key(JoinKind::LeftNotIn, OutputColumn::Build(0)), keys(&[])).key_filter(0).expect("one");
    let kept = filter.matching_rows(&[5, 6, 6], Some(&Bitmap::from_fn(3, |row| row != 2)));
    assert_eq!((filter.passes_nulls(), kept.ones().collect::<Vec<_>>()), (true, vec![0, 2]));
    assert!(table(one_key(JoinKind::LeftNotIn, OutputColumn::Build(0)), keys(&[1])).key_filter(0).is_none());
}

/// A partition of the build side may have no probe rows of its own while other partitions have some.
#[test]
fn not_in_drops_null_keys_if_other_partitions_have_rows() {
    for (is_elsewhere, expected) in [(false, 2), (true, 1)] {
        let mut batch = ints([5, 7]);
        batch.columns[0].validity = Some(Arc::new(Bitmap::from_fn(2, |row| row == 0)));
        let table = table(one_key(JoinKind::LeftNotIn, OutputColumn::Build(0)), batch);
        if is_elsewhere {
            table.record_probe_rows_elsewhere();
        }
        let mut rows = 0;
        table.output_build_rows(0, 1, &[], &mut count(&mut rows)).expect("build rows after probing");
        assert_eq!(rows, expected);
    }
}

#[test]
fn other_forms_are_errors() {
    let spec = one_key(JoinKind::Inner, OutputColumn::Probe(0));
    let floats = || Batch { rows: 1, columns: vec![Column::new(ColumnData::Floats(Arc::new(vec![1.0])))] };
    assert!(matches!(BuildCollector::new(&Arc::new(spec.clone())).push(floats()), Err(Error::Internal(_))));
    let table = table(spec, ints([1]));
    let mut scratch = ProbeScratch::default();
    let none = Batch { rows: 1, columns: Vec::new() };
    for batch in [floats(), none] {
        assert!(matches!(table.probe(&batch, &mut scratch, &mut |_| Ok(())), Err(Error::Internal(_))));
    }
    for output in [OutputColumn::Mark, OutputColumn::Build(1)] {
        let spec = one_key(JoinKind::Inner, output);
        assert!(matches!(
            JoinHashTable::finish(Arc::new(spec), Vec::new(), 1 << 20, &NEVER_STOPPED),
            Err(Error::Internal(_))
        ));
    }
    let spec = one_key(JoinKind::LeftSemi, OutputColumn::Probe(0));
    assert!(matches!(
        JoinHashTable::finish(Arc::new(spec), Vec::new(), 1 << 20, &NEVER_STOPPED),
        Err(Error::Internal(_))
    ));
}

/// Cached dictionary lookups belong to one table, even if the same dictionary is used with another.
#[test]
fn a_scratch_serves_one_table_after_the_other() {
    let spec =
        JoinSpec { build_types: vec![PhysicalType::Texts], ..one_key(JoinKind::RightSemi, OutputColumn::Probe(0)) };
    let strings = Dictionary::new(StringViewArray::from_iter_values(["a", "b"]));
    let codes = |codes: Vec<u32>| {
        let data = ColumnData::Dictionary { indices: Arc::new(codes), dictionary: Arc::clone(&strings) };
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

/// Arrow function that counts its calls.
#[derive(Debug, Default)]
struct IsOdd(AtomicUsize);

impl ArrowFunction for IsOdd {
    fn id(&self) -> u64 {
        11
    }

    fn argument_types(&self) -> &[DataType] {
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
    let condition = Expression::ArrowCall { function, arguments: vec![Expression::Column(0)] };
    let columns = vec![OutputColumn::Probe(0)];
    let residual = Residual { columns, condition };
    let spec = JoinSpec { residual: Some(residual), ..one_key(JoinKind::Inner, OutputColumn::Probe(0)) };
    let table = table(spec, ints(0..10));
    let values = |values: Range<i64>| {
        let bounds = Bounds { min: 0, max: 9 };
        Batch { rows: 5, columns: vec![Column::new(ColumnData::Ints { values: Arc::new(values.collect()), bounds })] }
    };
    let (mut scratch, mut rows) = (ProbeScratch::default(), 0);
    for probe in [0..5, 5..10] {
        table.probe(&values(probe), &mut scratch, &mut count(&mut rows)).expect("probing");
    }
    assert_eq!((rows, called.0.load(Ordering::Relaxed)), (5, 1));
}

/// Workers that probe concurrently mark rows of the same table.
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
        table.output_build_rows(part, 3, &[], &mut count(&mut rows)).expect("build rows after probing");
    }
    assert_eq!(rows, 2 * (10_000 - 9 * 900));
}

#[test]
fn hash_index_grows() {
    let words: Vec<u64> = (0..3000).map(|word| word % 2000 * 1_000_003).collect();
    let slots =
        hash_index::HashIndex::with_slots(&words, words.len(), &NEVER_STOPPED, 16).expect("the stop flag is not set");
    assert_eq!(slots.group_count(), 2000);
    let (mut found, mut open) = (vec![0; 4000], Vec::new());
    slots.find_groups(|row| row as u64 * 1_000_003, &mut found, &mut open);
    let is_right = |(row, group): (u32, &u32)| *group == if row < 2000 { row } else { NONE };
    assert!((0..).zip(&found).all(is_right));
}

/// A cross join with a residual condition that no pair fulfils.
#[test]
fn cancelled_probe_stops() {
    let column = |position| Box::new(Expression::Column(position));
    let condition = Expression::Compare {
        comparison: crate::expression::Comparison::Less,
        left: column(0),
        right: column(1),
        factors: (1, 1),
    };
    let residual = Residual { columns: vec![OutputColumn::Build(0), OutputColumn::Probe(0)], condition };
    for kind in [JoinKind::Inner, JoinKind::RightAnti] {
        let spec =
            JoinSpec { keys: Vec::new(), residual: Some(residual.clone()), ..one_key(kind, OutputColumn::Probe(0)) };
        let table = table(spec, ints(0..10_000));
        let stop = Arc::new(AtomicBool::new(false));
        let mut scratch = ProbeScratch::new(&stop, None);
        let mut rows = 0;
        table.probe(&ints([-1, 0]), &mut scratch, &mut count(&mut rows)).expect("the stop flag is not set");
        assert_eq!(rows, if kind == JoinKind::Inner { 0 } else { 2 });
        stop.store(true, Ordering::Relaxed);
        let stopped = table.probe(&ints([-1, 0]), &mut scratch, &mut count(&mut rows));
        assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");
    }
}

#[test]
fn cancelled_build_stops() {
    let far: Vec<i64> = (0..1000).map(|key| key * 1_000_003).collect();
    for keys in [vec![1, 2, 3], far, vec![i64::MIN, i64::MAX]] {
        let spec = Arc::new(one_key(JoinKind::Inner, OutputColumn::Probe(0)));
        let mut build = BuildCollector::new(&spec);
        build.push(ints(keys)).expect("a column of the build side's form");
        let stopped = JoinHashTable::finish(spec, vec![build], 1 << 20, &AtomicBool::new(true));
        assert!(matches!(stopped, Err(Error::Stopped)));
    }
}
