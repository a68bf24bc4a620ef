use bytes::Bytes;
use proptest::prelude::*;

use crate::float_encoding::f64_to_key;
use crate::kernels::Lane;
use crate::test_columns::{Column, Nulls, SIZES, Shape, bitmap, cases, columns, is_valid, numbers, words};
use crate::*;

/// Checks that every way of reading returns the encoded values.
#[track_caller]
fn check_block<T: BlockValue + PartialEq + std::fmt::Debug>(
    bytes: &Bytes,
    expected: &[T],
    validity: Option<&Vec<u8>>,
    seed: u64,
) {
    assert_eq!(bytes.as_ptr().align_offset(64), 0, "a block lies where kernels like it");
    let block = Block::open(bytes.clone()).expect("an encoded block opens");
    let header = block.header();
    let valid: Vec<bool> = (0..expected.len()).map(|row| is_valid(validity, row)).collect();
    assert_eq!((header.rows, header.null_count), (expected.len(), valid.iter().filter(|valid| !**valid).count()));
    let all = block.read::<T>().unwrap();
    assert_eq!(all.values.len(), expected.len());
    for row in 0..expected.len() {
        let value = valid[row].then_some(expected[row]);
        assert_eq!(all.get(row), value, "row {row} of {:?}", header.encoding);
        if row % 97 == 0 {
            assert_eq!(block.value::<T>(row).unwrap(), value, "row {row} alone of {:?}", header.encoding);
        }
    }
    let mut buffer = LanesBuffer::new();
    for vector in 0..header.vector_count() {
        let mask = block.validity(vector, &mut buffer);
        for row in 0..VECTOR_ROWS {
            let set = mask[row / 64] >> (row % 64) & 1 == 1;
            assert_eq!(set, valid.get(vector * VECTOR_ROWS + row) == Some(&true), "row {row} of vector {vector}");
        }
    }
    for every in [2, 9, 300, 5000] {
        let mut rows = RowSet::none(expected.len());
        numbers(seed).take(expected.len() / every).for_each(|row| rows.insert(row as usize % expected.len()));
        let some = block.gather::<T>(&rows).unwrap();
        for (at, row) in rows.iter().enumerate() {
            assert_eq!(
                some.get(at),
                valid[row].then_some(expected[row]),
                "row {row} gathered from {:?}",
                header.encoding
            );
        }
    }
}

/// Checks lanes, bases and bounds against the values.
#[track_caller]
fn check_lanes(bytes: &Bytes, expected: &[i64], validity: Option<&Vec<u8>>) {
    let block = Block::open(bytes.clone()).unwrap();
    let header = block.header();
    let mut buffer = LanesBuffer::new();
    for (vector, entry) in header.vector_headers.iter().enumerate() {
        let rows = header.rows_in_vector(vector);
        let lanes: Vec<u64> = match block.lanes(vector, &mut buffer).unwrap() {
            Lanes::U8(lanes) => lanes.map(Lane::extend).to_vec(),
            Lanes::U16(lanes) => lanes.map(Lane::extend).to_vec(),
            Lanes::U32(lanes) => lanes.map(Lane::extend).to_vec(),
            Lanes::U64(lanes) => lanes.to_vec(),
        };
        let mut bounds = None;
        for (row, lane) in lanes[..rows].iter().enumerate() {
            let at = vector * VECTOR_ROWS + row;
            if is_valid(validity, at) {
                assert_eq!(entry.base.wrapping_add(*lane as i64), expected[at], "row {at} of {:?}", header.encoding);
                assert!(!header.null_is_zero || *lane != 0, "row {at} is not NULL");
                let (min, max) = bounds.unwrap_or((expected[at], expected[at]));
                bounds = Some((min.min(expected[at]), max.max(expected[at])));
            } else if header.null_is_zero {
                assert_eq!(*lane, 0, "row {at} is NULL");
            }
        }
        assert_eq!((entry.min, entry.max), bounds.unwrap_or_default(), "bounds of vector {vector}");
    }
}

