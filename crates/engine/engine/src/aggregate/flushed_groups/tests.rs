use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow::array::StringViewArray;

use crate::aggregate::tests::Random;
use crate::aggregate::{AggregateKind, AggregateSpec, GroupRows, Groups, PartitionedGroups, StateSpec};
use crate::{Batch, Bitmap, Bounds, Column, ColumnData, Dictionary, Error, NEVER_STOPPED, PhysicalType};

fn ints(values: Vec<i64>) -> Column {
    let bounds =
        values.iter().fold(Bounds::from_value(0), |bounds, value| bounds.union(Bounds::from_value((*value).into())));
    Column::new(ColumnData::Ints { values: Arc::new(values), bounds })
}

/// Creates a batch with a row for each key, and a value.
fn batch(keys: Vec<i64>) -> Batch {
    let rows = keys.len();
    Batch { rows, columns: vec![ints(keys), ints(vec![1; rows])] }
}

fn counted(key: usize, value: usize) -> Arc<AggregateSpec> {
    let states = vec![
        StateSpec { kind: AggregateKind::Count, column: None, filter: None },
        StateSpec { kind: AggregateKind::Sum, column: Some(value), filter: None },
    ];
    Arc::new(AggregateSpec { keys: vec![key], states, ..AggregateSpec::default() })
}

/// Scatters a key, so that keys are too far apart for a direct index.
fn far(key: u64) -> i64 {
    key.wrapping_mul(0x9e37_79b9_7f4a_7c15).cast_signed() >> 2
}

/// Formats a value as text.
fn shown(column: &Column, row: usize) -> String {
    if !column.is_valid(row) {
        return "NULL".to_owned();
    }
    match &column.data {
        ColumnData::Bools(bits) => bits.get(row).to_string(),
        ColumnData::Ints { values, .. } => values[row].to_string(),
        ColumnData::WideInts(values) => values[row].to_string(),
        ColumnData::Floats(values) => values[row].to_string(),
        ColumnData::Dictionary { indices: codes, dictionary: strings } => strings.get(codes[row]).to_owned(),
        ColumnData::Texts(texts) => texts.value(row).to_owned(),
        ColumnData::Opaque(array) => format!("{:?}", array.slice(row, 1)),
    }
}

/// Returns all rows as text, sorted.
fn sorted(rows: &GroupRows) -> Vec<Vec<String>> {
    let row = |batch: &Batch, row: usize| batch.columns.iter().map(|column| shown(column, row)).collect();
    let batches = (0..).map_while(|number| rows.batch(number));
    let mut all: Vec<Vec<String>> =
        batches.flat_map(|batch| (0..batch.rows).map(|at| row(&batch, at)).collect::<Vec<_>>()).collect();
    all.sort();
    all
}

fn together(spec: &Arc<AggregateSpec>, workers: Vec<Groups>) -> GroupRows {
    let aside = workers.into_iter().flat_map(|worker| worker.flush_to_partitions().expect("keys")).collect();
    PartitionedGroups::from_workers(spec, aside).expect("one form").all_rows(spec, &NEVER_STOPPED).expect("groups")
}

/// Compares the groups of two workers to those of a map and returns the number of flushed runs of the first. `keys` are
/// the keys of each batch.
fn pieces_of(keys: impl Iterator<Item = Vec<u64>>) -> usize {
    let spec = counted(0, 1);
    let mut workers = [Groups::with_first_check(&spec, 1_000), Groups::with_first_check(&spec, 1_000)];
    let mut expected = BTreeMap::<i64, i64>::new();
    for keys in keys {
        let keys: Vec<i64> = keys.into_iter().map(far).collect();
        keys.iter().for_each(|key| *expected.entry(*key).or_default() += 2);
        workers.iter_mut().for_each(|worker| worker.add(&batch(keys.clone())).expect("integers"));
    }
    let pieces = workers[0].flushed_runs.len();
    let rows = together(&spec, workers.into());
    let expected: Vec<Vec<String>> =
        expected.iter().map(|(key, count)| vec![key.to_string(), count.to_string(), count.to_string()]).collect();
    let mut expected = expected;
    expected.sort();
    assert_eq!(sorted(&rows), expected);
    pieces
}

