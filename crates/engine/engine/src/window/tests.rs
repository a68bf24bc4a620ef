use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use super::*;
use crate::aggregate::sums256_from_binary;
use crate::expression::float_order;
use crate::sort::{SortCollector, SortKey, SortSpec, SortedRows, Sorter};
use crate::{Batch, Bitmap, Bounds, ColumnData, PhysicalType};

/// Row: partition, ORDER BY key, an integer and a float.
type Row = (i64, i64, Option<i64>, Option<f64>);

fn frames() -> Vec<Frame> {
    let edges = [
        FrameBound::Unbounded,
        FrameBound::Offset(0),
        FrameBound::Offset(-2),
        FrameBound::Offset(1),
        FrameBound::Offset(3),
        FrameBound::Offset(-7),
    ];
    let rows = edges.iter().flat_map(|start| edges.iter().map(move |end| (*start, *end)));
    let is_fit = |start: FrameBound, end: FrameBound| match (start, end) {
        (FrameBound::Offset(start), FrameBound::Offset(end)) => start <= end,
        _ => true,
    };
    let rows = rows.filter(|(start, end)| is_fit(*start, *end));
    let rows = rows.map(|(start, end)| Frame { mode: FrameMode::Rows, start, end });
    let near = |by: i128| {
        let key = SortKey { column: 1, is_descending: false, nulls_first: false };
        FrameBound::RangeOffset(RangeOffset { key, distance: Distance::Exact(by) })
    };
    let now = [FrameBound::Unbounded, FrameBound::Offset(0)];
    let few =
        now.into_iter().chain([FrameBound::Offset(-1), FrameBound::Offset(2), near(-2), near(1)]).collect::<Vec<_>>();
    let peers = few.iter().flat_map(|start| few.iter().map(move |end| (*start, *end)));
    let peers = peers.filter(|(start, end)| is_fit(*start, *end));
    rows.chain(peers.map(|(start, end)| Frame { mode: FrameMode::Peers, start, end })).collect()
}

/// Returns the positions in the partition of the frame's rows.
fn frame_of(frame: Frame, order: &[i64], place: usize) -> Vec<usize> {
    let changes = order.windows(2).scan(0, |group, pair| {
        *group += i64::from(pair[0] != pair[1]);
        Some(*group)
    });
    let groups: Vec<i64> = std::iter::once(0).chain(changes).collect();
    let is_in = |other: usize| {
        let distance = i64::try_from(other).unwrap() - i64::try_from(place).unwrap();
        let groups = groups[other] - groups[place];
        let further = i128::from(order[other] - order[place]);
        let by = |near: RangeOffset| match near.distance {
            Distance::Exact(by) => by,
            other => panic!("{other:?}"),
        };
        let starts = match (frame.start, frame.mode) {
            (FrameBound::Unbounded, _) => true,
            (FrameBound::Offset(rows), FrameMode::Rows) => rows <= distance,
            (FrameBound::Offset(distance), FrameMode::Peers) => distance <= groups,
            (FrameBound::RangeOffset(near), _) => by(near) <= further,
        };
        let ends = match (frame.end, frame.mode) {
            (FrameBound::Unbounded, _) => true,
            (FrameBound::Offset(rows), FrameMode::Rows) => distance <= rows,
            (FrameBound::Offset(distance), FrameMode::Peers) => groups <= distance,
            (FrameBound::RangeOffset(near), _) => further <= by(near),
        };
        starts && ends
    };
    (0..order.len()).filter(|other| is_in(*other)).collect()
}

/// Formats a value as text, so that columns of all forms can be compared.
fn shown(column: &Column, row: usize) -> String {
    if !column.is_valid(row) {
        return "NULL".to_owned();
    }
    match &column.data {
        ColumnData::Ints { values, .. } => values[row].to_string(),
        ColumnData::WideInts(values) => values[row].to_string(),
        ColumnData::Floats(values) => values[row].to_string(),
        ColumnData::Opaque(sums) => sums256_from_binary(sums).expect("sums of 256 bits")[row].to_string(),
        _ => panic!("a column of another form"),
    }
}

fn or_null<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "NULL".to_owned(), |value| value.to_string())
}

