//! Tests with damaged bytes: a block either fails to open, or all reads and comparisons of it work without a panic.

use bytes::Bytes;

use crate::block_header::fix_checksums;
use crate::golden_tests::blocks;
use crate::test_columns::{like, numbers};
use crate::*;

/// Returns the number of damaged blocks to try; nightly runs try more.
fn try_count() -> u64 {
    if std::env::var_os("KILN_NIGHTLY").is_some() { 2_000_000 } else { 20_000 }
}

/// Runs all reads and comparisons on a block.
fn exercise(block: &Block) {
    let header = block.header();
    let mut buffer = LanesBuffer::new();
    for vector in 0..header.vector_count() {
        block.validity(vector, &mut buffer);
        let _ = block.floats(vector, &mut buffer, &mut [0.0; VECTOR_ROWS]);
        let lanes = block.lanes(vector, &mut buffer);
        assert_eq!(lanes.is_ok(), header.kind.is_integer() && header.encoding != Encoding::PlainWide);
    }
    let mut rows = RowSet::all(header.rows);
    rows.remove_range(3.min(header.rows)..header.rows - header.rows / 2);
    for condition in [
        Condition::Compare(Comparison::NotEqual, header.min),
        Condition::Between(header.min, header.max.midpoint(header.min)),
        Condition::In((0..20).map(|value| value * 3).collect()),
        Condition::IsNull,
    ] {
        let _ = block.filter_integers(&condition, &mut rows.clone());
    }
    for condition in [Condition::Compare(Comparison::Less, 0.5), Condition::In((0..20).map(f64::from).collect())] {
        let _ = block.filter_floats(&condition, &mut rows.clone());
    }

    let contains = like(b"", &[b"special", b"re"], b"", false);
    for condition in [contains, TextCondition::Compare(Comparison::NotEqual, b"final ".to_vec())] {
        let mut kept = rows.clone();
        assert_eq!(block.filter_text(&condition, &mut kept).is_ok(), header.kind == ValueKind::Text);
    }
    let _ = block.gather_text(&rows);
    let _ = block.read_text();
    let _ = block.gather::<i64>(&rows);
    let _ = block.read::<i128>();
    let _ = block.read::<u32>();
    let _ = block.read::<f32>();
    let _ = block.read::<f64>();
}

#[test]
fn bytes_without_a_meaning_are_refused() {
    for seed in 0..2000 {
        let length = numbers(seed).next().unwrap_or_default() % 700;
        let bytes: Vec<u8> = numbers(seed).take(length as usize).map(|number| number as u8).collect();
        assert!(Block::open(Bytes::from(bytes)).is_err());
    }
}

#[test]
fn every_bit_is_guarded() {
    for (name, bytes) in blocks() {
        for bit in (0..bytes.len() * 8).step_by(if bytes.len() < 3000 { 3 } else { 101 }) {
            let mut damaged = bytes.to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Block::open(Bytes::from(damaged)).is_err(), "bit {bit} of {name}");
        }
        for length in (0..bytes.len()).step_by(37) {
            assert!(Block::open(bytes.slice(..length)).is_err(), "{length} bytes of {name}");
        }
    }
}

/// Recomputes checksums after the damage, so that the structural checks are tested.
#[test]
fn damaged_blocks_are_refused_or_read() {
    let blocks = blocks();
    let mut opened = 0;
    for seed in 0..try_count() {
        let mut numbers = numbers(seed);
        let mut next = |below: usize| (numbers.next().unwrap_or_default() % below.max(1) as u64) as usize;
        let (_, bytes) = &blocks[next(blocks.len())];
        let mut damaged = bytes.to_vec();
        for _ in 0..=next(4) {
            // Half of the damage goes to the header: it is small and decides most.
            let reach =
                if next(2) == 0 { damaged.len().min(BlockHeader::header_bytes_for(2000)) } else { damaged.len() };
            let at = next(reach);
            damaged[at] = match next(4) {
                0 => 0,
                1 => u8::MAX,
                2 => damaged[at] ^ 1 << next(8),
                _ => next(256) as u8,
            };
        }
        if next(8) == 0 {
            damaged.truncate(next(damaged.len()));
        }
        fix_checksums(&mut damaged, next(2) == 0);
        if let Ok(block) = Block::open(Bytes::from(damaged)) {
            exercise(&block);
            opened += 1;
        }
    }
    assert!(try_count() / 20 < opened, "only {opened} damaged blocks could be opened");
}