#[test]
fn groups_are_put_aside_while_rows_make_new_ones() {
    let fresh = |round: u64| (0..500).map(|row| 1_000_000 + round * 500 + row).collect::<Vec<u64>>();
    let known = |_: u64| (0..500).map(|row| row * 7 % 300).collect::<Vec<u64>>();
    assert_eq!(pieces_of((0..40).map(fresh)), 20, "each time that there are a thousand");
    assert_eq!(pieces_of((0..40).map(known)), 0, "a table of 300 stays");
    let late = pieces_of((0..80).map(|round| if round < 40 { known(round) } else { fresh(round) }));
    assert!((15..=20).contains(&late), "what came before makes no difference: {late}");
    assert_eq!(pieces_of((0..80).map(|round| if round < 40 { fresh(round) } else { known(round) })), 20);
}

#[test]
fn keys_that_come_again_much_later_stay_in_a_table() {
    let any = |round: u64| (0..500).map(|row| (round * 500 + row) * 104_729 % 20_011).collect::<Vec<u64>>();
    // 200,000 rows of 20,011 keys that do not repeat within a thousand rows: without the estimate of distinct keys
    // there would be 200 runs.
    let pieces = pieces_of((0..400).map(any));
    assert!((15..=80).contains(&pieces), "{pieces}");
}

#[test]
fn keys_in_few_places_stay_where_they_are() {
    let spec = counted(0, 1);
    let mut groups = Groups::with_first_check(&spec, 1_000);
    (0..40).for_each(|round| groups.add(&batch((round * 500..round * 500 + 500).collect())).expect("integers"));
    assert!(!groups.has_flushed() && groups.len() == 20_000);
}

/// Creates rows with keys and values of all forms, some of them NULL.
fn any_rows(chance: &mut Random, rows: usize, keys: u64) -> Batch {
    let valid = |chance: &mut Random| {
        let valid: Vec<bool> = (0..rows).map(|_| chance.below(12) != 0).collect();
        Some(Arc::new(Bitmap::from_fn(rows, |row| valid[row])))
    };
    let number: Vec<u64> = (0..rows).map(|_| chance.below(keys)).collect();
    let strings: Vec<String> = (0..40).map(|_| format!("code {}", chance.below(60))).collect();
    let strings = Dictionary::new(StringViewArray::from_iter_values(strings));
    let codes = number.iter().map(|key| u32::try_from(key % 40).expect("few")).collect();
    let text = |key: &u64| if key.is_multiple_of(5) { String::new() } else { format!("a text that is longer, {key}") };
    let data = [
        ColumnData::Ints { values: Arc::new(number.iter().map(|key| far(*key)).collect()), bounds: Bounds::I64 },
        ColumnData::WideInts(Arc::new(number.iter().map(|key| i128::from(*key) << 70).collect())),
        ColumnData::Floats(Arc::new(number.iter().map(|key| [0.0, -0.0, 1.5][(key % 3) as usize]).collect())),
        ColumnData::Bools(Arc::new(Bitmap::from_fn(rows, |row| number[row].is_multiple_of(2)))),
        ColumnData::Dictionary { indices: Arc::new(codes), dictionary: strings },
        ColumnData::Texts(StringViewArray::from_iter_values(number.iter().map(text))),
    ];
    let mut columns: Vec<Column> =
        data.iter().map(|data| Column { data: data.clone(), validity: valid(chance) }).collect();
    // Carried column: depends on the first key.
    let first = columns[0].clone();
    let text = |row: usize| if first.is_valid(row) { format!("carried {}", number[row]) } else { String::new() };
    let carried = ColumnData::Texts(StringViewArray::from_iter_values((0..rows).map(text)));
    columns.push(Column { data: carried, validity: first.validity });
    // Floats whose sum is exact in any order.
    columns.push(Column::new(ColumnData::Floats(Arc::new(number.iter().map(|key| (key % 8) as f64).collect()))));
    columns.push(Column::new(ColumnData::Bools(Arc::new(Bitmap::from_fn(rows, |row| number[row].is_multiple_of(3))))));
    Batch { rows, columns }
}

