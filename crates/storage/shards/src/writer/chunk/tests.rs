use std::sync::Arc;

use arrow::array::{
    ArrayRef, Date32Array, Float64Array, Int16Array, Int32Array, Int64Array, RecordBatch, StringViewArray, UInt32Array,
};
use arrow::buffer::NullBuffer;
use bytes::Bytes;
use parquet::basic::{BoundaryOrder, Encoding};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::statistics::Statistics;
use proptest::prelude::*;
use types::SqlType;

use super::*;
use crate::writer::WriteOptions;
use crate::writer::tests::{column, metadata, read, schema, written};

const OPTIONS: WriteOptions = WriteOptions { page_rows: 100, row_group_pages: 3 };

/// Writes values in batches of odd sizes and checks that Parquet's own reader returns them.
fn file_of(sql_type: SqlType, values: ArrayRef) -> Bytes {
    let columns = [column(1, "v", sql_type, 0 < values.null_count())];
    let all = RecordBatch::try_new(schema(&columns), vec![values]).unwrap();
    let batches: Vec<_> =
        (0..all.num_rows()).step_by(37).map(|row| all.slice(row, 37.min(all.num_rows() - row))).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (_, file) = runtime.block_on(written(&columns, &batches, OPTIONS));
    assert_eq!(read(&columns, &file), all);
    file
}

fn has(metadata: &ParquetMetaData, row_group: usize, wanted: Encoding) -> bool {
    metadata.row_group(row_group).column(0).encodings().any(|encoding| encoding == wanted)
}

/// Returns a strategy for numbers that vary in count, distance, order and runs.
fn numbers() -> impl Strategy<Value = Vec<i64>> {
    let any = prop::collection::vec(any::<i64>(), 1..700);
    let few = prop::collection::vec(0..20_i64, 1..700);
    let runs = prop::collection::vec((0..5_i64, 1..200_usize), 1..12)
        .prop_map(|runs| runs.into_iter().flat_map(|(value, count)| std::iter::repeat_n(value, count)).collect());
    let steps = prop::collection::vec(-3..1_000_i64, 1..700).prop_map(|steps| {
        steps
            .into_iter()
            .scan(0, |sum, step| {
                *sum += step;
                Some(*sum)
            })
            .collect()
    });
    prop_oneof![any, few, runs, steps]
}

fn validity() -> impl Strategy<Value = Vec<bool>> {
    let some = prop::collection::vec(any::<bool>(), 700);
    let blocks = prop::collection::vec(any::<bool>(), 7)
        .prop_map(|blocks| blocks.into_iter().flat_map(|block| std::iter::repeat_n(block, 100)).collect());
    prop_oneof![Just(vec![true; 700]), some, blocks]
}

proptest! {
    #[test]
    #[expect(clippy::cast_possible_truncation, reason = "any number will do")]
    fn numbers_come_back(numbers in numbers(), valid in validity()) {
        let nulls = NullBuffer::from(valid[..numbers.len().min(700)].to_vec());
        let numbers = &numbers[..nulls.len()];
        let nulls = || Some(nulls.clone());
        file_of(SqlType::Int8, Arc::new(Int64Array::new(numbers.to_vec().into(), nulls())));
        let four: Vec<i32> = numbers.iter().map(|number| *number as i32).collect();
        file_of(SqlType::Int4, Arc::new(Int32Array::new(four.clone().into(), nulls())));
        file_of(SqlType::Date, Arc::new(Date32Array::new(four.into(), nulls())));
        let unsigned: Vec<u32> = numbers.iter().map(|number| *number as u32).collect();
        file_of(SqlType::Oid, Arc::new(UInt32Array::new(unsigned.into(), nulls())));
        let two: Vec<i16> = numbers.iter().map(|number| *number as i16).collect();
        file_of(SqlType::Int2, Arc::new(Int16Array::new(two.into(), nulls())));
        let floats: Vec<f64> = numbers.iter().map(|number| *number as f64 / 8.0).collect();
        file_of(SqlType::Float8, Arc::new(Float64Array::new(floats.into(), nulls())));
    }

    #[test]
    fn strings_come_back(texts in prop::collection::vec(prop::option::of("[ab]{0,3}|[a-c]{11,14}|[a-z]{8}[ab]{10}"), 1..700)) {
        file_of(SqlType::Text, Arc::new(StringViewArray::from(texts)));
    }
}

