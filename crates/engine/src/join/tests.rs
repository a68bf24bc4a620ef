//! Joins of random batches against a nested loop.

use std::sync::Arc;

use arrow::array::StringViewArray;

use super::*;
use crate::{BATCH_ROWS, Batch, Bits, Bounds, Column, Data, Error, Result, Strings};

const KINDS: [JoinKind; 10] = [
    JoinKind::Inner,
    JoinKind::Left,
    JoinKind::Right,
    JoinKind::Full,
    JoinKind::LeftSemi,
    JoinKind::RightSemi,
    JoinKind::LeftAnti,
    JoinKind::RightAnti,
    JoinKind::LeftMark,
    JoinKind::RightMark,
];

/// Chance that gives the same in each run.
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 33) % end
    }
}

#[derive(Debug, Clone, PartialEq, PartialOrd)]
enum Value {
    Null,
    Bool(bool),
    Number(i128),
    Float(f64),
    Text(String),
}

impl Value {
    fn equals(&self, other: &Self, nulls_are_equal: bool) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => nulls_are_equal,
            (Self::Float(a), Self::Float(b)) => a == b || (a.is_nan() && b.is_nan()),
            _ => self == other,
        }
    }
}

/// What values a key has.
#[derive(Debug, Clone, Copy)]
enum Keys {
    Bools,
    Dense,
    Sparse,
    Extreme,
    /// Also as wide numbers.
    Mixed,
    Huge,
    Floats,
    Texts,
}

impl Keys {
    fn form(self) -> Form {
        match self {
            Self::Bools => Form::Bools,
            Self::Dense | Self::Sparse | Self::Extreme => Form::Ints,
            Self::Mixed | Self::Huge => Form::Wide,
            Self::Floats => Form::Floats,
            Self::Texts => Form::Texts,
        }
    }

    fn value(self, spread: u64, chance: &mut Chance) -> Value {
        let small = i128::from(chance.below(spread));
        match self {
            Self::Bools => Value::Bool(small % 2 == 0),
            Self::Dense => Value::Number(small - 7),
            Self::Sparse => Value::Number(small * 1_000_003_000_017 - 5_000_000),
            Self::Extreme => Value::Number(match small {
                0 => i128::from(i64::MIN),
                1 => i128::from(i64::MAX),
                2 => i128::from(i64::MIN) + 1,
                3 => i128::from(i64::MAX) - 1,
                small => small - 5,
            }),
            Self::Mixed => Value::Number(small * 3),
            Self::Huge => Value::Number((small - 2) * (i128::MAX / 100_000) + small % 3),
            Self::Floats => Value::Float(match small {
                0 => f64::NAN,
                1 => -f64::NAN,
                2 => 0.0,
                3 => -0.0,
                4 => f64::INFINITY,
                5 => f64::NEG_INFINITY,
                small => small as f64 / 8.0 - 1.0,
            }),
            Self::Texts => Value::Text(match small {
                0 => String::new(),
                small if small % 2 == 0 => format!("a text that is longer than a view {small}"),
                small => format!("t{small}"),
            }),
        }
    }
}

/// The values as a column, in a form by chance.
fn column(values: &[Value], form: Form, chance: &mut Chance) -> Column {
    let validity = if values.contains(&Value::Null) || chance.below(4) == 0 {
        Some(Arc::new(Bits::of(values.len(), |row| values[row] != Value::Null)))
    } else {
        None
    };
    let number = |value: &Value| if let Value::Number(number) = value { *number } else { 3 };
    let text = |value: &Value| if let Value::Text(text) = value { text.clone() } else { String::new() };
    let data = match form {
        Form::Bools => Data::Bools(Arc::new(Bits::of(values.len(), |row| values[row] != Value::Bool(false)))),
        Form::Wide if chance.below(2) == 0 || values.iter().any(|value| i64::try_from(number(value)).is_err()) => {
            Data::Wide(Arc::new(values.iter().map(number).collect()))
        }
        Form::Ints | Form::Wide => Data::Ints {
            values: Arc::new(values.iter().map(|value| i64::try_from(number(value)).expect("narrow")).collect()),
            bounds: Bounds::I64,
        },
        Form::Floats => {
            let float = |value: &Value| if let Value::Float(float) = value { *float } else { f64::NAN };
            Data::Floats(Arc::new(values.iter().map(float).collect()))
        }
        Form::Texts if chance.below(3) == 0 => Data::Texts(StringViewArray::from_iter_values(values.iter().map(text))),
        Form::Texts => {
            let mut strings: Vec<String> = values.iter().filter(|value| **value != Value::Null).map(text).collect();
            strings.sort();
            strings.dedup();
            if chance.below(2) == 0 {
                strings.reverse();
            }
            let code = |value: &Value| strings.iter().position(|string| *string == text(value)).unwrap_or(0) as u32;
            let codes = values.iter().map(code).collect();
            Data::Codes { codes: Arc::new(codes), strings: Strings::new(StringViewArray::from_iter_values(&strings)) }
        }
    };
    Column { data, validity }
}