#[expect(clippy::cast_precision_loss, reason = "few rows")]
fn expected(function: &WindowFunction, rows: &[Row], partition: &[usize], place: usize) -> String {
    let order: Vec<i64> = partition.iter().map(|row| rows[*row].1).collect();
    let before = order.iter().filter(|other| **other < order[place]).count();
    let in_frame = |frame: &Frame| frame_of(*frame, &order, place).into_iter().map(|at| &rows[partition[at]]);
    let float = |row: &Row| row.3;
    match function {
        WindowFunction::RowNumber => (place + 1).to_string(),
        WindowFunction::Rank => (before + 1).to_string(),
        WindowFunction::DenseRank => {
            let mut less: Vec<i64> = order.iter().copied().filter(|other| *other < order[place]).collect();
            less.dedup();
            (less.len() + 1).to_string()
        }
        WindowFunction::PercentRank if order.len() == 1 => "0".to_owned(),
        WindowFunction::PercentRank => (before as f64 / (order.len() - 1) as f64).to_string(),
        WindowFunction::CumeDist => {
            let through = order.iter().filter(|other| **other <= order[place]).count();
            (through as f64 / order.len() as f64).to_string()
        }
        WindowFunction::Ntile(parts) => {
            let parts = usize::try_from(*parts).unwrap();
            let sizes = (0..parts).map(|part| order.len() / parts + usize::from(part < order.len() % parts));
            let all = sizes.enumerate().flat_map(|(part, size)| std::iter::repeat_n(part + 1, size));
            all.collect::<Vec<_>>()[place].to_string()
        }
        WindowFunction::LagLead { offset: before, default: otherwise, .. } => {
            let other = i64::try_from(place).unwrap().checked_sub(*before);
            let other = other.and_then(|other| usize::try_from(other).ok()).and_then(|other| partition.get(other));
            match (other, otherwise) {
                (Some(row), _) => or_null(rows[*row].2),
                (None, Some(value)) => shown(value, 0),
                (None, None) => "NULL".to_owned(),
            }
        }
        WindowFunction::FirstValue { frame, .. } => or_null(in_frame(frame).next().and_then(|row| row.2)),
        WindowFunction::LastValue { frame, .. } => or_null(in_frame(frame).next_back().and_then(|row| row.2)),
        WindowFunction::NthValue { frame, number, .. } => {
            or_null(in_frame(frame).nth(usize::try_from(*number).unwrap() - 1).and_then(|row| row.2))
        }
        WindowFunction::Aggregate { kind: kept, column, frame } => match (kept, column) {
            (AggregateKind::Count, None) => in_frame(frame).count().to_string(),
            (AggregateKind::Count, Some(_)) => in_frame(frame).filter(|row| row.2.is_some()).count().to_string(),
            (AggregateKind::Sum, _) => {
                in_frame(frame).filter_map(|row| row.2).map(i128::from).sum::<i128>().to_string()
            }
            (AggregateKind::Sum256 { sums_squares }, _) => {
                let squares = in_frame(frame).filter_map(|row| row.2).map(|value| i128::from(value * value));
                assert!(*sums_squares, "others are sums");
                squares.sum::<i128>().to_string()
            }
            (AggregateKind::FloatSum, _) => {
                in_frame(frame).filter_map(float).fold(0.0, |sum, value| sum + value).to_string()
            }
            (AggregateKind::Moments, _) => panic!("nothing says how the values of a frame are spread"),
            (AggregateKind::Min(_), Some(2)) => or_null(in_frame(frame).filter_map(|row| row.2).min()),
            (AggregateKind::Max(_), Some(2)) => or_null(in_frame(frame).filter_map(|row| row.2).max()),
            (AggregateKind::Min(_), _) => or_null(in_frame(frame).filter_map(float).min_by(|x, y| float_order(*x, *y))),
            (AggregateKind::Max(_), _) => or_null(in_frame(frame).filter_map(float).max_by(|x, y| float_order(*x, *y))),
        },
    }
}

