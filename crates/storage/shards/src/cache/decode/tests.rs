use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int16Array, Int64Array,
    StringViewArray, UInt32Array,
};
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use blocks::{BLOCK_ROWS, LikePattern, RowSet};
use proptest::prelude::*;
use types::SqlType;

use super::{ChunkPageReader, delta, rle_bit_packed, unpack};
use crate::cache::block::ColumnBlock;
use crate::cache::tests::shard;
use crate::reader::tests::column;
use crate::reader::{PageChecksums, fetch};
use crate::writer::tests::bucket;
use crate::{ColumnDef, CompareOp, Datum, ShardReader, Test};

/// Decodes all pages of a column, to be cached or not; `None` if it goes through Arrow.
async fn blocks_of(reader: &ShardReader, position: usize, def: &ColumnDef, is_kept: bool) -> Option<Vec<ColumnBlock>> {
    let file = reader.file();
    let mut blocks = Vec::new();
    for row_group in 0..file.meta.row_groups.len() {
        let pages = file.page_rows(row_group, position);
        let mut chunk = ChunkPageReader::open(file, row_group, position, &def.sql_type, &pages)?;
        let ranges = chunk.ranges(&(0..usize::MAX));
        let known = PageChecksums::new(file, row_group, &[position], &Arc::default());
        for (range, bytes) in ranges.iter().zip(fetch(reader.location(), file, &known, &ranges).await.unwrap()) {
            chunk.add_fetched(range.start, bytes);
        }
        let mut lanes = Vec::new();
        for rows in &pages {
            assert!(chunk.is_next(rows));
            blocks.push(chunk.next(is_kept, &mut lanes).unwrap().unwrap());
        }
    }
    Some(blocks)
}

fn every_form(rows: i64) -> (Vec<ColumnDef>, RecordBatch) {
    let mixed = |row: i64| row.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64.cast_signed());
    let some = |row: i64, every: i64| row % every != 0;
    let few = |row: i64| mixed(row).rem_euclid(50);
    let decimal = |values: Vec<Option<i128>>, digits| -> ArrayRef {
        Arc::new(Decimal128Array::from(values).with_precision_and_scale(digits, 2).unwrap())
    };
    let all = || 0..rows;
    let columns: Vec<(&str, SqlType, ArrayRef)> = vec![
        (
            "truth",
            SqlType::Bool,
            Arc::new(all().map(|row| some(row, 7).then_some(few(row) < 25)).collect::<BooleanArray>()),
        ),
        (
            "short",
            SqlType::Int2,
            Arc::new(all().map(|row| some(row, 9).then_some((few(row) - 25) as i16)).collect::<Int16Array>()),
        ),
        ("day", SqlType::Date, Arc::new(all().map(|row| Some((mixed(row) >> 48) as i32)).collect::<Date32Array>())),
        ("oid", SqlType::Oid, Arc::new(all().map(|row| Some(mixed(row) as u32)).collect::<UInt32Array>())),
        ("wide", SqlType::Int8, Arc::new(all().map(|row| some(row, 5).then_some(mixed(row))).collect::<Int64Array>())),
        ("ascends", SqlType::Int8, Arc::new(all().map(|row| Some(row * 3)).collect::<Int64Array>())),
        ("few", SqlType::Int8, Arc::new(all().map(|row| Some(few(row) << 40)).collect::<Int64Array>())),
        (
            "cents",
            SqlType::Numeric { precision: 9, scale: 2 },
            decimal(all().map(|row| Some((mixed(row) >> 40).into())).collect(), 9),
        ),
        (
            "money",
            SqlType::Numeric { precision: 15, scale: 2 },
            decimal(all().map(|row| some(row, 3).then_some(few(row).into())).collect(), 15),
        ),
        ("single", SqlType::Float4, Arc::new(all().map(|row| Some(mixed(row) as f32)).collect::<Float32Array>())),
        (
            "double",
            SqlType::Float8,
            Arc::new(all().map(|row| some(row, 4).then_some(few(row) as f64 / 8.0)).collect::<Float64Array>()),
        ),
        (
            "word",
            SqlType::Text,
            Arc::new(all().map(|row| some(row, 6).then(|| format!("word {}", few(row)))).collect::<StringViewArray>()),
        ),
        (
            "half",
            SqlType::Text,
            Arc::new(
                all().map(|row| Some(format!("{}", mixed(row).rem_euclid(rows / 4 + 1)))).collect::<StringViewArray>(),
            ),
        ),
        (
            "name",
            SqlType::Text,
            Arc::new(
                all()
                    .map(|row| some(row, 8).then(|| format!("the name of {}", mixed(row))))
                    .collect::<StringViewArray>(),
            ),
        ),
        ("never", SqlType::Int8, Arc::new(all().map(|_| None::<i64>).collect::<Int64Array>())),
        ("nothing", SqlType::Text, Arc::new(all().map(|_| None::<&str>).collect::<StringViewArray>())),
    ];
    let defs: Vec<ColumnDef> = columns
        .iter()
        .enumerate()
        .map(|(at, (name, sql_type, _))| column(at as i32 + 1, name, sql_type.clone()))
        .collect();
    let arrays = columns.into_iter().map(|(.., values)| values).collect();
    let batch = RecordBatch::try_new(ShardReader::schema(&defs), arrays).unwrap();
    (defs, batch)
}