fn value(column: &Column, row: usize) -> Value {
    if !column.is_valid(row) {
        return Value::Null;
    }
    match &column.data {
        Data::Bools(bits) => Value::Bool(bits.get(row)),
        Data::Ints { values, bounds } => {
            let value = i128::from(values[row]);
            assert!(bounds.min <= value && value <= bounds.max, "{value} out of {bounds:?}");
            Value::Number(value)
        }
        Data::Wide(values) => Value::Number(values[row]),
        Data::Floats(values) => Value::Float(values[row]),
        Data::Codes { codes, strings } => Value::Text(strings.get(codes[row]).to_owned()),
        Data::Texts(texts) => Value::Text(texts.value(row).to_owned()),
    }
}

type Row = Vec<Value>;

/// Keys and a number.
fn rows(keys: &[Keys], count: usize, spread: u64, nulls: u64, chance: &mut Chance) -> Vec<Row> {
    let row = |chance: &mut Chance| {
        let key = |keys: &Keys, chance: &mut Chance| {
            if chance.below(100) < nulls { Value::Null } else { keys.value(spread, chance) }
        };
        let mut row: Row = keys.iter().map(|keys| key(keys, chance)).collect();
        row.push(Value::Number(i128::from(chance.below(1000))));
        row
    };
    (0..count).map(|_| row(chance)).collect()
}

fn forms(keys: &[Keys]) -> Vec<Form> {
    keys.iter().map(|keys| keys.form()).chain([Form::Ints]).collect()
}

fn batch(rows: &[Row], forms: &[Form], chance: &mut Chance) -> Batch {
    let of = |(position, form): (usize, &Form)| {
        let values: Vec<Value> = rows.iter().map(|row| row[position].clone()).collect();
        column(&values, *form, chance)
    };
    Batch { rows: rows.len(), columns: forms.iter().enumerate().map(of).collect() }
}

/// Rows in batches of lengths by chance.
fn batches(rows: &[Row], forms: &[Form], chance: &mut Chance) -> Vec<Batch> {
    let mut batches = Vec::new();
    let mut rest = rows;
    while !rest.is_empty() {
        let (now, later) = rest.split_at((1 + chance.below(100) as usize).min(rest.len()));
        batches.push(batch(now, forms, chance));
        rest = later;
    }
    batches
}

fn fulfils(build: &Row, probe: &Row) -> bool {
    let number = |row: &Row| if let Some(Value::Number(number)) = row.last() { *number } else { panic!("no number") };
    (number(build) + number(probe)) % 3 != 0
}

/// As a condition over the two numbers.
fn residual(keys: usize) -> Residual {
    let is_true = |batch: &Batch| {
        let [build, probe] = &*batch.columns else { return Err(Error::Form("two columns")) };
        assert!(batch.rows > 0 && batch.rows <= BATCH_ROWS);
        Ok(Bits::of(batch.rows, |row| fulfils(&vec![value(build, row)], &vec![value(probe, row)])))
    };
    Residual { columns: vec![OutputColumn::Build(keys), OutputColumn::Probe(keys)], is_true: Arc::new(is_true) }
}