fn functions() -> Vec<WindowFunction> {
    let otherwise =
        || Some(Column::new(ColumnData::Ints { values: Arc::new(vec![-1]), bounds: Bounds::from_value(-1) }));
    let places = [
        WindowFunction::RowNumber,
        WindowFunction::Rank,
        WindowFunction::DenseRank,
        WindowFunction::PercentRank,
        WindowFunction::CumeDist,
        WindowFunction::Ntile(1),
        WindowFunction::Ntile(4),
        WindowFunction::LagLead { column: 2, offset: 1, default: None },
        WindowFunction::LagLead { column: 2, offset: -2, default: otherwise() },
        WindowFunction::LagLead { column: 2, offset: i64::MIN, default: otherwise() },
        WindowFunction::LagLead { column: 2, offset: 0, default: None },
    ];
    let framed = frames().into_iter().flat_map(|frame| {
        let kept = |kept, column| WindowFunction::Aggregate { kind: kept, column, frame };
        [
            WindowFunction::FirstValue { column: 2, frame },
            WindowFunction::LastValue { column: 2, frame },
            WindowFunction::NthValue { column: 2, number: 2, frame },
            kept(AggregateKind::Count, None),
            kept(AggregateKind::Count, Some(2)),
            kept(AggregateKind::Sum, Some(2)),
            kept(AggregateKind::Sum256 { sums_squares: true }, Some(2)),
            kept(AggregateKind::FloatSum, Some(3)),
            kept(AggregateKind::Min(PhysicalType::Ints), Some(2)),
            kept(AggregateKind::Max(PhysicalType::Ints), Some(2)),
            kept(AggregateKind::Min(PhysicalType::Floats), Some(3)),
            kept(AggregateKind::Max(PhysicalType::Floats), Some(3)),
        ]
    });
    places.into_iter().chain(framed).collect()
}

/// Creates the columns of rows; the last column is the row number.
fn batch(rows: &[Row]) -> Batch {
    let ints = |of: &dyn Fn(usize) -> Option<i64>| {
        let values = (0..rows.len()).map(|row| of(row).unwrap_or(77)).collect();
        let validity = Some(Arc::new(Bitmap::from_fn(rows.len(), |row| of(row).is_some())));
        Column { data: ColumnData::Ints { values: Arc::new(values), bounds: Bounds::I64 }, validity }
    };
    let floats = rows.iter().map(|row| row.3.unwrap_or(0.5)).collect();
    let validity = Some(Arc::new(Bitmap::from_fn(rows.len(), |row| rows[row].3.is_some())));
    let columns = vec![
        ints(&|row| Some(rows[row].0)),
        ints(&|row| Some(rows[row].1)),
        ints(&|row| rows[row].2),
        Column { data: ColumnData::Floats(Arc::new(floats)), validity },
        ints(&|row| i64::try_from(row).ok()),
    ];
    Batch { rows: rows.len(), columns }
}

fn row() -> impl Strategy<Value = Row> {
    let value = prop::option::weighted(0.8, -5..6_i64);
    let float = prop::option::weighted(0.8, prop::sample::select(vec![0.5, -1.25, 3.0, 1e18, f64::NAN]));
    (0..4_i64, 0..6_i64, value, float)
}