/// Blocks decoded from pages equal those built from arrays of the same values.
#[tokio::test]
async fn pages_become_the_blocks_that_their_arrays_would() {
    for rows in [1, 100, BLOCK_ROWS as i64 * 3 + 1234] {
        let objects = bucket();
        let (columns, batch) = every_form(rows);
        let meta = shard(&objects, &columns, &batch).await;
        let reader = ShardReader::open(&objects, &meta).await.unwrap();
        for (position, column) in columns.iter().enumerate() {
            let blocks = blocks_of(&reader, position, column, true).await.expect("all these forms are known");
            let mut start = 0;
            for block in &blocks {
                let rows = BLOCK_ROWS.min(batch.num_rows() - start);
                let values = batch.column(position).slice(start, rows);
                let expected = ColumnBlock::from_array(&values).unwrap();
                let all = RowSet::all(rows);
                let form = values.data_type();
                let found = block.gather(&all, form).unwrap();
                assert_eq!(&found, &expected.gather(&all, form).unwrap(), "{} from {start}", column.name);
                assert_eq!(&found, &values, "{} from {start}", column.name);
                if *form != DataType::Utf8View {
                    let (ColumnBlock::Numbers(found), ColumnBlock::Numbers(expected)) = (block, &expected) else {
                        panic!("{} is no number", column.name);
                    };
                    assert_eq!(found.bytes(), expected.bytes(), "{} from {start}", column.name);
                }
                start += rows;
            }
            assert_eq!(start, batch.num_rows());
        }
    }
}