fn naive(spec: &JoinSpec, build: &[Row], probe: &[Row]) -> Vec<Row> {
    let matches = |left: &Row, right: &Row| {
        let are_equal = |(build, probe): &(usize, usize)| left[*build].equals(&right[*probe], spec.nulls_are_equal);
        spec.keys.iter().all(are_equal) && (spec.residual.is_none() || fulfils(left, right))
    };
    let mut all = Vec::new();
    let row = |left: Option<&Row>, right: Option<&Row>, mark: bool| -> Row {
        let cell = |side: Option<&Row>, position: usize| side.map_or(Value::Null, |row| row[position].clone());
        let of = |column: &OutputColumn| match *column {
            OutputColumn::Build(position) => cell(left, position),
            OutputColumn::Probe(position) => cell(right, position),
            OutputColumn::Mark => Value::Bool(mark),
        };
        spec.output.iter().map(of).collect()
    };
    for left in build {
        let count = probe.iter().filter(|right| matches(left, right)).count();
        match spec.kind {
            JoinKind::Left | JoinKind::Full if count == 0 => all.push(row(Some(left), None, false)),
            JoinKind::LeftSemi if count > 0 => all.push(row(Some(left), None, true)),
            JoinKind::LeftAnti if count == 0 => all.push(row(Some(left), None, true)),
            JoinKind::LeftMark => all.push(row(Some(left), None, count > 0)),
            _ => {}
        }
    }
    for right in probe {
        let matching: Vec<&Row> = build.iter().filter(|left| matches(left, right)).collect();
        match spec.kind {
            JoinKind::Inner | JoinKind::Left | JoinKind::Right | JoinKind::Full => {
                all.extend(matching.iter().map(|left| row(Some(left), Some(right), true)));
                if matching.is_empty() && matches!(spec.kind, JoinKind::Right | JoinKind::Full) {
                    all.push(row(None, Some(right), false));
                }
            }
            JoinKind::RightSemi if !matching.is_empty() => all.push(row(None, Some(right), true)),
            JoinKind::RightAnti if matching.is_empty() => all.push(row(None, Some(right), true)),
            JoinKind::RightMark => all.push(row(None, Some(right), !matching.is_empty())),
            _ => {}
        }
    }
    all
}

/// The join's rows, by so many workers.
fn joined(
    spec: &JoinSpec,
    build: &[Row],
    probe: &[Row],
    keys: &[Keys],
    workers: usize,
    chance: &mut Chance,
) -> Vec<Row> {
    let spec = Arc::new(spec.clone());
    let mut builds: Vec<Build> = (0..workers).map(|_| Build::new(&spec)).collect();
    for batch in batches(build, &spec.build_forms, chance) {
        let worker = chance.below(workers as u64) as usize;
        builds[worker].push(batch).expect("a batch of the right forms");
    }
    let table = JoinTable::finish(Arc::clone(&spec), builds).expect("a table");
    assert_eq!(table.rows(), build.len());
    let mut all = Vec::new();
    let mut next = |batch: Batch| {
        assert!(batch.rows > 0 && batch.rows <= BATCH_ROWS, "{} rows", batch.rows);
        assert!(batch.columns.iter().all(|column| column.rows() == batch.rows));
        all.extend((0..batch.rows).map(|row| batch.columns.iter().map(|column| value(column, row)).collect::<Row>()));
        Ok(())
    };
    let mut scratches: Vec<ProbeScratch> = (0..workers).map(|_| ProbeScratch::default()).collect();
    let forms = forms(keys);
    for batch in batches(probe, &forms, chance) {
        let batch = filtered(&table, &spec, batch, chance).expect("filters");
        let worker = chance.below(workers as u64) as usize;
        table.probe(&batch, &mut scratches[worker], &mut next).expect("probing");
    }
    for part in 0..workers {
        table.rest(part, workers, &forms, &mut next).expect("the rest");
    }
    all
}

/// Leaves rows out that the table's filters do not keep.
fn filtered(table: &JoinTable, spec: &JoinSpec, batch: Batch, chance: &mut Chance) -> Result<Batch> {
    let mut batch = batch;
    for (key, (_, position)) in spec.keys.iter().enumerate() {
        let column = &batch.columns[*position];
        if chance.below(2) == 0
            && let Some(filter) = table.key_filter(key)
            && let Data::Ints { values, .. } = &column.data
        {
            let kept = filter.keep(values, column.validity.as_deref());
            batch = batch.select(&crate::Selection::of(&kept))?;
        }
    }
    Ok(batch)
}

