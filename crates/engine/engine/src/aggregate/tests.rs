use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::array::StringViewArray;

use super::{
    AggregateKind, AggregateSpec, FlushedGroups, GroupRows, GroupingSet, Groups, PartitionedGroups, StateSpec,
};
use crate::{Batch, Bitmap, Bounds, Column, ColumnData, Dictionary, Error, NEVER_STOPPED, PhysicalType};

/// Deterministic random number generator (xorshift).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

fn ints(values: &[Option<i64>]) -> Column {
    let has_null = values.iter().any(Option::is_none);
    let validity = has_null.then(|| Arc::new(Bitmap::from_fn(values.len(), |row| values[row].is_some())));
    let values: Vec<i64> = values.iter().map(|value| value.unwrap_or(0)).collect();
    let bounds =
        values.iter().fold(Bounds::from_value(0), |bounds, value| bounds.union(Bounds::from_value((*value).into())));
    Column { data: ColumnData::Ints { values: Arc::new(values), bounds }, validity }
}

/// Creates a column of dictionary codes, some of them NULL, and its values. The dictionary may have equal strings.
fn codes(chance: &mut Random, rows: usize) -> (Column, Vec<Option<String>>) {
    let strings: Vec<String> = (0..5).map(|_| format!("s{}", chance.below(9))).collect();
    let codes: Vec<u32> = (0..rows).map(|_| u32::try_from(chance.below(5)).unwrap()).collect();
    let valid = Arc::new(Bitmap::from_fn(rows, |_| chance.below(9) != 0));
    let value = |(row, code): (usize, &u32)| valid.get(row).then(|| strings[*code as usize].clone());
    let values = codes.iter().enumerate().map(value).collect();
    let strings = Dictionary::new(StringViewArray::from_iter_values(strings));
    (
        Column {
            data: ColumnData::Dictionary { indices: Arc::new(codes), dictionary: strings },
            validity: Some(valid),
        },
        values,
    )
}

type Expected = BTreeMap<(Option<i64>, Option<String>), (i64, i64, i128, Option<i64>, Option<i64>)>;

/// Simulates spilling: drains groups from workers at random and aggregates them a second time.
struct SpillSimulation {
    spec: Arc<AggregateSpec>,
    groups: Groups,
    once_in: u64,
}

impl SpillSimulation {
    /// Drains once in so many times on average; never if that is 0.
    fn new(spec: &Arc<AggregateSpec>, once_in: u64) -> Self {
        Self { spec: Arc::clone(spec), groups: Groups::new(&Arc::new(spec.merge_spec())), once_in }
    }

    fn maybe_drain(&mut self, part: &mut Groups, chance: &mut Random) {
        if self.once_in != 0 && chance.below(self.once_in) == 0 {
            part.drain(&mut |batch| self.groups.add(&batch)).unwrap();
        }
    }

    /// Returns the groups of all workers. Without draining they are merged by partition, or else one worker after the
    /// other.
    fn into_rows(self, mut parts: Vec<Groups>, is_divided: bool) -> GroupRows {
        let Self { spec, mut groups, once_in } = self;
        if once_in != 0 {
            parts.iter_mut().for_each(|part| part.drain(&mut |batch| groups.add(&batch)).unwrap());
            return groups.finish().unwrap();
        }
        if is_divided {
            let aside: Vec<FlushedGroups> =
                parts.into_iter().flat_map(|part| part.flush_to_partitions().unwrap()).collect();
            return PartitionedGroups::from_workers(&spec, aside).unwrap().all_rows(&spec, &NEVER_STOPPED).unwrap();
        }
        let mut all = parts.pop().unwrap();
        parts.into_iter().for_each(|part| all.merge(part, &NEVER_STOPPED).unwrap());
        all.finish().unwrap()
    }
}

