use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow::array::StringViewArray;
use proptest::prelude::*;

use super::*;
use crate::spill::{decode, encode};
use crate::{BATCH_ROWS, Batch, Bitmap, Bounds, Column, ColumnData, Dictionary, Selection};

/// Value of the reference implementation.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Int(i64),
    Wide(i128),
    Float(f64),
    Bool(bool),
    Text(String),
}

impl Value {
    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Int(x), Self::Int(y)) => x.cmp(y),
            (Self::Wide(x), Self::Wide(y)) => x.cmp(y),
            (Self::Bool(x), Self::Bool(y)) => x.cmp(y),
            (Self::Text(x), Self::Text(y)) => x.as_bytes().cmp(y.as_bytes()),
            (Self::Float(x), Self::Float(y)) => match (x.is_nan(), y.is_nan()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => x.partial_cmp(y).unwrap(),
            },
            _ => panic!("values of two forms"),
        }
    }
}

/// Type and representation of a column.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Ints,
    LargeInts,
    Wide,
    Floats,
    Bools,
    Codes,
    Texts,
    LongTexts,
}

impl Kind {
    fn form(self) -> PhysicalType {
        match self {
            Self::Ints | Self::LargeInts => PhysicalType::Ints,
            Self::Wide => PhysicalType::WideInts,
            Self::Floats => PhysicalType::Floats,
            Self::Bools => PhysicalType::Bools,
            Self::Codes | Self::Texts | Self::LongTexts => PhysicalType::Texts,
        }
    }

    /// Derives a value from a number.
    fn value(self, number: u64) -> Value {
        let small = (number % 17).cast_signed();
        match self {
            Self::Ints => Value::Int(small - 8),
            Self::LargeInts => Value::Int([i64::MIN, i64::MAX, 0, -1, small, small << 40][(number % 6) as usize]),
            Self::Wide => {
                let far = i128::from(small) << 90;
                Value::Wide([i128::MIN, i128::MAX, far, -far, small.into(), far + 1][(number % 6) as usize])
            }
            Self::Floats => {
                let all = [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.5, -1e300, 1e-300];
                Value::Float(all[(number % 9) as usize])
            }
            Self::Bools => Value::Bool(number.is_multiple_of(2)),
            Self::Codes | Self::Texts => {
                Value::Text(["", "a", "a\0", "ab", "é", "zz"][(number % 6) as usize].to_owned())
            }
            Self::LongTexts => Value::Text(format!("all begin with this {}", "x".repeat((number % 30) as usize))),
        }
    }

    fn column(self, values: &[Option<Value>]) -> Column {
        let is_valid = |row: usize| values[row].is_some();
        let validity = (0..values.len()).any(|row| !is_valid(row));
        let validity = validity.then(|| Arc::new(Bitmap::from_fn(values.len(), is_valid)));
        let texts =
            || values.iter().map(|value| if let Some(Value::Text(text)) = value { text.as_str() } else { "null" });
        let data = match self {
            Self::Ints | Self::LargeInts => {
                let values = values.iter().map(|value| if let Some(Value::Int(value)) = value { *value } else { 0 });
                ColumnData::Ints { values: Arc::new(values.collect()), bounds: Bounds::I64 }
            }
            Self::Wide => {
                let values = values.iter().map(|value| if let Some(Value::Wide(value)) = value { *value } else { 0 });
                ColumnData::WideInts(Arc::new(values.collect()))
            }
            Self::Floats => {
                let values =
                    values.iter().map(|value| if let Some(Value::Float(value)) = value { *value } else { 0.0 });
                ColumnData::Floats(Arc::new(values.collect()))
            }
            Self::Bools => {
                ColumnData::Bools(Arc::new(Bitmap::from_fn(values.len(), |row| values[row] == Some(Value::Bool(true)))))
            }
            Self::Codes => {
                // Each row has a dictionary entry of its own, so that equal strings have several codes.
                let strings = Dictionary::new(StringViewArray::from_iter_values(texts().rev()));
                let codes = (0..u32::try_from(values.len()).unwrap()).rev().collect();
                ColumnData::Dictionary { indices: Arc::new(codes), dictionary: strings }
            }
            Self::Texts | Self::LongTexts => ColumnData::Texts(StringViewArray::from_iter_values(texts())),
        };
        Column { data, validity }
    }
}