fn sorted(rows: &[Row]) -> Vec<String> {
    let cell = |value: &Value| match value {
        // Zeros are equal and any NaN is the same one, but a side's own value is given.
        Value::Float(float) if float.is_nan() => "NaN".to_owned(),
        value => format!("{value:?}"),
    };
    let mut rows: Vec<String> = rows.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join(",")).collect();
    rows.sort();
    rows
}

fn output(kind: JoinKind, columns: usize) -> Vec<OutputColumn> {
    let build = (0..columns).map(OutputColumn::Build);
    let probe = (0..columns).map(OutputColumn::Probe);
    match kind {
        JoinKind::LeftSemi | JoinKind::LeftAnti => build.collect(),
        JoinKind::RightSemi | JoinKind::RightAnti => probe.collect(),
        JoinKind::LeftMark => build.chain([OutputColumn::Mark]).collect(),
        JoinKind::RightMark => [OutputColumn::Mark].into_iter().chain(probe).collect(),
        _ => probe.chain(build).collect(),
    }
}

struct Case<'a> {
    keys: &'a [Keys],
    build_rows: usize,
    probe_rows: usize,
    spread: u64,
    nulls: u64,
    seed: u64,
}

/// Each kind, with and without a condition, with NULLs equal or not.
fn check(case: &Case<'_>) {
    let mut chance = Chance::new(case.seed);
    let build = rows(case.keys, case.build_rows, case.spread, case.nulls, &mut chance);
    let probe = rows(case.keys, case.probe_rows, case.spread + case.spread / 4 + 1, case.nulls, &mut chance);
    check_rows(case.keys, &build, &probe, &mut chance);
}

fn check_rows(keys: &[Keys], build: &[Row], probe: &[Row], chance: &mut Chance) {
    for kind in KINDS {
        for (nulls_are_equal, has_residual) in [(false, false), (true, false), (false, true), (true, true)] {
            let spec = JoinSpec {
                kind,
                keys: (0..keys.len()).map(|key| (key, key)).collect(),
                nulls_are_equal,
                output: output(kind, keys.len() + 1),
                residual: has_residual.then(|| residual(keys.len())),
                build_forms: forms(keys),
            };
            let workers = 1 + chance.below(3) as usize;
            let expected = naive(&spec, build, probe);
            let found = joined(&spec, build, probe, keys, workers, chance);
            let of = format!("{kind:?} on {:?}, NULLs equal {nulls_are_equal}, residual {has_residual}", keys);
            assert_eq!(sorted(&found), sorted(&expected), "{of}");
        }
    }
}

fn check_keys(keys: &[Keys]) {
    // Where about half of all pairs match, fewer rows are enough.
    let is_coarse = keys.iter().all(|keys| matches!(keys, Keys::Bools));
    let fewer = if is_coarse { 4 } else { 1 };
    for (seed, (build_rows, probe_rows, spread, nulls)) in [
        (150, 200, 12, 20),
        (150, 200, 400, 5),
        (300, 300, 60, 0),
        (0, 70, 10, 10),
        (70, 0, 10, 10),
        (4, 64, 2, 0),
        (64, 130, 5, 100),
        (200, 100, 5_000, 3),
    ]
    .into_iter()
    .enumerate()
    {
        let (build_rows, probe_rows) = (build_rows / fewer, probe_rows / fewer);
        check(&Case { keys, build_rows, probe_rows, spread, nulls, seed: seed as u64 + 1 });
    }
}

#[test]
fn integers_near_each_other() {
    check_keys(&[Keys::Dense]);
}

#[test]
fn integers_far_apart() {
    check_keys(&[Keys::Sparse]);
}

#[test]
fn the_least_and_the_greatest_integers() {
    check_keys(&[Keys::Extreme]);
    check_keys(&[Keys::Extreme, Keys::Extreme]);
}

#[test]
fn truth_values() {
    check_keys(&[Keys::Bools]);
    check_keys(&[Keys::Bools, Keys::Dense]);
}

#[test]
fn numbers_narrow_and_wide() {
    check_keys(&[Keys::Mixed]);
    check_keys(&[Keys::Huge]);
}