/// Uncached pages have the same values as cached ones, and the same rows pass predicates.
#[tokio::test]
async fn pages_that_pass_through_are_as_those_that_are_kept() {
    for rows in [1, 100, BLOCK_ROWS as i64 + 1234] {
        let objects = bucket();
        let (columns, batch) = every_form(rows);
        let meta = shard(&objects, &columns, &batch).await;
        let reader = ShardReader::open(&objects, &meta).await.unwrap();
        let mut passing_pages = 0;
        for (position, column) in columns.iter().enumerate() {
            let kept = blocks_of(&reader, position, column, true).await.unwrap();
            let passing = blocks_of(&reader, position, column, false).await.unwrap();
            let tests = tests_of(&column.sql_type);
            for (kept, passing) in kept.iter().zip(&passing) {
                passing_pages += usize::from(matches!(passing, ColumnBlock::Uncached(_)));
                let form = batch.column(position).data_type();
                let all = RowSet::all(match passing {
                    ColumnBlock::Uncached(page) => page.rows(),
                    _ => continue,
                });
                let mut some = all.clone();
                (0..some.rows()).filter(|row| row % 7 < 3 || row % 3000 < 700).for_each(|row| some.remove(row));
                let mut few = RowSet::none(all.rows());
                (0..all.rows()).step_by(997).for_each(|row| few.insert(row));
                for set in [&all, &some, &few] {
                    let found = passing.gather(set, form).unwrap();
                    assert_eq!(&found, &kept.gather(set, form).unwrap(), "{}", column.name);
                    for test in &tests {
                        let (mut found, mut expected) = (set.clone(), set.clone());
                        assert_eq!(passing.can_evaluate(test), kept.can_evaluate(test), "{} {test:?}", column.name);
                        let told = passing.filter(test, &mut found).unwrap();
                        assert_eq!(told, kept.filter(test, &mut expected).unwrap(), "{} {test:?}", column.name);
                        assert_eq!(found, expected, "{} {test:?}", column.name);
                    }
                }
            }
        }
        assert!(8 <= passing_pages, "{passing_pages} of {} columns", columns.len());
    }
}

/// Tests that some, all or none of the values of [`every_form`] pass.
fn tests_of(sql_type: &SqlType) -> Vec<Test> {
    let data: Vec<Datum> = match sql_type {
        SqlType::Text => ["", "word 17", "word 3", "zzz"].map(|text| Datum::Text(text.to_owned())).into(),
        SqlType::Numeric { .. } => [-40, 0, 17, 1 << 60].map(Datum::Decimal).into(),
        _ => [-40, 0, 17, 17 << 40, i64::MAX].map(Datum::Int).into(),
    };
    let mut tests = vec![Test::IsNull, Test::IsNotNull, Test::In(data.clone()), Test::In(Vec::new())];
    for datum in &data {
        for op in [
            CompareOp::Eq,
            CompareOp::NotEq,
            CompareOp::Less,
            CompareOp::LessEq,
            CompareOp::Greater,
            CompareOp::GreaterEq,
        ] {
            tests.push(Test::Compare(op, datum.clone()));
        }
        tests.push(Test::Between(data[0].clone(), datum.clone()));
        tests.push(Test::Any(vec![Test::IsNull, Test::Compare(CompareOp::Greater, datum.clone())]));
    }
    if *sql_type == SqlType::Text {
        // Lengths stand between a page's strings: some of them look like letters.
        for pattern in ["word 1%", "%1", "%rd 1%", "%1%7%", "%\u{7}%", "%name%9%", "% of -%1%"] {
            let pattern = LikePattern::parse(pattern).unwrap();
            tests.extend([false, true].map(|is_negated| Test::Like { pattern: pattern.clone(), is_negated }));
        }
    } else {
        tests.push(Test::In((0..40).map(|step| Datum::Int(step * 5)).collect()));
    }
    tests
}

/// Conformance of the cache: blocks of all samples, built from arrays and from pages, give the samples back.
#[tokio::test]
async fn all_samples_come_back_from_blocks() {
    let objects = bucket();
    let (columns, batch) = crate::writer::tests::all_samples_of_all_types();
    let meta = shard(&objects, &columns, &batch).await;
    let reader = ShardReader::open(&objects, &meta).await.unwrap();
    let all = RowSet::all(batch.num_rows());
    let parquet = reader.file().metadata.parquet_schema();
    for leaf in 0..parquet.num_columns() {
        let position = parquet.get_column_root_idx(leaf);
        let (def, values) = (&columns[position], batch.column(position));
        let block = ColumnBlock::from_array(values).unwrap();
        assert_eq!(&block.gather(&all, values.data_type()).unwrap(), values, "{}", def.sql_type);
        for is_kept in [true, false] {
            for block in blocks_of(&reader, leaf, def, is_kept).await.into_iter().flatten() {
                assert_eq!(&block.gather(&all, values.data_type()).unwrap(), values, "{}", def.sql_type);
            }
        }
    }
}

