//! Golden files: blocks of every encoding as stored when the format version was introduced, which must stay readable.

use std::path::PathBuf;

use bytes::Bytes;

use crate::block_header::VERSION;
use crate::test_columns::{Column, Nulls, Shape, bitmap, words};
use crate::*;

/// Returns a small block of every encoding and type, with a name.
pub(crate) fn blocks() -> Vec<(&'static str, Bytes)> {
    let mut blocks = Vec::new();
    let mut add = |name, shape, nulls, rows| {
        let column = Column { shape, nulls, rows, seed: 11 };
        let (values, validity) = (column.integers(), column.validity());
        blocks.push((name, encode_i64(&values, bitmap(validity.as_ref())).expect("a block")));
    };
    add("empty", Shape::Constant, Nulls::None, 0);
    add("constant", Shape::Constant, Nulls::None, 1500);
    add("all_null", Shape::Constant, Nulls::All, 1500);
    add("packed_u8", Shape::Narrow(5), Nulls::None, 1500);
    add("packed_u16_nullable", Shape::Narrow(11), Nulls::Few, 1500);
    add("packed_u32", Shape::Narrow(19), Nulls::None, 1025);
    add("packed_u64", Shape::Random, Nulls::None, 1025);
    add("patched", Shape::Outliers(6), Nulls::Few, 3000);
    add("runs", Shape::Runs(200), Nulls::None, 5000);
    add("runs_nullable", Shape::Runs(200), Nulls::Runs, 5000);
    add("plain", Shape::Extremes, Nulls::Few, 70);
    let validity = ValidityBitmap::new(&[0b1101_0111], 0);
    let wide: Vec<i128> = (0..8).map(|row| i128::from(row) << 120).collect();
    blocks.push(("wide", encode_i128(&wide, Some(validity)).expect("a block")));
    let near: Vec<i128> = (0..8).map(|row| (1 << 100) + row * row).collect();
    blocks.push(("wide_packed", encode_i128(&near, Some(validity)).expect("a block")));
    let truths: Vec<bool> = (0..8).map(|row| row % 3 == 0).collect();
    blocks.push(("boolean", encode_bool(&truths, Some(validity)).expect("a block")));
    blocks.push(("date", encode_i32(&[9_131, 9_132, 9_200, -1], None).expect("a block")));
    blocks.push(("codes", encode_codes(&[3, 0, 2, 1, 1], None).expect("a block")));
    let prices: Vec<f64> =
        (0..1100).map(|row| if row == 700 { f64::NAN } else { f64::from(row * row) / 100.0 }).collect();
    blocks.push(("decimal_f64", encode_f64(&prices, None).expect("a block")));
    blocks.push((
        "keys_f64",
        encode_f64(&[0.1, -0.0, f64::INFINITY, 1e-300, 2.5, 0.0, 1.0, -7.0], Some(validity)).expect("a block"),
    ));
    let singles: Vec<f32> = (0..1100).map(|row| (row % 300) as f32 / 8.0).collect();
    blocks.push(("decimal_f32", encode_f32(&singles, None).expect("a block")));
    let words = words(1100, 6);
    let strings: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    blocks.push(("text", encode_text(&strings[..8], Some(validity), Compression::None).expect("a block")));
    blocks.push(("text_compressed", encode_text(&strings, None, Compression::Symbols).expect("a block")));
    blocks
}

/// The choice of encoding, width or symbol table may change; the values of stored blocks must not.
#[test]
fn blocks_are_read_as_ever() {
    for (name, bytes) in blocks() {
        let golden = Block::open(read_golden(name, &bytes).into()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let block = Block::open(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        let (was, is) = (golden.header(), block.header());
        assert_eq!(
            (was.kind, was.encoding, was.rows, was.null_count),
            (is.kind, is.encoding, is.rows, is.null_count),
            "{name}"
        );
        assert_eq!((was.min, was.max), (is.min, is.max), "{name}");
        assert_eq!(golden.read_text(), block.read_text(), "{name} reads");
        assert_eq!(golden.read::<i128>(), block.read::<i128>(), "{name} reads");
        for row in 0..is.rows {
            assert_eq!(golden.key(row), block.key(row), "row {row} of {name}");
        }
    }
}

#[test]
fn a_dictionary_is_stored_as_ever() {
    let mut builder = DictionaryBuilder::default();
    for word in ["delta", "alpha", "", "charlie"] {
        builder.insert(word.as_bytes());
    }
    let (dictionary, _) = builder.finish().unwrap();
    assert!(read_golden("dictionary", dictionary.bytes()) == *dictionary.bytes(), "the stored form has changed");
}

/// Reads a golden file; creates it if it is missing and `KILN_WRITE_GOLDEN` is set.
#[track_caller]
fn read_golden(name: &str, bytes: &Bytes) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.v{VERSION}.bin"));
    if std::env::var_os("KILN_WRITE_GOLDEN").is_some() && !path.exists() {
        std::fs::write(&path, bytes).unwrap();
    }
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