/// Returns the rows as text, computed partition by partition.
fn by_partition(spec: &Arc<SortSpec>, sorted: &SortedRows, batch_rows: usize) -> Vec<Vec<String>> {
    let mut pending = PartitionBuffer::new(spec);
    let (mut given, mut pushed) = (Vec::new(), 0);
    let mut give = |batches: Vec<Batch>| {
        let row = |batch: &Batch, row| batch.columns.iter().map(|column| shown(column, row)).collect();
        let rows = batches.iter().flat_map(|batch| (0..batch.rows).map(move |at| row(batch, at)));
        given.extend(rows.collect::<Vec<Vec<String>>>());
    };
    while pushed < sorted.rows() {
        let end = sorted.rows().min(pushed + batch_rows);
        pending.push(sorted.batch_between(pushed, end).unwrap());
        pushed = end;
        give(pending.compute_ended(false).unwrap());
    }
    give(pending.compute_ended(true).unwrap());
    assert_eq!(pending.memory_bytes(), 0, "all has been given");
    given
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn functions_are_those_of_the_rows_around(
        rows in prop::collection::vec(row(), 1..60),
        is_parted in any::<bool>(),
        batch_rows in 1..20_usize,
    ) {
        let key = |column| SortKey { column, is_descending: false, nulls_first: false };
        let parts = if is_parted { vec![0] } else { Vec::new() };
        let windows = WindowSpec { partition_by: parts.clone(), order_by: vec![1], functions: functions() };
        let spec = Arc::new(SortSpec {
            keys: parts.iter().copied().chain([1, 4]).map(key).collect(),
            fetch: None,
            column_types: vec![PhysicalType::Ints, PhysicalType::Ints, PhysicalType::Ints, PhysicalType::Floats, PhysicalType::Ints],
            windows: Some(windows.clone()),
        });
        let mut part = SortCollector::new(&spec);
        part.push(batch(&rows)).unwrap();
        let sorted = Sorter::new(&spec, vec![part]).unwrap().sort(&AtomicBool::default()).unwrap();
        let streamed = by_partition(&spec, &sorted, batch_rows);
        let starts: Vec<Bitmap> = (0..sorted.window_shares()).map(|share| sorted.partition_starts(share).unwrap()).collect();
        let starts = sorted.concat_starts(&starts);
        let columns = (0..sorted.window_shares()).map(|share| sorted.window_columns(share, &starts).unwrap()).collect();
        let given = sorted.with_windows(columns).unwrap().batch(0).unwrap().unwrap();

        let mut order: Vec<usize> = (0..rows.len()).collect();
        let by = |row: usize| (if is_parted { rows[row].0 } else { 0 }, rows[row].1, row);
        order.sort_by(|x, y| if by(*x) < by(*y) { Ordering::Less } else { by(*x).cmp(&by(*y)) });
        for (place, row) in order.iter().enumerate() {
            let is_alike = |other: &usize| by(*other).0 == by(*row).0;
            let partition: Vec<usize> = order.iter().copied().filter(is_alike).collect();
            let within = partition.iter().position(|other| other == row).unwrap();
            for (number, function) in windows.functions.iter().enumerate() {
                let found = shown(&given.columns[5 + number], place);
                let expected = expected(function, &rows, &partition, within);
                prop_assert_eq!(&found, &expected, "{:?} of row {}", function, row);
                prop_assert_eq!(&streamed[place][5 + number], &expected, "{:?} of row {} by partition", function, row);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn functions_that_look_back_are_computed_before_a_partition_ends(
        mut rows in prop::collection::vec(row(), 1..90),
        parts in 0..3_i64,
        batch_rows in 1..20_usize,
        (by_peers, far) in (any::<bool>(), any::<bool>()),
    ) {
        rows.iter_mut().for_each(|row| row.0 %= parts.max(1));
        let is_fit = |function: &WindowFunction| {
            let alone = WindowSpec { partition_by: Vec::new(), order_by: vec![1], functions: vec![function.clone()] };
            let needs_peers = matches!(function, WindowFunction::Rank | WindowFunction::DenseRank) || match function {
                WindowFunction::FirstValue { frame, .. }
                | WindowFunction::LastValue { frame, .. }
                | WindowFunction::Aggregate { frame, .. } => frame.mode == FrameMode::Peers,
                _ => false,
            };
            let is_far = matches!(function, WindowFunction::LagLead { offset, .. } if *offset < 0);
            partition_chunk::RowReach::try_from_spec(&alone).is_some() && (by_peers || !needs_peers) && (far || !is_far)
        };
        let functions: Vec<_> = functions().into_iter().filter(is_fit).collect();
        prop_assert!(10 < functions.len());
        let key = |column| SortKey { column, is_descending: false, nulls_first: false };
        let partition_by = if parts == 0 { Vec::new() } else { vec![0] };
        let spec = Arc::new(SortSpec {
            keys: partition_by.iter().copied().chain([1, 4]).map(key).collect(),
            fetch: None,
            column_types: vec![PhysicalType::Ints, PhysicalType::Ints, PhysicalType::Ints, PhysicalType::Floats, PhysicalType::Ints],
            windows: Some(WindowSpec { partition_by, order_by: vec![1], functions }),
        });
        let mut part = SortCollector::new(&spec);
        part.push(batch(&rows)).unwrap();
        let sorted = Sorter::new(&spec, vec![part]).unwrap().sort(&AtomicBool::default()).unwrap();
        let streamed = by_partition(&spec, &sorted, batch_rows);
        let first = sorted.batch_between(0, sorted.rows().min(batch_rows)).unwrap();
        if !by_peers && !far {
            let mut pending = PartitionBuffer::new(&spec);
            pending.push(first.clone());
            let given: usize = pending.compute_ended(false).unwrap().iter().map(|batch| batch.rows).sum();
            prop_assert!(0 < given, "nothing has to be waited for");
        }
        let starts: Vec<Bitmap> = (0..sorted.window_shares()).map(|share| sorted.partition_starts(share).unwrap()).collect();
        let starts = sorted.concat_starts(&starts);
        let columns = (0..sorted.window_shares()).map(|share| sorted.window_columns(share, &starts).unwrap()).collect();
        let whole = sorted.with_windows(columns).unwrap().batch(0).unwrap().unwrap();
        for (place, found) in streamed.iter().enumerate() {
            let expected: Vec<String> = whole.columns.iter().map(|column| shown(column, place)).collect();
            prop_assert_eq!(found, &expected, "row {}", place);
        }
        prop_assert_eq!(streamed.len(), whole.rows);
    }
}

#[test]
fn shares_of_many_partitions_are_computed_alone() {
    let key = |column| SortKey { column, is_descending: false, nulls_first: false };
    let frame = Frame { mode: FrameMode::Rows, start: FrameBound::Unbounded, end: FrameBound::Offset(0) };
    let functions =
        vec![WindowFunction::RowNumber, WindowFunction::Aggregate { kind: AggregateKind::Sum, column: Some(1), frame }];
    let spec = Arc::new(SortSpec {
        keys: vec![key(0), key(1)],
        fetch: None,
        column_types: vec![PhysicalType::Ints, PhysicalType::Ints],
        windows: Some(WindowSpec { partition_by: vec![0], order_by: vec![1], functions }),
    });
    // Partitions of a thousand rows each, and one with most of the rows.
    let rows: i64 = 400_000;
    let part_of = |row: i64| if (50_000..350_000).contains(&row) { 50 } else { row / 1000 };
    let ints = |of: &dyn Fn(i64) -> i64| {
        Column::new(ColumnData::Ints { values: Arc::new((0..rows).rev().map(of).collect()), bounds: Bounds::I64 })
    };
    let mut part = SortCollector::new(&spec);
    let columns = vec![ints(&part_of), ints(&|row| row)];
    part.push(Batch { rows: usize::try_from(rows).unwrap(), columns }).unwrap();
    let sorted = Sorter::new(&spec, vec![part]).unwrap().sort(&AtomicBool::default()).unwrap();
    assert!(2 < sorted.window_shares());
    let starts: Vec<Bitmap> =
        (0..sorted.window_shares()).map(|share| sorted.partition_starts(share).unwrap()).collect();
    let starts = sorted.concat_starts(&starts);
    let columns = (0..sorted.window_shares()).map(|share| sorted.window_columns(share, &starts).unwrap()).collect();
    let sorted = sorted.with_windows(columns).unwrap();
    let (mut row, mut number, mut sum) = (0, 0, 0);
    for batch in (0..).map_while(|at| sorted.batch(at).unwrap()) {
        for at in 0..batch.rows {
            if row == 0 || part_of(row) != part_of(row - 1) {
                (number, sum) = (0, 0);
            }
            (number, sum) = (number + 1, sum + row);
            assert_eq!(shown(&batch.columns[2], at), number.to_string(), "the number of row {row}");
            assert_eq!(shown(&batch.columns[3], at), sum.to_string(), "the sum up to row {row}");
            row += 1;
        }
    }
    assert_eq!(row, rows);
}

/// Returns the frame of each row, for sorted keys.
fn near(keys: &Column, key: SortKey, by: (Distance, Distance)) -> Vec<std::ops::Range<usize>> {
    let rows = keys.rows();
    let columns = [keys.clone()];
    let ordered = OrderedRows { rows, columns: &columns, order: None };
    let (starts, all) = (find_starts(&ordered, &[0], 0..rows).unwrap(), 0..rows);
    let share =
        compute_columns::WindowShare { rows: &ordered, partitions: std::slice::from_ref(&all), peer_starts: &starts };
    let edge = |distance| FrameBound::RangeOffset(RangeOffset { key, distance });
    let frame = Frame { mode: FrameMode::Peers, start: edge(by.0), end: edge(by.1) };
    let mut frames = frame::Frames::new(frame, 0..rows, &share).unwrap();
    (0..rows).map(|row| frames.frame_of(row).unwrap()).collect()
}

#[test]
fn nulls_are_near_each_other_alone() {
    let column = |values: [Option<i64>; 5]| {
        let validity = Some(Arc::new(Bitmap::from_fn(5, |row| values[row].is_some())));
        let values = Arc::new(values.map(Option::unwrap_or_default).to_vec());
        Column { data: ColumnData::Ints { values, bounds: Bounds::I64 }, validity }
    };
    let by = (Distance::Exact(-1), Distance::Exact(2));
    let key = |is_descending, nulls_first| SortKey { column: 0, is_descending, nulls_first };
    let last = near(&column([Some(1), Some(2), Some(4), None, None]), key(false, false), by);
    assert_eq!(last, [0..2, 0..3, 2..3, 3..5, 3..5]);
    let first = near(&column([None, None, Some(9), Some(8), Some(i64::MIN)]), key(true, true), by);
    assert_eq!(first, [0..2, 0..2, 2..4, 2..4, 4..5]);
}

#[test]
fn keys_of_other_kinds_are_near_each_other() {
    let key = SortKey { column: 0, is_descending: false, nulls_first: false };
    let floats = Column::new(ColumnData::Floats(Arc::new(vec![f64::NEG_INFINITY, -0.5, 0.0, 0.25, f64::NAN])));
    let by = (Distance::Float(-0.5), Distance::Float(0.0));
    assert_eq!(near(&floats, key, by), [0..1, 1..2, 1..3, 2..4, 4..5]);
    // 31 January, 28 February, 1 March and 31 March 2001.
    let days = [11_353, 11_381, 11_382, 11_412];
    let moments = Arc::new(days.map(|day| day * types::text::US_PER_DAY).to_vec());
    let moments = Column::new(ColumnData::Ints { values: moments, bounds: Bounds::I64 });
    let month = Distance::Interval(types::Interval::new(-1, 0, 0));
    assert_eq!(near(&moments, key, (month, Distance::Interval(types::Interval::default()))), [0..1, 0..2, 1..3, 1..4]);
    let further = near(&moments, key, (month, Distance::Interval(types::Interval::new(0, 28, 0))));
    assert_eq!(further, [0..2, 0..3, 1..3, 1..4]);
}

#[test]
fn totals_of_a_partition_that_comes_in_pieces_are_those_of_its_rows() {
    let frame = Frame { mode: FrameMode::Rows, start: FrameBound::Unbounded, end: FrameBound::Unbounded };
    let kept = |kept, column| WindowFunction::Aggregate { kind: kept, column, frame };
    let functions = vec![
        kept(AggregateKind::Count, None),
        kept(AggregateKind::Sum, Some(1)),
        kept(AggregateKind::Max(PhysicalType::Ints), Some(1)),
    ];
    let spec = |functions| {
        let windows = Some(WindowSpec { partition_by: vec![0], order_by: Vec::new(), functions });
        Arc::new(SortSpec { keys: Vec::new(), fetch: None, column_types: vec![PhysicalType::Ints; 2], windows })
    };
    let ints = |values: &[Option<i64>]| {
        let validity = Some(Arc::new(Bitmap::from_fn(values.len(), |row| values[row].is_some())));
        let values: Vec<i64> = values.iter().map(|value| value.unwrap_or(0)).collect();
        Column { data: ColumnData::Ints { values: Arc::new(values), bounds: Bounds { min: 0, max: 99 } }, validity }
    };
    let batch = |keys: &[Option<i64>], values: &[Option<i64>]| Batch {
        rows: keys.len(),
        columns: vec![ints(keys), ints(values)],
    };
    let mut totals = PartitionAggregates::new(&spec(functions.clone())).expect("all are of whole partitions");
    let add = |totals: &mut PartitionAggregates, keys: &[Option<i64>], values: &[Option<i64>]| {
        totals.add(&batch(keys, values)).expect("they are numbers")
    };
    assert_eq!(add(&mut totals, &[None, None], &[Some(3), None]), 2);
    assert_eq!(add(&mut totals, &[None], &[Some(8)]), 1);
    assert_eq!(add(&mut totals, &[None, Some(1)], &[Some(1), Some(50)]), 1, "the next partition begins in the batch");
    let values = totals.finish().expect("there are rows");
    assert_eq!(values.iter().map(|value| shown(value, 0)).collect::<Vec<_>>(), ["4", "12", "8"]);

    let mut totals = PartitionAggregates::new(&spec(functions)).expect("all are of whole partitions");
    assert_eq!(add(&mut totals, &[Some(1)], &[None]), 1);
    assert_eq!(add(&mut totals, &[Some(2)], &[Some(4)]), 0, "it begins with the batch");
    let values = totals.finish().expect("there is a row");
    assert_eq!(values.iter().map(|value| shown(value, 0)).collect::<Vec<_>>(), ["1", "0", "NULL"]);
    let running = Frame { end: FrameBound::Offset(0), ..frame };
    let running = vec![WindowFunction::Aggregate { kind: AggregateKind::Count, column: None, frame: running }];
    assert!(PartitionAggregates::new(&spec(running)).is_none());
}