/// Compares the groups of several workers, with keys from a domain, to those of a map.
fn grouped(seed: u64, domain: u64, workers: usize) {
    let mut chance = Random(seed | 1);
    let spec = Arc::new(AggregateSpec {
        keys: vec![0, 1],
        states: [
            AggregateKind::Count,
            AggregateKind::Count,
            AggregateKind::Sum,
            AggregateKind::Min(PhysicalType::Ints),
            AggregateKind::Max(PhysicalType::Ints),
        ]
        .into_iter()
        .enumerate()
        .map(|(number, kept)| StateSpec { kind: kept, column: (0 < number).then_some(2), filter: None })
        .collect(),
        ..AggregateSpec::default()
    });
    let mut expected = Expected::new();
    let mut again = SpillSimulation::new(&spec, seed % 3);
    // Small tables are checked soon and flushed to partitions then.
    let few = [1, 100, 2_000, usize::MAX][chance.below(4) as usize];
    let mut parts: Vec<Groups> = (0..workers).map(|_| Groups::with_first_check(&spec, few)).collect();
    for part in &mut parts {
        for _ in 0..chance.below(6) {
            let rows = chance.below(3000) as usize + 1;
            let mut value = |end: u64| {
                let is_null = chance.below(10) == 0;
                (!is_null).then(|| i64::try_from(chance.below(end)).unwrap() - 50)
            };
            let keys: Vec<Option<i64>> = (0..rows).map(|_| value(domain)).collect();
            let values: Vec<Option<i64>> = (0..rows).map(|_| value(1000)).collect();
            let (texts, strings) = codes(&mut chance, rows);
            for row in 0..rows {
                let group = expected.entry((keys[row], strings[row].clone())).or_insert((0, 0, 0, None, None));
                group.0 += 1;
                if let Some(value) = values[row] {
                    group.1 += 1;
                    group.2 += i128::from(value);
                    group.3 = Some(group.3.map_or(value, |least| least.min(value)));
                    group.4 = Some(group.4.map_or(value, |greatest| greatest.max(value)));
                }
            }
            part.add(&Batch { rows, columns: vec![ints(&keys), texts, ints(&values)] }).unwrap();
            again.maybe_drain(part, &mut chance);
        }
    }
    let rows = again.into_rows(parts, chance.below(2) == 0);
    let mut found = Expected::new();
    for batch in &rows.parts {
        let number = |column: usize, row: usize| {
            let ColumnData::Ints { values, .. } = &batch.columns[column].data else { panic!("not integers") };
            batch.columns[column].is_valid(row).then(|| values[row])
        };
        for row in 0..batch.rows {
            let ColumnData::Dictionary { indices: codes, dictionary: strings } = &batch.columns[1].data else {
                panic!("not codes")
            };
            let text = batch.columns[1].is_valid(row).then(|| strings.get(codes[row]).to_owned());
            let key = (number(0, row), text);
            let sum = i128::from(number(4, row).unwrap());
            let group = (number(2, row).unwrap(), number(3, row).unwrap(), sum, number(5, row), number(6, row));
            assert!(found.insert(key, group).is_none(), "a group is given once");
        }
    }
    assert_eq!(found, expected, "seed {seed}, domain {domain}, {workers} workers");
}

#[test]
fn groups_are_those_of_a_map() {
    for seed in 1..40 {
        for domain in [1, 7, 300, 1 << 20, 1 << 40] {
            grouped(seed * 7919 + domain, domain, 1 + (seed as usize) % 3);
        }
    }
}

#[test]
fn without_keys_there_is_one_group_also_of_no_rows() {
    let states = vec![
        StateSpec { kind: AggregateKind::Count, column: None, filter: None },
        StateSpec { kind: AggregateKind::Max(PhysicalType::Ints), column: Some(0), filter: None },
    ];
    let spec = Arc::new(AggregateSpec { states, ..AggregateSpec::default() });
    let rows = Groups::new(&spec).finish().unwrap();
    let batch = rows.parts[0].clone();
    assert_eq!(rows.rows(), 1);
    assert!(batch.columns[0].is_valid(0) && !batch.columns[1].is_valid(0), "a count of 0, and no greatest value");
    let mut groups = Groups::new(&spec);
    groups.add(&Batch { rows: 3, columns: vec![ints(&[Some(4), None, Some(9)])] }).unwrap();
    groups.merge(Groups::new(&spec), &NEVER_STOPPED).unwrap();
    let batch = groups.finish().unwrap().parts[0].clone();
    let ColumnData::Ints { values, .. } = &batch.columns[1].data else { panic!("not integers") };
    assert_eq!(values.as_slice(), [9]);
}