#[tokio::test]
async fn what_has_no_form_here_goes_through_arrow() {
    let objects = bucket();
    let (columns, batch) = crate::writer::tests::every_type();
    let meta = shard(&objects, &columns, &batch).await;
    let reader = ShardReader::open(&objects, &meta).await.unwrap();
    let direct = |def: &ColumnDef| {
        !matches!(def.sql_type, SqlType::Interval | SqlType::Bytea | SqlType::Uuid | SqlType::Array(_))
            && !matches!(def.sql_type, SqlType::Numeric { precision: 19.., .. })
    };
    let parquet = reader.file().metadata.parquet_schema();
    for leaf in 0..parquet.num_columns() {
        let def = &columns[parquet.get_column_root_idx(leaf)];
        let chunk = ChunkPageReader::open(reader.file(), 0, leaf, &def.sql_type, &reader.file().page_rows(0, leaf));
        assert_eq!(chunk.is_some(), direct(def), "{}", def.name);
    }
}

/// Packs numbers as the format demands.
fn packed(values: &[u64], width: u8) -> Vec<u8> {
    let mut bytes = vec![0; (values.len() * usize::from(width)).div_ceil(8)];
    for (place, value) in values.iter().enumerate() {
        for bit in 0..usize::from(width) {
            let at = place * usize::from(width) + bit;
            bytes[at / 8] |= u8::try_from(value >> bit & 1).unwrap() << (at % 8);
        }
    }
    bytes
}

proptest! {
    #[test]
    fn numbers_are_unpacked_at_every_width(width in 0_u8..=64, values in prop::collection::vec(any::<u64>(), 0..150)) {
        let mask = u64::MAX.checked_shr(64 - u32::from(width)).unwrap_or(0);
        let values: Vec<u64> = values.into_iter().map(|value| value & mask).collect();
        let mut lanes = vec![-1; values.len()];
        unpack::unpack(&packed(&values, width), width, &mut lanes);
        prop_assert_eq!(lanes, values.iter().copied().map(u64::cast_signed).collect::<Vec<_>>());
        let mut narrow = vec![u32::MAX; values.len()];
        unpack::unpack(&packed(&values, width), width, &mut narrow);
        prop_assert_eq!(narrow, values.into_iter().map(|value| value as u32).collect::<Vec<_>>());
    }

    #[test]
    fn bytes_of_anybody_are_numbers_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200), rows in 0_usize..500, width in 0_u8..=40) {
        let _ = rle_bit_packed::decode(&bytes, width, &mut vec![0_u32; rows]);
        let mut lanes = vec![0_i64; rows];
        let _ = rle_bit_packed::decode(&bytes, width, &mut lanes);
        let _ = delta::decode(&bytes, &mut lanes);
        let _ = rle_bit_packed::first_run(&bytes, width);
        let _ = super::page::decode_plain_strings(&bytes, rows);
    }
}

#[test]
fn runs_and_packed_numbers_take_turns() {
    // Three sevens, then eight numbers of three bits from zero to seven, of which five are wanted.
    let bytes = [3 << 1, 7, 1 << 1 | 1, 0b10_001_000, 0b1100_0110, 0b1111_1010];
    let mut lanes = [0_i64; 8];
    rle_bit_packed::decode(&bytes, 3, &mut lanes).unwrap();
    assert_eq!(lanes, [7, 7, 7, 0, 1, 2, 3, 4]);
    assert_eq!(rle_bit_packed::first_run(&bytes, 3), Some((3, 7)));
    assert!(rle_bit_packed::decode(&bytes[..4], 3, &mut lanes).is_err());
    assert!(rle_bit_packed::decode(&[0, 1], 1, &mut lanes).is_err(), "a run of nothing");
}