#[test]
fn all_forms_are_the_same_in_one_table_and_in_pieces() {
    for seed in 1..25 {
        let mut chance = Random(seed);
        let state = |kept, column, filter| StateSpec { kind: kept, column, filter };
        let keys = match seed % 4 {
            0 => vec![0],
            1 => vec![0, 5],
            2 => vec![0, 1, 2, 3, 4, 5],
            _ => vec![5, 0, 4],
        };
        let spec = Arc::new(AggregateSpec {
            keys,
            carried: vec![6],
            states: vec![
                state(AggregateKind::Count, None, Some(8)),
                state(AggregateKind::Sum, Some(1), None),
                state(AggregateKind::FloatSum, Some(7), None),
                state(AggregateKind::Min(PhysicalType::Texts), Some(5), None),
                state(AggregateKind::Max(PhysicalType::Texts), Some(4), Some(8)),
                state(AggregateKind::Max(PhysicalType::WideInts), Some(1), None),
                state(AggregateKind::Min(PhysicalType::Bools), Some(3), None),
                state(AggregateKind::Max(PhysicalType::Floats), Some(7), Some(8)),
            ],
            ..AggregateSpec::default()
        });
        let workers = 1 + (seed as usize) % 5;
        let keys = [50, 3_000, 1 << 40][chance.below(3) as usize];
        let mut whole = Groups::with_first_check(&spec, usize::MAX);
        let mut parts: Vec<Groups> = (0..workers).map(|_| Groups::with_first_check(&spec, 300)).collect();
        let again = Arc::new(spec.merge_spec());
        let mut given = Groups::with_first_check(&again, 300);
        for _ in 0..12 {
            let rows = 1 + chance.below(900) as usize;
            let batch = any_rows(&mut chance, rows, keys);
            whole.add(&batch).expect("well-formed");
            let worker = &mut parts[chance.below(workers as u64) as usize];
            worker.add(&batch).expect("well-formed");
            if seed % 3 == 0 && chance.below(4) == 0 {
                worker.drain(&mut |batch| given.add(&batch)).expect("well-formed");
            }
        }
        let expected = sorted(&whole.finish().expect("well-formed"));
        let found = if seed % 3 == 0 {
            parts.iter_mut().for_each(|part| part.drain(&mut |batch| given.add(&batch)).expect("well-formed"));
            given.finish().expect("well-formed")
        } else if seed % 2 == 0 {
            together(&spec, parts)
        } else {
            let mut all = Groups::with_first_check(&spec, 300);
            parts.into_iter().for_each(|part| all.merge(part, &NEVER_STOPPED).expect("one form"));
            all.finish().expect("well-formed")
        };
        assert_eq!(sorted(&found), expected, "seed {seed}");
    }
}

#[test]
fn parts_are_many_and_small_and_share_their_strings() {
    let states = vec![StateSpec { kind: AggregateKind::Count, column: None, filter: None }];
    let spec = Arc::new(AggregateSpec { keys: vec![0, 1], states, ..AggregateSpec::default() });
    let mut workers = vec![Groups::new(&spec), Groups::new(&spec)];
    let mut in_tables = vec![Groups::with_first_check(&spec, usize::MAX), Groups::with_first_check(&spec, usize::MAX)];
    for round in 0..40_u64 {
        for (number, (worker, in_table)) in (0..).zip(workers.iter_mut().zip(&mut in_tables)) {
            let keys: Vec<u64> = (0..4_000).map(|row| (round * 4_000 + row) * 2 + number).collect();
            // Each worker starts with strings that the others do not have.
            let text = |key: &u64| format!("text {}", key / 2 % 500 + 31 * number);
            let texts = ColumnData::Texts(StringViewArray::from_iter_values(keys.iter().map(text)));
            let columns = vec![ints(keys.iter().map(|key| far(*key)).collect()), Column::new(texts)];
            let batch = Batch { rows: keys.len(), columns };
            worker.add(&batch).expect("integers and texts");
            in_table.add(&batch).expect("integers and texts");
        }
    }
    assert!(workers.iter().all(Groups::has_flushed));
    let bytes = |workers: &[Groups]| workers.iter().map(Groups::memory_bytes).sum::<usize>();
    assert!(bytes(&workers) < bytes(&in_tables), "{} bytes, {} in tables", bytes(&workers), bytes(&in_tables));
    let aside = workers.into_iter().flat_map(|worker| worker.flush_to_partitions().expect("keys")).collect();
    let divided = PartitionedGroups::from_workers(&spec, aside).expect("one form");
    assert_eq!((divided.flushed_groups(), divided.partitions()), (320_000, 19));
    let stop = AtomicBool::new(true);
    assert!(matches!(divided.partition_rows(0, &stop), Err(Error::Stopped)));
    let mut ids = Vec::new();
    for part in 0..divided.partitions() {
        let rows = divided.partition_rows(part, &NEVER_STOPPED).expect("groups");
        assert!((320_000 / 19 * 3 / 4..320_000 / 19 * 5 / 4).contains(&rows.rows()), "{} groups", rows.rows());
        for batch in &rows.parts {
            let ColumnData::Dictionary { dictionary: strings, .. } = &batch.columns[1].data else {
                panic!("not codes")
            };
            assert_eq!(strings.len(), 531);
            ids.push(strings.id());
        }
    }
    ids.dedup();
    assert_eq!(ids.len(), 1);
}