#[test]
fn numbers_of_64_bits_are_grouped_with_those_of_128_where_keys_have_words_for_so_many() {
    let states = vec![StateSpec { kind: AggregateKind::Count, column: None, filter: None }];
    let spec = |key_types| {
        Arc::new(AggregateSpec { keys: vec![0], states: states.clone(), key_types, ..AggregateSpec::default() })
    };
    let narrow = Batch { rows: 3, columns: vec![ints(&[Some(4), None, Some(4)])] };
    let many = Column::new(ColumnData::WideInts(Arc::new(vec![4, i128::MAX])));
    let many = Batch { rows: 2, columns: vec![many] };

    let mut groups = Groups::new(&spec(Vec::new()));
    groups.add(&narrow).expect("they are the first");
    assert!(matches!(groups.add(&many), Err(Error::Internal(_))), "no key of this type has 128 bits");

    let spec = spec(vec![PhysicalType::WideInts]);
    let (mut groups, mut others) = (Groups::new(&spec), Groups::new(&spec));
    groups.add(&narrow).expect("they are the first");
    others.add(&many).expect("they are the first");
    groups.merge(others, &NEVER_STOPPED).expect("all are wide");
    let batch = groups.finish().expect("there are few").parts[0].clone();
    let ColumnData::WideInts(values) = &batch.columns[0].data else { panic!("not wide") };
    let ColumnData::Ints { values: counts, .. } = &batch.columns[1].data else { panic!("not counts") };
    let counted = |row: usize| (batch.columns[0].is_valid(row).then(|| values[row]), counts[row]);
    let mut counted: Vec<_> = (0..batch.rows).map(counted).collect();
    counted.sort_unstable();
    assert_eq!(counted, [(None, 1), (Some(4), 3), (Some(i128::MAX), 1)]);
}

#[test]
fn numbers_of_128_bits_beside_others_are_keys_of_the_same_groups() {
    let states = vec![StateSpec { kind: AggregateKind::Count, column: None, filter: None }];
    let spec = Arc::new(AggregateSpec {
        keys: vec![0],
        states,
        key_types: vec![PhysicalType::WideInts],
        ..AggregateSpec::default()
    });
    let small = [-3, -1, 0, 2, 5, i64::MIN, i64::MAX];
    let mut groups = Groups::new(&spec);
    let as_small = ints(&small.map(Some));
    let as_wide = Column::new(ColumnData::WideInts(Arc::new(small.map(i128::from).to_vec())));
    for column in [as_small.clone(), as_wide, as_small] {
        groups.add(&Batch { rows: small.len(), columns: vec![column] }).expect("both forms are numbers");
    }
    let batch = groups.finish().expect("there are few").parts[0].clone();
    assert_eq!(numbers(&batch.columns[0]), small.map(Some), "none needs more than 64 bits");
    assert_eq!(numbers(&batch.columns[1]), [Some(3); 7]);
}

#[test]
fn what_no_row_has_is_null_of_its_type() {
    let least = |form| StateSpec { kind: AggregateKind::Min(form), column: Some(1), filter: None };
    let forms = [PhysicalType::Bools, PhysicalType::Ints, PhysicalType::Floats, PhysicalType::Texts];
    for form in forms {
        let spec = Arc::new(AggregateSpec { states: vec![least(form)], ..AggregateSpec::default() });
        let batch = Groups::new(&spec).finish().expect("one group of no rows").parts[0].clone();
        assert_eq!((PhysicalType::from_column(&batch.columns[0]), batch.columns[0].is_valid(0)), (form, false));
        let set = GroupingSet { absent_keys: vec![true], id: 1, is_hidden: false };
        let all = GroupingSet { absent_keys: vec![false], id: 0, is_hidden: true };
        let spec = Arc::new(AggregateSpec {
            keys: vec![0],
            key_types: vec![form],
            states: vec![StateSpec { kind: AggregateKind::Count, column: None, filter: None }],
            sets: vec![set, all],
            ..AggregateSpec::default()
        });
        let rows = Groups::new(&spec).finish().expect("one group of no rows");
        let columns: Vec<PhysicalType> =
            rows.parts.iter().map(|batch| PhysicalType::from_column(&batch.columns[0])).collect();
        assert_eq!(columns, [form], "{rows:?}");
    }
}