#[test]
fn floats() {
    check_keys(&[Keys::Floats]);
    check_keys(&[Keys::Floats, Keys::Dense]);
}

#[test]
fn strings_with_codes_and_without() {
    check_keys(&[Keys::Texts]);
}

#[test]
fn several_keys() {
    check_keys(&[Keys::Dense, Keys::Dense]);
    check_keys(&[Keys::Dense, Keys::Texts]);
    check_keys(&[Keys::Sparse, Keys::Sparse]);
    check_keys(&[Keys::Extreme, Keys::Sparse, Keys::Texts]);
    check_keys(&[Keys::Huge, Keys::Floats, Keys::Extreme, Keys::Bools]);
}

#[test]
fn no_keys() {
    check_keys(&[]);
}

#[test]
fn a_row_with_very_many_matches() {
    let case = Case { keys: &[Keys::Dense], build_rows: 9_000, probe_rows: 2, spread: 1, nulls: 0, seed: 5 };
    check(&case);
}

/// More rows than a batch: arrays, bits and slots as larger tables have them.
#[test]
fn larger_tables() {
    for keys in [Keys::Dense, Keys::Sparse, Keys::Texts] {
        check(&Case { keys: &[keys], build_rows: 1_200, probe_rows: 150, spread: 30_000, nulls: 1, seed: 9 });
    }
}