#[test]
fn a_full_dictionary_ends_and_its_pages_stay() {
    // The first page has few strings; later ones have more than a dictionary takes.
    let text = |row: usize| if row < 120 { format!("few {}", row % 3) } else { format!("{row}").repeat(10_000) };
    let texts: StringViewArray = (0..300).map(|row| Some(text(row))).collect();
    let metadata = metadata(&file_of(SqlType::Text, Arc::new(texts)));
    assert!(has(&metadata, 0, Encoding::RLE_DICTIONARY) && has(&metadata, 0, Encoding::PLAIN));
    // Counts of data pages only.
    let of_values = metadata.row_group(0).column(0).page_encoding_stats_mask().unwrap();
    assert!(of_values.is_set(Encoding::RLE_DICTIONARY) && of_values.is_set(Encoding::PLAIN));
}

#[test]
fn pages_and_chunks_have_bounds() {
    let numbers: Int32Array = (0..300).map(|row| ((100..200).contains(&row) || row % 2 == 0).then_some(row)).collect();
    let file = file_of(SqlType::Int4, Arc::new(numbers));
    let metadata = metadata(&file);
    let ColumnIndexMetaData::INT32(index) = &metadata.column_index().unwrap()[0][0] else { panic!("of 32 bits") };
    assert_eq!(index.min_values_iter().collect::<Vec<_>>(), [Some(&0), Some(&100), Some(&200)]);
    assert_eq!(index.max_values_iter().collect::<Vec<_>>(), [Some(&98), Some(&199), Some(&298)]);
    assert_eq!((0..3).map(|page| index.null_count(page)).collect::<Vec<_>>(), [Some(50), Some(0), Some(50)]);
    assert_eq!(metadata.column_index().unwrap()[0][0].get_boundary_order(), Some(BoundaryOrder::ASCENDING));
    let statistics = metadata.row_group(0).column(0).statistics().unwrap();
    let Statistics::Int32(values) = statistics else { panic!("of 32 bits") };
    assert_eq!((values.min_opt(), values.max_opt(), values.null_count_opt()), (Some(&0), Some(&298), Some(100)));
}

#[test]
fn pages_without_a_value_have_no_bounds() {
    let texts: StringViewArray = (0..250).map(|row| (200 <= row).then(|| format!("{row:0>200}"))).collect();
    let metadata = metadata(&file_of(SqlType::Text, Arc::new(texts)));
    let ColumnIndexMetaData::BYTE_ARRAY(index) = &metadata.column_index().unwrap()[0][0] else { panic!("of strings") };
    assert!(index.is_null_page(0) && index.is_null_page(1) && !index.is_null_page(2));
    let (min, max) = (index.min_value(2).unwrap(), index.max_value(2).unwrap());
    assert!(min.len() < 200 && max.len() < 200 && min < max, "long strings are cut");
    let statistics = metadata.row_group(0).column(0).statistics().unwrap();
    assert!(!statistics.min_is_exact() && !statistics.max_is_exact());
}

#[test]
fn strings_too_long_for_one_page_are_several() {
    let long = "x".repeat(PAGE_BYTES_MAX / 2);
    let texts = StringViewArray::from(vec![long.as_str(), "short", &long, "short"]);
    let pages = split_into_pages(&[&texts]);
    let rows: Vec<Vec<usize>> = pages.iter().map(|page| page.iter().map(Array::len).collect()).collect();
    assert_eq!(rows, [vec![2], vec![2]]);
    assert!(split_into_pages(&[&StringViewArray::from(Vec::<&str>::new())]).is_empty());
}

#[test]
fn runs_of_codes_take_little() {
    let codes: Vec<u64> = (0..65_536).map(|row| row / 1_000).collect();
    let mut bytes = Vec::new();
    rle_bit_packed::append_codes(&codes, 66, &mut bytes);
    assert!(bytes.len() < 1_000, "{} bytes", bytes.len());
}