#[test]
fn floats_whose_sum_is_no_number_any_more_end_the_statement() {
    let states = vec![StateSpec { kind: AggregateKind::FloatSum, column: Some(0), filter: None }];
    let spec = Arc::new(AggregateSpec { states, ..AggregateSpec::default() });
    let floats = |values: &[f64]| Column::new(ColumnData::Floats(Arc::new(values.to_vec())));
    let sum = |parts: &[&[f64]]| {
        let mut all = Groups::new(&spec);
        for part in parts {
            let mut groups = Groups::new(&spec);
            groups.add(&Batch { rows: part.len(), columns: vec![floats(part)] })?;
            all.merge(groups, &NEVER_STOPPED)?;
        }
        let batch = all.finish()?.parts[0].clone();
        let ColumnData::Floats(sums) = &batch.columns[0].data else { panic!("not floats") };
        Ok::<f64, Error>(sums[0])
    };
    for parts in [[[f64::MAX, f64::MAX].as_slice(), &[1.0]], [&[f64::MAX], &[f64::MAX]]] {
        let error = sum(&parts).expect_err("nothing holds it").to_string();
        assert_eq!(error, "value out of range: overflow", "{parts:?}");
    }
    assert_eq!(sum(&[&[f64::INFINITY, 1.0], &[f64::MAX, f64::MAX]]).ok(), None, "two that are none together");
    assert_eq!(sum(&[&[f64::INFINITY, 1.0], &[f64::MAX]]).expect("it was infinite before"), f64::INFINITY);
}

fn numbers(column: &Column) -> Vec<Option<i64>> {
    let ColumnData::Ints { values, .. } = &column.data else { panic!("not integers") };
    (0..values.len()).map(|row| column.is_valid(row).then(|| values[row])).collect()
}

/// Aggregates rows of several workers in runs of ascending keys: the groups returned early and the remaining ones are
/// all groups.
#[test]
fn stretches_of_a_clustered_key_give_each_group_once() {
    for seed in 1..60 {
        let mut chance = Random(seed);
        let spec = Arc::new(AggregateSpec {
            keys: vec![0],
            carried: vec![1],
            states: vec![StateSpec { kind: AggregateKind::Sum, column: Some(2), filter: None }],
            clustered: Some(0),
            ..AggregateSpec::default()
        });
        let mut workers = [Groups::new(&spec), Groups::new(&spec), Groups::new(&spec)];
        let mut again = SpillSimulation::new(&spec, seed % 4 * 3);
        let (mut expected, mut ended) = (HashMap::<i64, i64>::new(), 0);
        let mut found = HashMap::<i64, i64>::new();
        let mut take = |batch: &Batch| {
            let columns: Vec<_> = batch.columns.iter().map(numbers).collect();
            for ((key, carried), sum) in columns[0].iter().zip(&columns[1]).zip(&columns[2]) {
                let key = key.unwrap();
                assert_eq!(*carried, (key % 3 != 0).then_some(key * 7), "what the key determines");
                assert!(found.insert(key, sum.unwrap()).is_none(), "group {key} comes twice, seed {seed}");
            }
        };
        let mut key = 0;
        for _ in 0..chance.below(30) {
            let worker = &mut workers[chance.below(3) as usize];
            for _ in 0..1 + chance.below(3) {
                let keys: Vec<Option<i64>> = (0..1 + chance.below(400))
                    .map(|_| {
                        key += i64::try_from(chance.below(1 + seed % 3)).unwrap();
                        Some(key)
                    })
                    .collect();
                let values: Vec<Option<i64>> = keys.iter().map(|_| Some(chance.below(100) as i64)).collect();
                for (key, value) in keys.iter().zip(&values) {
                    *expected.entry(key.unwrap()).or_default() += value.unwrap();
                }
                let carried: Vec<Option<i64>> =
                    keys.iter().map(|key| key.filter(|key| key % 3 != 0).map(|key| key * 7)).collect();
                let columns = vec![ints(&keys), ints(&carried), ints(&values)];
                worker.add(&Batch { rows: keys.len(), columns }).unwrap();
                again.maybe_drain(worker, &mut chance);
            }
            if let Some(rows) = worker.end_run().unwrap() {
                ended += rows.rows();
                (0..).map_while(|number| rows.batch(number)).for_each(|batch| take(&batch));
            }
        }
        let is_whole = again.once_in == 0;
        let rows = again.into_rows(workers.into(), false);
        (0..).map_while(|number| rows.batch(number)).for_each(|batch| take(&batch));
        assert_eq!(found, expected, "seed {seed}");
        assert!(!is_whole || expected.len() < 200 || 0 < ended, "most groups are within a stretch");
    }
}