fn check_floats(column: Column) {
    let (values, validity) = (column.floats(), column.validity());
    let valid = bitmap(validity.as_ref());
    let keys =
        |values: Values<f64>| (0..values.values.len()).map(|row| values.get(row).map(f64_to_key)).collect::<Vec<_>>();
    let expected = |values: &[f64]| {
        let value = |(row, value): (usize, &f64)| is_valid(validity.as_ref(), row).then(|| f64_to_key(*value));
        values.iter().enumerate().map(value).collect::<Vec<_>>()
    };
    let singles: Vec<f32> = values.iter().map(|value| *value as f32).collect();
    let wide: Vec<f64> = singles.iter().map(|value| f64::from(*value)).collect();
    for (bytes, values) in
        [(encode_f64(&values, valid).unwrap(), &values), (encode_f32(&singles, valid).unwrap(), &wide)]
    {
        let block = Block::open(bytes).unwrap();
        assert!(keys(block.read::<f64>().unwrap()) == expected(values), "{column:?} as {:?}", block.header().kind);
        let (mut buffer, mut numbers) = (LanesBuffer::new(), [0.0; VECTOR_ROWS]);
        for (row, value) in values.iter().enumerate() {
            if row % VECTOR_ROWS == 0 {
                block.floats(row / VECTOR_ROWS, &mut buffer, &mut numbers).unwrap();
            }
            if is_valid(validity.as_ref(), row) {
                assert_eq!(f64_to_key(numbers[row % VECTOR_ROWS]), f64_to_key(*value), "row {row} of {column:?}");
                if row % 89 == 0 {
                    assert_eq!(block.value::<f64>(row).unwrap().map(f64_to_key), Some(f64_to_key(*value)));
                }
            }
        }
        assert!(block.lanes(0, &mut buffer).is_err());
    }
}

proptest! {
    #![proptest_config(cases(60))]
    #[test]
    fn floats_come_back(column in columns()) {
        check_floats(column);
    }
}

#[test]
fn floats_with_few_decimals_are_packed_by_their_digits() {
    let prices: Vec<f64> = numbers(1).take(65_536).map(|number| (number % 1_000_000) as f64 / 100.0).collect();
    let block = Block::open(encode_f64(&prices, None).unwrap()).unwrap();
    assert!(block.header().decimal_exponents.is_some() && block.header().width <= 20, "{} bits", block.header().width);
    let singles: Vec<f32> = prices.iter().map(|price| (price / 8.0) as i32 as f32 / 4.0).collect();
    let block = Block::open(encode_f32(&singles, None).unwrap()).unwrap();
    assert!(block.header().decimal_exponents.is_some() && block.header().width <= 20, "{} bits", block.header().width);
    assert_eq!(block.read::<f32>().unwrap().values, singles);
}

fn check_integers(column: Column) {
    let (values, validity) = (column.integers(), column.validity());
    let valid = bitmap(validity.as_ref());
    let bytes = encode_i64(&values, valid).unwrap();
    check_block(&bytes, &values, validity.as_ref(), column.seed);
    check_lanes(&bytes, &values, validity.as_ref());
    let narrow: Vec<i32> = values.iter().map(|value| *value as i32).collect();
    check_block(&encode_i32(&narrow, valid).unwrap(), &narrow, validity.as_ref(), column.seed);
    let codes: Vec<u32> = values.iter().map(|value| *value as u32).collect();
    check_block(&encode_codes(&codes, valid).unwrap(), &codes, validity.as_ref(), column.seed);
    let truths: Vec<bool> = values.iter().map(|value| value & 1 == 1).collect();
    check_block(&encode_bool(&truths, valid).unwrap(), &truths, validity.as_ref(), column.seed);
    for shift in [0, 30, 64] {
        let wide: Vec<i128> = values.iter().map(|value| i128::from(*value) << shift).collect();
        check_block(&encode_i128(&wide, valid).unwrap(), &wide, validity.as_ref(), column.seed);
    }
}

proptest! {
    #![proptest_config(cases(60))]
    #[test]
    fn integers_come_back(column in columns()) {
        check_integers(column);
    }
}

#[test]
fn integers_of_every_size_come_back() {
    for rows in SIZES {
        for nulls in [Nulls::None, Nulls::Few] {
            check_integers(Column { shape: Shape::Outliers(9), nulls, rows, seed: 5 });
        }
    }
}

#[test]
fn the_far_ends_of_128_bits_come_back() {
    let values = [i128::MIN, i128::MAX, 0, -1, i128::MIN + 1, 1 << 100];
    let validity = vec![0b11_1011];
    check_block(&encode_i128(&values, None).unwrap(), &values, None, 1);
    check_block(&encode_i128(&values, bitmap(Some(&validity))).unwrap(), &values, Some(&validity), 1);
    let near = [i128::MAX, i128::MAX - 3, i128::MAX - i128::from(i64::MAX)];
    check_block(&encode_i128(&near, None).unwrap(), &near, None, 1);
}

