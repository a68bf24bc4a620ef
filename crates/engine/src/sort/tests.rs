use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::StringViewArray;
use proptest::prelude::*;

use super::*;
use crate::{Batch, Bits, Bounds, Column, Data, Selection, Strings};

/// A value as the reference has it.
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

/// What a column holds.
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
    fn form(self) -> Form {
        match self {
            Self::Ints | Self::LargeInts => Form::Ints,
            Self::Wide => Form::Wide,
            Self::Floats => Form::Floats,
            Self::Bools => Form::Bools,
            Self::Codes | Self::Texts | Self::LongTexts => Form::Texts,
        }
    }

    /// A value that follows from a number.
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
        let validity = validity.then(|| Arc::new(Bits::of(values.len(), is_valid)));
        let texts =
            || values.iter().map(|value| if let Some(Value::Text(text)) = value { text.as_str() } else { "null" });
        let data = match self {
            Self::Ints | Self::LargeInts => {
                let values = values.iter().map(|value| if let Some(Value::Int(value)) = value { *value } else { 0 });
                Data::Ints { values: Arc::new(values.collect()), bounds: Bounds::I64 }
            }
            Self::Wide => {
                let values = values.iter().map(|value| if let Some(Value::Wide(value)) = value { *value } else { 0 });
                Data::Wide(Arc::new(values.collect()))
            }
            Self::Floats => {
                let values =
                    values.iter().map(|value| if let Some(Value::Float(value)) = value { *value } else { 0.0 });
                Data::Floats(Arc::new(values.collect()))
            }
            Self::Bools => Data::Bools(Arc::new(Bits::of(values.len(), |row| values[row] == Some(Value::Bool(true))))),
            Self::Codes => {
                // Each row has a string of its own: equal ones have several codes.
                let strings = Strings::new(StringViewArray::from_iter_values(texts().rev()));
                let codes = (0..u32::try_from(values.len()).unwrap()).rev().collect();
                Data::Codes { codes: Arc::new(codes), strings }
            }
            Self::Texts | Self::LongTexts => Data::Texts(StringViewArray::from_iter_values(texts())),
        };
        Column { data, validity }
    }
}

/// Rows of some columns; the last column, which is sorted by last, tells them apart.
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

    /// The rows' numbers, sorted.
    fn expected(&self) -> Vec<i64> {
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by(|x, y| self.order(*x, *y));
        order.into_iter().map(|row| i64::try_from(row).unwrap()).collect()
    }

    fn spec(&self, fetch: Option<usize>) -> Arc<SortSpec> {
        let forms = self.kinds.iter().map(|kind| kind.form()).chain([Form::Ints]).collect();
        Arc::new(SortSpec { keys: self.keys.clone(), fetch, forms, windows: None })
    }

    fn sorted(&self, fetch: Option<usize>, workers: usize, batch_rows: usize) -> Vec<i64> {
        let spec = self.spec(fetch);
        let mut parts: Vec<Sorting> = (0..workers).map(|_| Sorting::new(&spec)).collect();
        for (number, rows) in (0..self.rows.len()).collect::<Vec<_>>().chunks(batch_rows).enumerate() {
            let kinds = self.kinds.iter().chain([&Kind::Ints]).enumerate();
            let columns = kinds.map(|(column, kind)| {
                kind.column(&rows.iter().map(|row| self.rows[*row][column].clone()).collect::<Vec<_>>())
            });
            parts[number % workers].push(Batch { rows: rows.len(), columns: columns.collect() }).unwrap();
        }
        let sorted = Sorter::new(&spec, parts).unwrap().sorted();
        let batches = (0..).map_while(|number| sorted.batch(number).unwrap());
        let mut numbers = Vec::new();
        for batch in batches {
            let Data::Ints { values, .. } = &batch.columns[self.kinds.len()].data else { panic!("the rows' numbers") };
            numbers.extend_from_slice(values);
        }
        assert_eq!(sorted.rows(), numbers.len());
        numbers
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
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    #[test]
    fn many_rows_are_sorted_by_buckets_and_narrowed_as_they_come(case in case(70_000..150_000)) {
        let mut expected = case.expected();
        prop_assert_eq!(&case.sorted(None, 3, 4_096), &expected);
        expected.truncate(1_500);
        prop_assert_eq!(&case.sorted(Some(1_500), 2, 4_096), &expected);
        expected.truncate(7);
        prop_assert_eq!(&case.sorted(Some(7), 2, 4_096), &expected);
    }
}

#[test]
fn rows_without_keys_stay_as_they_come() {
    let values = Column::new(Data::Ints { values: Arc::new(vec![3, 1, 2]), bounds: Bounds::I64 });
    let spec = Arc::new(SortSpec { keys: Vec::new(), fetch: None, forms: vec![Form::Ints], windows: None });
    let mut part = Sorting::new(&spec);
    let batch = Batch { rows: 3, columns: vec![values] };
    part.push(batch.clone()).unwrap();
    part.push(batch.select(&Selection::Rows(vec![1])).unwrap()).unwrap();
    let sorter = Sorter::new(&spec, vec![part]).unwrap();
    assert!(sorter.is_in_order());
    let Data::Ints { values, .. } = &sorter.in_order(&[]).whole().unwrap().columns[0].data else { panic!("integers") };
    assert_eq!(**values, [3, 1, 2, 1]);
}