/// Each key once, some rows without one: near each other, further apart, far apart; in order and not.
#[test]
fn unique_keys() {
    for (factor, is_shuffled, nulls) in
        [1, 20, 1_000_003].into_iter().flat_map(|factor| [(factor, false, 0), (factor, true, 0), (factor, true, 3)])
    {
        let mut chance = Chance::new(factor as u64);
        let mut row = |key: i128, nulls: u64| {
            let key = if chance.below(100) < nulls { Value::Null } else { Value::Number(key * factor) };
            vec![key, Value::Number(i128::from(chance.below(1000)))]
        };
        let mut build: Vec<Row> = (0..1000).map(|key| row(key, nulls)).collect();
        let probe: Vec<Row> = (0..60).map(|key| row(key * 23 - 100, nulls)).collect();
        if is_shuffled {
            (1..build.len()).rev().for_each(|last| build.swap(last, chance.below(last as u64 + 1) as usize));
        }
        check_rows(&[Keys::Dense], &build, &probe, &mut chance);
    }
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

fn ints(values: impl IntoIterator<Item = i64>) -> Batch {
    let values: Vec<i64> = values.into_iter().collect();
    Batch {
        rows: values.len(),
        columns: vec![Column::new(Data::Ints { values: Arc::new(values), bounds: Bounds::I64 })],
    }
}

fn one_key(kind: JoinKind, output: Vec<OutputColumn>) -> Arc<JoinSpec> {
    Arc::new(JoinSpec {
        kind,
        keys: vec![(0, 0)],
        nulls_are_equal: false,
        output,
        residual: None,
        build_forms: vec![Form::Ints],
    })
}

fn table(spec: &Arc<JoinSpec>, batch: Batch) -> JoinTable {
    let mut build = Build::new(spec);
    build.push(batch).expect("integers");
    JoinTable::finish(Arc::clone(spec), vec![build]).expect("a table")
}

#[test]
fn columns_of_the_probe_side_stay_where_all_rows_match() {
    let spec = one_key(JoinKind::Inner, vec![OutputColumn::Probe(0), OutputColumn::Build(0)]);
    let table = table(&spec, ints(0..100));
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
    let spec = one_key(JoinKind::Inner, vec![OutputColumn::Probe(0)]);
    let table = table(&spec, ints(std::iter::repeat_n(1, 3 * BATCH_ROWS)));
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
    let spec = one_key(JoinKind::Inner, vec![OutputColumn::Probe(0)]);
    let filter = table(&spec, ints([5, 7, 11])).key_filter(0).expect("a filter");
    assert_eq!(filter.bounds(), (5, 11));
    assert!(!filter.is_exact_range());
    let kept = filter.keep(&[4, 5, 6, 7, 11, 12, i64::MIN, i64::MAX], None);
    assert_eq!(kept.ones().collect::<Vec<_>>(), [1, 3, 4]);
    let kept = filter.keep(&[5, 5, 6], Some(&Bits::of(3, |row| row == 0)));
    assert_eq!(kept.ones().collect::<Vec<_>>(), [0]);

    assert!(table(&spec, ints(3..10)).key_filter(0).expect("a filter").is_exact_range());
    let filter = table(&spec, ints([i64::MIN, i64::MAX])).key_filter(0).expect("a filter");
    assert_eq!(filter.bounds(), (i64::MIN, i64::MAX));
    assert_eq!(filter.keep(&[0, 1], None).count(), 2);
    let filter = table(&spec, ints([])).key_filter(0).expect("a filter");
    assert!(filter.bounds().0 > filter.bounds().1 && !filter.is_exact_range());
    assert_eq!(filter.keep(&[0, i64::MIN, i64::MAX], None).count(), 0);
}

#[test]
fn joins_that_keep_probe_rows_have_no_filters() {
    for kind in [JoinKind::Right, JoinKind::Full, JoinKind::RightAnti, JoinKind::RightMark] {
        let spec = one_key(kind, vec![OutputColumn::Probe(0)]);
        assert!(table(&spec, ints([5, 7, 11])).key_filter(0).is_none());
    }
}

#[test]
fn other_forms_are_errors() {
    let spec = one_key(JoinKind::Inner, vec![OutputColumn::Probe(0)]);
    let floats = || Batch { rows: 1, columns: vec![Column::new(Data::Floats(Arc::new(vec![1.0])))] };
    assert!(matches!(Build::new(&spec).push(floats()), Err(Error::Form(_))));
    let table = table(&spec, ints([1]));
    let mut scratch = ProbeScratch::default();
    let none = Batch { rows: 1, columns: Vec::new() };
    for batch in [floats(), none] {
        assert!(matches!(table.probe(&batch, &mut scratch, &mut |_| Ok(())), Err(Error::Form(_))));
    }
    for output in [OutputColumn::Mark, OutputColumn::Build(1)] {
        let spec = one_key(JoinKind::Inner, vec![output]);
        assert!(matches!(JoinTable::finish(spec, Vec::new()), Err(Error::Form(_))));
    }
    let spec = one_key(JoinKind::LeftSemi, vec![OutputColumn::Probe(0)]);
    assert!(matches!(JoinTable::finish(spec, Vec::new()), Err(Error::Form(_))));
}

/// A worker's memory of codes is of one table, whichever strings come again.
#[test]
fn a_scratch_serves_one_table_after_the_other() {
    let spec = Arc::new(JoinSpec {
        kind: JoinKind::RightSemi,
        keys: vec![(0, 0)],
        nulls_are_equal: false,
        output: vec![OutputColumn::Probe(0)],
        residual: None,
        build_forms: vec![Form::Texts],
    });
    let strings = Strings::new(StringViewArray::from_iter_values(["a", "b"]));
    let codes = |codes: Vec<u32>| {
        let data = Data::Codes { codes: Arc::new(codes), strings: Arc::clone(&strings) };
        Batch { rows: 1, columns: vec![Column::new(data)] }
    };
    let mut scratch = ProbeScratch::default();
    for (build, probe, count) in [(0, 0, 1), (1, 0, 0), (1, 1, 1), (0, 1, 0)] {
        let mut rows = 0;
        let mut next = |batch: Batch| {
            rows += batch.rows;
            Ok(())
        };
        table(&spec, codes(vec![build])).probe(&codes(vec![probe]), &mut scratch, &mut next).expect("probing");
        assert_eq!(rows, count);
    }
}

/// Workers that probe at the same time mark the rows of one table.
#[test]
fn workers_mark_the_same_rows() {
    let spec = one_key(JoinKind::LeftAnti, vec![OutputColumn::Build(0)]);
    let table = table(&spec, ints((0..10_000).chain(0..10_000)));
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
    let mut next = |batch: Batch| {
        rows += batch.rows;
        Ok(())
    };
    for part in 0..3 {
        table.rest(part, 3, &[], &mut next).expect("the rest");
    }
    assert_eq!(rows, 2 * (10_000 - 9 * 900));
}