/// Test case: rows, and sort keys whose last one is the row number, so that no two rows are equal.
#[derive(Debug)]
struct Case {
    kinds: Vec<Kind>,
    keys: Vec<SortKey>,
    rows: Vec<Vec<Option<Value>>>,
}

impl Case {
    fn order(&self, x: usize, y: usize) -> Ordering {
        let by = |key: &SortKey| match (&self.rows[x][key.column], &self.rows[y][key.column]) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => {
                if key.nulls_first {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
            (Some(_), None) => {
                if key.nulls_first {
                    Ordering::Greater
                } else {
                    Ordering::Less
                }
            }
            (Some(x), Some(y)) => {
                if key.is_descending {
                    y.order(x)
                } else {
                    x.order(y)
                }
            }
        };
        self.keys.iter().map(by).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// Returns the row numbers in sorted order.
    fn expected(&self) -> Vec<i64> {
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by(|x, y| self.order(*x, *y));
        order.into_iter().map(|row| i64::try_from(row).unwrap()).collect()
    }

    fn spec(&self, fetch: Option<usize>) -> Arc<SortSpec> {
        let forms = self.kinds.iter().map(|kind| kind.form()).chain([PhysicalType::Ints]).collect();
        Arc::new(SortSpec { keys: self.keys.clone(), fetch, column_types: forms, windows: None })
    }

    /// Creates a batch of some rows.
    fn batch(&self, rows: &[usize]) -> Batch {
        let kinds = self.kinds.iter().chain([&Kind::Ints]).enumerate();
        let columns = kinds.map(|(column, kind)| {
            kind.column(&rows.iter().map(|row| self.rows[*row][column].clone()).collect::<Vec<_>>())
        });
        Batch { rows: rows.len(), columns: columns.collect() }
    }

    fn batches(&self, batch_rows: usize) -> Vec<Batch> {
        (0..self.rows.len()).collect::<Vec<_>>().chunks(batch_rows).map(|rows| self.batch(rows)).collect()
    }

    /// Returns the row numbers of batches, in their order.
    fn numbers(&self, batches: impl Iterator<Item = Batch>) -> Vec<i64> {
        let mut numbers = Vec::new();
        for batch in batches {
            let ColumnData::Ints { values, .. } = &batch.columns[self.kinds.len()].data else {
                panic!("the rows' numbers")
            };
            assert_eq!(batch.rows, values.len());
            numbers.extend_from_slice(values);
        }
        numbers
    }

    fn sorted(&self, fetch: Option<usize>, workers: usize, batch_rows: usize) -> Vec<i64> {
        let spec = self.spec(fetch);
        let mut parts: Vec<SortCollector> = (0..workers).map(|_| SortCollector::new(&spec)).collect();
        for (number, batch) in self.batches(batch_rows).into_iter().enumerate() {
            parts[number % workers].push(batch).unwrap();
        }
        let sorted = Sorter::new(&spec, parts).unwrap().sort(&AtomicBool::default()).unwrap();
        let numbers = self.numbers((0..).map_while(|number| sorted.batch(number).unwrap()));
        assert_eq!(sorted.rows(), numbers.len());
        numbers
    }

    /// Returns the rows as sorted runs of `run_batches` batches each, in blocks of `block_rows` rows.
    fn runs(&self, spec: &Arc<SortSpec>, batch_rows: usize, run_batches: usize, block_rows: usize) -> Vec<Vec<Batch>> {
        let mut runs = Vec::new();
        let mut sorting = SortCollector::new(spec);
        for batches in self.batches(batch_rows).chunks(run_batches) {
            batches.iter().for_each(|batch| sorting.push(batch.clone()).unwrap());
            let mut give = |part: SortCollector| {
                let sorted = Sorter::new(spec, vec![part])?.sort(&AtomicBool::default())?;
                let starts = (0..sorted.rows()).step_by(block_rows);
                let block = |start| sorted.batch_between(start, sorted.rows().min(start + block_rows)).unwrap();
                runs.push(starts.map(|start| decode(&encode(&[block(start)]).unwrap()).unwrap()).collect());
                Ok(())
            };
            sorting.drain(&mut give).unwrap();
            assert_eq!((sorting.rows(), sorting.memory_bytes()), (0, 0), "all is given away");
        }
        runs
    }
}

/// Merges runs.
fn merged(spec: &Arc<SortSpec>, runs: Vec<Vec<Batch>>) -> Vec<Batch> {
    let mut merge = RunMerger::new(spec, runs.len());
    let mut runs: Vec<_> = runs.into_iter().map(Vec::into_iter).collect();
    let mut batches = Vec::new();
    loop {
        match merge.next().unwrap() {
            MergeStep::Rows(batch) => batches.push(batch),
            MergeStep::NeedsBlock(run) => merge.add_block(run, runs[run].next()).unwrap(),
            MergeStep::End => return batches,
        }
    }
}

fn case(rows: std::ops::Range<usize>) -> impl Strategy<Value = Case> {
    let kind = prop::sample::select(vec![
        Kind::Ints,
        Kind::LargeInts,
        Kind::Wide,
        Kind::Floats,
        Kind::Bools,
        Kind::Codes,
        Kind::Texts,
        Kind::LongTexts,
    ]);
    let columns = prop::collection::vec((kind, any::<bool>(), any::<bool>(), 0..4_u64), 1..4);
    (columns, rows, any::<u64>()).prop_map(|(columns, rows, seed)| {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        let value = |kind: Kind, nulls: u64, number: u64| {
            (nulls == 0 || !number.is_multiple_of(nulls + 1)).then(|| kind.value(number))
        };
        let rows = (0..rows).map(|row| {
            let values = columns.iter().map(|(kind, _, _, nulls)| value(*kind, *nulls, next()));
            values.chain([Some(Value::Int(i64::try_from(row).unwrap()))]).collect()
        });
        let rows = rows.collect();
        let keys = columns.iter().enumerate().map(|(column, (_, is_descending, nulls_first, _))| SortKey {
            column,
            is_descending: *is_descending,
            nulls_first: *nulls_first,
        });
        let last = SortKey { column: columns.len(), is_descending: false, nulls_first: false };
        Case { keys: keys.chain([last]).collect(), kinds: columns.iter().map(|column| column.0).collect(), rows }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn rows_come_in_the_order_of_their_keys(case in case(0..300), workers in 1..4_usize, batch_rows in 1..90_usize) {
        prop_assert_eq!(case.sorted(None, workers, batch_rows), case.expected());
    }

    #[test]
    fn the_first_rows_are_those_of_all(case in case(0..300), workers in 1..4_usize, fetch in 0..40_usize) {
        let mut expected = case.expected();
        expected.truncate(fetch);
        prop_assert_eq!(case.sorted(Some(fetch), workers, 50), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn runs_that_are_merged_are_as_sorted_together(
        case in case(0..300),
        (batch_rows, run_batches, block_rows) in (1..60_usize, 1..5_usize, 1..50_usize),
        fetch in prop::option::of(0..90_usize),
    ) {
        let spec = case.spec(fetch);
        let runs = case.runs(&spec, batch_rows, run_batches, block_rows);
        let mut expected = case.expected();
        expected.truncate(fetch.unwrap_or(usize::MAX));
        prop_assert_eq!(case.numbers(merged(&spec, runs).into_iter()), expected);
    }

    #[test]
    fn rows_of_equal_keys_come_in_the_order_of_their_runs(mut case in case(0..300), passes in 0..3_usize) {
        // Removes the last key, so that rows may be equal.
        case.keys.pop();
        let spec = case.spec(None);
        let mut runs = case.runs(&spec, 20, 1, 7);
        for _ in 0..passes {
            runs = runs.chunks(3).map(|group| merged(&spec, group.to_vec())).collect();
        }
        prop_assert_eq!(case.numbers(merged(&spec, runs).into_iter()), case.expected());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    #[test]
    fn many_rows_are_sorted_by_buckets_and_narrowed_as_they_come(case in case(70_000..150_000)) {
        let mut expected = case.expected();
        prop_assert_eq!(&case.sorted(None, 3, 4_096), &expected);
        let spec = case.spec(None);
        let given = merged(&spec, case.runs(&spec, 4_096, 3, 5_000));
        prop_assert!(given.iter().all(|batch| 0 < batch.rows && batch.rows <= BATCH_ROWS));
        prop_assert_eq!(&case.numbers(given.into_iter()), &expected);
        expected.truncate(1_500);
        let spec = case.spec(Some(1_500));
        let runs = case.runs(&spec, 4_096, 3, 5_000);
        prop_assert!(runs.iter().flatten().map(|block| block.rows).sum::<usize>() < 60_000, "few are kept of each");
        prop_assert_eq!(&case.numbers(merged(&spec, runs).into_iter()), &expected);
        prop_assert_eq!(&case.sorted(Some(1_500), 2, 4_096), &expected);
        expected.truncate(7);
        prop_assert_eq!(&case.sorted(Some(7), 2, 4_096), &expected);
    }
}

#[test]
fn rows_without_keys_stay_as_they_come() {
    let values = Column::new(ColumnData::Ints { values: Arc::new(vec![3, 1, 2]), bounds: Bounds::I64 });
    let spec =
        Arc::new(SortSpec { keys: Vec::new(), fetch: None, column_types: vec![PhysicalType::Ints], windows: None });
    let mut part = SortCollector::new(&spec);
    let batch = Batch { rows: 3, columns: vec![values] };
    part.push(batch.clone()).unwrap();
    part.push(batch.select(&Selection::Rows(vec![1])).unwrap()).unwrap();
    let sorter = Sorter::new(&spec, vec![part]).unwrap();
    assert!(sorter.keeps_arrival_order());
    let ColumnData::Ints { values, .. } = &sorter.into_sorted(&[]).to_batch().unwrap().columns[0].data else {
        panic!("integers")
    };
    assert_eq!(**values, [3, 1, 2, 1]);
}

#[test]
fn runs_without_keys_or_columns_follow_each_other() {
    let spec = |forms| Arc::new(SortSpec { keys: Vec::new(), fetch: None, column_types: forms, windows: None });
    let ints = |values: Vec<i64>| Column::new(ColumnData::Ints { values: Arc::new(values), bounds: Bounds::I64 });
    let runs = [vec![3, 1], vec![], vec![2, 9, 0]];
    let runs = runs.map(|values| vec![Batch { rows: values.len(), columns: vec![ints(values)] }]);
    let mut numbers = Vec::new();
    for batch in merged(&spec(vec![PhysicalType::Ints]), runs.to_vec()) {
        let ColumnData::Ints { values, .. } = &batch.columns[0].data else { panic!("integers") };
        numbers.extend_from_slice(values);
    }
    assert_eq!(numbers, [3, 1, 2, 9, 0]);

    let mut sorting = SortCollector::new(&spec(Vec::new()));
    sorting.push(Batch { rows: 7, columns: Vec::new() }).unwrap();
    let mut parts = Vec::new();
    sorting
        .drain(&mut |part| {
            parts.push(part.rows());
            Ok(())
        })
        .unwrap();
    assert_eq!(parts, [7]);
    let blocks = [4, 0, 5].map(|rows| Batch { rows, columns: Vec::new() });
    let rows: usize = merged(&spec(Vec::new()), vec![blocks.to_vec()]).iter().map(|batch| batch.rows).sum();
    assert_eq!(rows, 9);
    assert!(merged(&spec(Vec::new()), Vec::new()).is_empty(), "no runs have no rows");
}

#[test]
fn blocks_that_do_not_belong_to_a_merge_are_refused() {
    let spec =
        Arc::new(SortSpec { keys: Vec::new(), fetch: None, column_types: vec![PhysicalType::Ints], windows: None });
    let mut merge = RunMerger::new(&spec, 2);
    let MergeStep::NeedsBlock(wanted) = merge.next().unwrap() else { panic!("nothing is there") };
    let bools = Column::new(ColumnData::Bools(Arc::new(Bitmap::filled(3, true))));
    let other = merge.add_block(wanted, Some(Batch { rows: 3, columns: vec![bools] }));
    assert!(matches!(other, Err(crate::Error::Internal(_))), "{other:?}");
    let other = merge.add_block(1 - wanted, None);
    assert!(matches!(other, Err(crate::Error::Internal(_))), "{other:?}");
}

#[test]
fn a_sort_that_nobody_waits_for_stops() {
    let keys = vec![SortKey { column: 0, is_descending: false, nulls_first: false }];
    let spec = Arc::new(SortSpec { keys, fetch: None, column_types: vec![PhysicalType::Ints], windows: None });
    let mut part = SortCollector::new(&spec);
    let values = Column::new(ColumnData::Ints { values: Arc::new(vec![3, 1, 2]), bounds: Bounds::I64 });
    part.push(Batch { rows: 3, columns: vec![values] }).unwrap();
    let stopped = Sorter::new(&spec, vec![part]).unwrap().sort(&AtomicBool::new(true));
    assert!(matches!(stopped, Err(crate::Error::Stopped)), "{stopped:?}");
}