#[test]
fn each_width_is_packed_as_such() {
    for width in 1..=64u32 {
        let column = Column { shape: Shape::Narrow(width.min(62)), nulls: Nulls::None, rows: 3000, seed: width.into() };
        let mut values = column.integers();
        values.iter_mut().for_each(|value| *value &= (u64::MAX >> (64 - width)) as i64);
        (values[0], values[1]) = (0, (u64::MAX >> (64 - width)) as i64);
        let bytes = encode_i64(&values, None).unwrap();
        check_block(&bytes, &values, None, 3);
        check_lanes(&bytes, &values, None);
    }
}

#[test]
fn patches_are_few_and_save_bytes() {
    let column = Column { shape: Shape::Outliers(8), nulls: Nulls::Few, rows: 65_536, seed: 1 };
    let validity = column.validity();
    let block = Block::open(encode_i64(&column.integers(), bitmap(validity.as_ref())).unwrap()).unwrap();
    assert_eq!((block.header().encoding, block.header().lane_bits), (Encoding::Packed, 32));
    assert!(block.header().width <= 9, "{} bits", block.header().width);
    assert!((1..1024).contains(&block.header().item_count), "{} patches", block.header().item_count);
}

#[test]
fn what_a_block_does_not_hold_is_refused() {
    assert_eq!(encode_i64(&vec![0; BLOCK_ROWS + 1], None), Err(Error::TooLarge("a block has at most 65,536 rows")));
    assert!(encode_i64(&[1; 9], Some(ValidityBitmap::new(&[1], 0))).is_err());
    let block = Block::open(encode_i64(&[1], None).unwrap()).unwrap();
    assert_eq!(block.read::<i32>(), Err(Error::TypeMismatch));
}

fn check_text(words: &[Vec<u8>], column: Column) {
    let validity = column.validity();
    let values: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    for compression in [Compression::None, Compression::Symbols] {
        let block = Block::open(encode_text(&values, bitmap(validity.as_ref()), compression).unwrap()).unwrap();
        let all = block.read_text().unwrap();
        let expected = |row: usize| is_valid(validity.as_ref(), row).then_some(values[row]);
        let mut one = Vec::new();
        for row in 0..values.len() {
            assert_eq!(all.get(row), expected(row), "row {row} of {:?}", block.header().encoding);
            if row % 61 == 0 {
                one.clear();
                assert_eq!(block.append_text(row, &mut one).unwrap().then_some(one.as_slice()), expected(row));
            }
        }
        let mut rows = RowSet::none(values.len());
        numbers(column.seed).take(values.len() / 40).for_each(|row| rows.insert(row as usize % values.len()));
        let some = block.gather_text(&rows).unwrap();
        assert!(rows.iter().enumerate().all(|(at, row)| some.get(at) == expected(row)));
        assert!(block.read::<i64>().is_err() && block.lanes(0, &mut LanesBuffer::new()).is_err());
    }
}

proptest! {
    #![proptest_config(cases(30))]
    #[test]
    fn strings_come_back(column in columns()) {
        check_text(&words(column.rows, column.seed), column);
    }
}

#[test]
fn strings_are_compressed_where_that_pays() {
    let words = words(20_000, 2);
    let values: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let plain = encode_text(&values, None, Compression::None).unwrap();
    let small = encode_text(&values, None, Compression::Symbols).unwrap();
    assert_eq!(Block::open(small.clone()).unwrap().header().encoding, Encoding::CompressedHeap);
    assert!(small.len() * 2 < plain.len(), "{} of {} bytes", small.len(), plain.len());
    let noise: Vec<Vec<u8>> = (0..2000).map(|row| numbers(row).take(30).map(|number| number as u8).collect()).collect();
    check_text(&noise, Column { shape: Shape::Random, nulls: Nulls::None, rows: 2000, seed: 1 });
    let values: Vec<&[u8]> = noise.iter().map(Vec::as_slice).collect();
    let block = Block::open(encode_text(&values, None, Compression::Symbols).unwrap()).unwrap();
    assert_eq!(block.header().encoding, Encoding::Heap);
}

#[test]
fn strings_of_all_bytes_come_back_compressed() {
    let column = Column { shape: Shape::Constant, nulls: Nulls::Few, rows: 9000, seed: 3 };
    let of_bytes = |bytes: &[u8], length: usize| -> Vec<Vec<u8>> {
        let lengths = numbers(7).map(|number| number as usize % (length + 1));
        let string =
            |length| numbers(length as u64).take(length).map(|number| bytes[number as usize % bytes.len()]).collect();
        lengths.take(9000).map(string).collect()
    };
    for (bytes, length) in [(&[0][..], 30), (&[255], 30), (&[0, 255], 9), (b"a", 1), (&[0, 1, 2], 3), (b"ab\0", 300)] {
        check_text(&of_bytes(bytes, length), column);
    }
}