#[test]
fn sets_are_the_groups_by_fewer_keys() {
    for seed in 1..30 {
        let mut chance = Random(seed);
        // The set of all keys may be hidden, serving only to derive others.
        let hides = seed % 2 == 0;
        let set = |absent_keys: [bool; 2], id| GroupingSet {
            absent_keys: absent_keys.to_vec(),
            id,
            is_hidden: hides && id == 0,
        };
        let spec = Arc::new(AggregateSpec {
            keys: vec![0, 1],
            states: vec![StateSpec { kind: AggregateKind::Sum, column: Some(2), filter: None }],
            sets: vec![set([true, true], 3), set([false, false], 0), set([true, false], 2), set([false, true], 1)],
            ..AggregateSpec::default()
        });
        // One worker or two, whose groups all stay in the table or are flushed early.
        let few = [1, 1_000, usize::MAX][chance.below(3) as usize];
        let mut workers: Vec<Groups> = (0..1 + seed % 2).map(|_| Groups::with_first_check(&spec, few)).collect();
        let mut again = SpillSimulation::new(&spec, seed % 3);
        let mut expected = HashMap::<(i64, Option<i64>, Option<i64>), i64>::new();
        for _ in 0..chance.below(4) {
            let rows = 1 + chance.below(6_000) as usize;
            let mut key = |end: u64| (0 < chance.below(9)).then(|| chance.below(end) as i64);
            let far = if seed % 7 < 4 { 1 << 40 } else { 1 };
            let (one, other): (Vec<_>, Vec<_>) = (0..rows).map(|_| (key(5), key(3_000).map(|key| key * far))).unzip();
            let values: Vec<Option<i64>> = (0..rows).map(|_| key(100)).collect();
            for row in 0..rows {
                let (one, other, value) = (one[row], other[row], values[row].unwrap_or(0));
                for key in [(0, one, other), (1, one, None), (2, None, other), (3, None, None)] {
                    if hides && key.0 == 0 {
                        continue;
                    }
                    *expected.entry(key).or_default() += value;
                }
            }
            let groups = &mut workers[chance.below(1 + seed % 2) as usize];
            groups.add(&Batch { rows, columns: vec![ints(&one), ints(&other), ints(&values)] }).unwrap();
            again.maybe_drain(groups, &mut chance);
        }
        if again.once_in == 0 || !expected.is_empty() {
            expected.entry((3, None, None)).or_default();
        }
        let rows = again.into_rows(workers, seed % 5 == 0 && !expected.is_empty());
        let mut found = HashMap::new();
        for batch in (0..).map_while(|number| rows.batch(number)) {
            let columns: Vec<_> = batch.columns.iter().map(numbers).collect();
            for ((one, other), (id, sum)) in columns[0].iter().zip(&columns[1]).zip(columns[2].iter().zip(&columns[3]))
            {
                let key = (id.unwrap(), *one, *other);
                assert!(found.insert(key, sum.unwrap()).is_none(), "a group is given once");
            }
        }
        assert_eq!(found, expected, "seed {seed}");
    }
}

#[test]
fn the_set_without_keys_has_a_group_of_no_rows() {
    let states = vec![StateSpec { kind: AggregateKind::Sum, column: Some(2), filter: None }];
    let spec = AggregateSpec { keys: vec![0, 1], states, grand_total_id: Some(1), ..AggregateSpec::default() };
    let spec = Arc::new(spec);
    let rows = Groups::new(&spec).finish().unwrap();
    let batch = rows.batch(0).unwrap();
    assert_eq!(batch.columns.iter().map(numbers).collect::<Vec<_>>(), [[None], [Some(1)], [Some(0)]]);
    let mut groups = Groups::new(&spec);
    groups.add(&Batch { rows: 1, columns: vec![ints(&[Some(4)]), ints(&[Some(0)]), ints(&[Some(9)])] }).unwrap();
    // The grand total is not a group of each partition.
    let divided = PartitionedGroups::from_workers(&spec, groups.flush_to_partitions().unwrap()).unwrap();
    assert_eq!(divided.all_rows(&spec, &NEVER_STOPPED).unwrap().rows(), 1);
}
