//! Benchmarks of the kernels: `cargo bench -p blocks [-- FILTER]`.
//!
//! Measures each kernel on each instruction set of the machine with data in the first-level cache, and entire blocks
//! from memory on the instruction set that `KILN_ISA` selects.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]
#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::hint::black_box;
use std::time::Instant;

use blocks::kernels::{DecimalEncoding, Kernels, Lane, Word};
use blocks::{
    Block, Comparison, Compression, Condition, DictionaryBuilder, LanesBuffer, LikePattern, RowSet, TextBuffer,
    TextCondition, VECTOR_ROWS, ValidityBitmap,
};

fn main() {
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let bench = Bench { filter };
    println!("{:<44} {:>9} {:>12} {:>10} {:>10}", "kernel", "isa", "ns a vector", "G values/s", "GB/s");
    for kernels in Kernels::available() {
        lanes::<u8>(&bench, kernels, &[3, 8]);
        lanes::<u16>(&bench, kernels, &[12]);
        lanes::<u32>(&bench, kernels, &[17, 23]);
        lanes::<u64>(&bench, kernels, &[37, 55]);
        numbers(&bench, kernels);
    }
    println!();
    println!("{:<44} {:>9} {:>12} {:>10} {:>10}", "block", "isa", "ns a vector", "G values/s", "GB/s packed");
    blocks(&bench);
    single_blocks(&bench);
    floats(&bench);
    text(&bench);
}

struct Bench {
    filter: String,
}

impl Bench {
    /// Prints the best of several measurements. `vectors` is the number of vectors that the code processes, `bytes` the
    /// size of a vector.
    fn run(&self, name: &str, isa: &str, vectors: usize, bytes: f64, mut code: impl FnMut()) {
        if !name.contains(&self.filter) {
            return;
        }
        let mut best = f64::MAX;
        for _ in 0..9 {
            let mut rounds = 0;
            let start = Instant::now();
            while rounds == 0 || start.elapsed().as_millis() < 12 {
                for _ in 0..(512 / vectors).max(1) {
                    code();
                }
                rounds += (512 / vectors).max(1);
            }
            best = best.min(start.elapsed().as_secs_f64() * 1e9 / (rounds * vectors) as f64);
        }
        println!("{name:<44} {isa:>9} {best:>12.1} {:>10.2} {:>10.1}", VECTOR_ROWS as f64 / best, bytes / best);
    }
}

#[repr(align(64))]
#[derive(Clone)]
struct AlignedLanes<T>(T);

fn lanes<T: Lane>(bench: &Bench, kernels: &Kernels, widths: &[usize]) {
    let isa = kernels.isa().name();
    let decoded = (VECTOR_ROWS * T::BITS / 8) as f64;
    let bits = T::BITS;
    for &width in widths {
        let words: Vec<AlignedLanes<Word>> = vec![AlignedLanes([0x5a; 128]); width];
        let words: Vec<Word> = words.into_iter().map(|word| word.0).collect();
        let mut place = vec![[0; 128]; width + 1];
        let words = aligned(&mut place, &words);
        let mut lanes = Box::new(AlignedLanes([T::default(); VECTOR_ROWS]));
        let high = T::truncate((u64::MAX >> (64 - width)) / 3);
        bench.run(&format!("unpack u{bits} from {width} bits"), isa, 1, decoded, || {
            kernels.unpack(black_box(words), black_box(width), black_box(&mut lanes.0));
        });
        bench.run(&format!("unpack and compare u{bits} of {width}"), isa, 1, decoded, || {
            kernels.unpack(black_box(words), black_box(width), &mut lanes.0);
            black_box(kernels.mask_between(&lanes.0, T::truncate(1), black_box(high)));
        });
        let mut packed = vec![[0; 128]; width];
        bench.run(&format!("pack u{bits} to {width} bits"), isa, 1, decoded, || {
            kernels.pack(black_box(&lanes.0), black_box(width), black_box(&mut packed));
        });
        bench.run(&format!("one row of u{bits}, {width} bits, x 64"), isa, 1, 64.0 * T::BITS as f64 / 8.0, || {
            for row in 0..64 {
                black_box(T::unpack_one(black_box(words), width, row * 16 + 3));
            }
        });
    }
    let lanes = Box::new(AlignedLanes([T::truncate(77); VECTOR_ROWS]));
    let mut wide = Box::new(AlignedLanes([5; VECTOR_ROWS]));
    bench.run(&format!("compare u{bits}"), isa, 1, decoded, || {
        black_box(kernels.mask_between(black_box(&lanes.0), T::truncate(1), black_box(T::truncate(50))));
    });
    let mut mask = [u64::MAX; VECTOR_ROWS / 64];
    bench.run(&format!("compare u{bits}, of some rows"), isa, 1, decoded, || {
        kernels.retain_between(black_box(&lanes.0), T::truncate(1), black_box(T::truncate(50)), black_box(&mut mask));
    });
    let table = vec![255; 4096];
    bench.run(&format!("lookup u{bits}"), isa, 1, decoded, || {
        black_box(kernels.mask_by_lookup(black_box(&lanes.0), black_box(9), black_box(&table)));
    });
    bench.run(&format!("add base to u{bits}"), isa, 1, 8.0 * VECTOR_ROWS as f64, || {
        kernels.widen(black_box(&lanes.0), black_box(9), black_box(&mut wide.0));
    });
    let mut lanes = lanes;
    bench.run(&format!("take base from i64, giving u{bits}"), isa, 1, 8.0 * VECTOR_ROWS as f64, || {
        kernels.narrow(black_box(&wide.0), black_box(9), black_box(&mut lanes.0));
    });
}

/// Measures the kernels over 64-bit integers, in bytes read.
fn numbers(bench: &Bench, kernels: &Kernels) {
    let isa = kernels.isa().name();
    let bytes = 8.0 * VECTOR_ROWS as f64;
    let vector = |of: &dyn Fn(usize) -> i64| Box::new(AlignedLanes(std::array::from_fn::<i64, VECTOR_ROWS, _>(of)));
    let (x, y) = (vector(&|row| number(row) as i64), vector(&|row| number(row / 3) as i64));
    let mut out = vector(&|_| 0);
    bench.run("bounds of i64", isa, 1, bytes, || {
        black_box(kernels.min_max(black_box(&x.0)));
    });
    bench.run("changes of i64", isa, 1, bytes, || {
        black_box(kernels.count_changes(black_box(&y.0)));
    });
    bench.run("x * f + y * g", isa, 1, 2.0 * bytes, || {
        kernels.linear_combination(
            black_box(&x.0),
            black_box(7),
            black_box(&y.0),
            black_box(-3),
            black_box(&mut out.0),
        );
    });
    bench.run("x * f + c", isa, 1, bytes, || {
        kernels.scale_and_shift(black_box(&x.0), black_box(7), black_box(-3), black_box(&mut out.0));
    });
    bench.run("x * y", isa, 1, 2.0 * bytes, || {
        kernels.product(black_box(&x.0), black_box(&y.0), black_box(&mut out.0));
    });
    for (groups, is_few) in [(4, true), (8, false)] {
        let of_rows: Vec<u32> = (0..VECTOR_ROWS).map(|row| (number(row) % groups) as u32).collect();
        let mut sums = [0; 8];
        bench.run(&format!("sums of {groups} groups"), isa, 1, bytes + bytes / 2.0, || {
            kernels.add_to_sums(black_box(&x.0), black_box(&of_rows), is_few, black_box(&mut sums));
        });
    }
    let cents = DecimalEncoding::new((0, 2));
    let digits = vector(&|row| (number(row) % 10_000_000) as i64);
    let mut prices = Box::new(AlignedLanes([0.0; VECTOR_ROWS]));
    bench.run("floats of digits", isa, 1, bytes, || {
        kernels.decode_decimals(black_box(&digits.0), cents, black_box(&mut prices.0));
    });
    // The key of a non-negative number is its bits.
    let keys = Box::new(AlignedLanes(prices.0.map(|price| price.to_bits() as i64)));
    bench.run("digits of f64", isa, 1, bytes, || {
        black_box(kernels.encode_decimals(black_box(&keys.0), cents, false, black_box(&mut out.0)));
    });
}

/// Packed words aligned as in a block.
fn aligned<'a>(place: &'a mut [Word], words: &[Word]) -> &'a [Word] {
    let bytes = place.as_flattened_mut();
    let start = bytes.as_ptr().align_offset(64);
    let bytes = &mut bytes[start..start + words.len() * 128];
    bytes.copy_from_slice(words.as_flattened());
    bytes.as_chunks().0
}

/// Returns pseudo-random numbers.
fn number(row: usize) -> u64 {
    let mixed = (row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 7
}

fn blocks(bench: &Bench) {
    let isa = Kernels::get().isa().name();
    for (name, bits, run) in [
        ("4 bits", 4, 1),
        ("12 bits", 12, 1),
        ("24 bits", 24, 1),
        ("12 bits in runs of 8", 12, 8),
        ("12 bits in runs of 40", 12, 40),
    ] {
        // Larger than any cache.
        let blocks: Vec<Block> = (0..if bits < 8 { 1200 } else { 400 })
            .map(|block| {
                let values: Vec<i64> = (0..65_536)
                    .map(|row| (number((row + block * 65_536) / run) & ((1 << bits) - 1)) as i64 + 1000)
                    .collect();
                Block::open(blocks::encode_i64(&values, None).expect("a block")).expect("a block")
            })
            .collect();
        let bytes: usize = blocks.iter().map(|block| block.bytes().len()).sum();
        let vectors = blocks.len() * 64;
        let middle = 1000 + (1 << (bits - 1));
        let a_vector = bytes as f64 / vectors as f64;
        for (what, condition) in [
            ("filter, half pass", Condition::Compare(Comparison::Less, middle)),
            ("filter, 1 of 16 pass", Condition::Between(1000, 1000 + (1 << (bits - 4)) - 1)),
            ("filter <>", Condition::Compare(Comparison::NotEqual, middle)),
            ("filter IN 20", Condition::In((0..20).map(|value| 1000 + value * (1 << bits) / 20).collect())),
        ] {
            let mut rows = RowSet::all(65_536);
            bench.run(&format!("{what}, {name}, from memory"), isa, vectors, a_vector, || {
                for block in &blocks {
                    rows = RowSet::all(65_536);
                    block.filter_integers(black_box(&condition), &mut rows).expect("integers");
                }
                black_box(&rows);
            });
        }
        let mut rows = RowSet::all(65_536);
        let condition = Condition::Compare(Comparison::Less, middle);
        bench.run(&format!("filter, half pass, {name}, cached"), isa, 64, a_vector, || {
            rows = RowSet::all(65_536);
            blocks[0].filter_integers(black_box(&condition), &mut rows).expect("integers");
            black_box(&rows);
        });
        let bytes_read =
            |block: &Block| block.bytes().as_chunks::<64>().0.iter().map(|line| u64::from(line[0])).sum::<u64>();
        bench.run(&format!("touch every line, {name}"), isa, vectors, a_vector, || {
            black_box(blocks.iter().map(bytes_read).sum::<u64>());
        });
        let mut buffer = LanesBuffer::new();
        bench.run(&format!("lanes, {name}"), isa, vectors, a_vector, || {
            for block in &blocks {
                for vector in 0..64 {
                    black_box(block.lanes(vector, &mut buffer).expect("integers"));
                }
            }
        });
    }
}

/// Measures operations on blocks that fit the caches.
fn single_blocks(bench: &Bench) {
    let isa = Kernels::get().isa().name();
    let values: Vec<i64> = (0..65_536).map(|row| (number(row) & 0xfff) as i64).collect();
    let block = Block::open(blocks::encode_i64(&values, None).expect("a block")).expect("a block");
    for (name, every) in [("every row", 1), ("1 row of 5", 5), ("1 row of 100", 100)] {
        let mut rows = RowSet::none(65_536);
        (0..65_536).step_by(every).for_each(|row| rows.insert(row));
        bench.run(&format!("gather {name}"), isa, 64, 0.0, || {
            black_box(block.gather::<i64>(black_box(&rows)).expect("integers"));
        });
    }
    bench.run("encode i64 to 12 bits", isa, 64, 8192.0, || {
        black_box(blocks::encode_i64(black_box(&values), None).expect("a block"));
    });
    let outliers: Vec<i64> =
        values.iter().enumerate().map(|(row, value)| if row % 500 == 3 { value << 20 } else { *value }).collect();
    bench.run("encode i64 with patches", isa, 64, 8192.0, || {
        black_box(blocks::encode_i64(black_box(&outliers), None).expect("a block"));
    });
    let bits: Vec<u8> = (0..8192).map(|byte| if byte % 7 == 0 { 0xf7 } else { 0xff }).collect();
    bench.run("encode i64 with NULLs", isa, 64, 8192.0, || {
        black_box(blocks::encode_i64(black_box(&values), Some(ValidityBitmap::new(&bits, 0))).expect("a block"));
    });
    let runs: Vec<i64> = (0..65_536).map(|row| values[row / 40]).collect();
    bench.run("encode i64 to runs of 40", isa, 64, 8192.0, || {
        black_box(blocks::encode_i64(black_box(&runs), None).expect("a block"));
    });
    bench.run("open 12 bits", isa, 64, 1536.0, || {
        black_box(Block::open(black_box(block.bytes().clone())).expect("a block"));
    });
}

fn floats(bench: &Bench) {
    let isa = Kernels::get().isa().name();
    let prices: Vec<f64> = (0..65_536).map(|row| (number(row) % 10_000_000) as f64 / 100.0).collect();
    let noise: Vec<f64> = (0..65_536).map(|row| (number(row) as f64).sqrt()).collect();
    for (name, values) in [("prices", prices), ("square roots", noise)] {
        let block = Block::open(blocks::encode_f64(&values, None).expect("a block")).expect("a block");
        let a_vector = block.bytes().len() as f64 / 64.0;
        let (mut buffer, mut numbers) = (LanesBuffer::new(), Box::new([0.0; VECTOR_ROWS]));
        bench.run(&format!("floats, {name}, {} bits, cached", block.header().width), isa, 64, 8192.0, || {
            for vector in 0..64 {
                block.floats(vector, &mut buffer, black_box(&mut numbers)).expect("floats");
            }
        });
        let condition = Condition::Compare(Comparison::Less, values[7]);
        bench.run(&format!("filter, {name}, cached"), isa, 64, a_vector, || {
            let mut rows = RowSet::all(65_536);
            block.filter_floats(black_box(&condition), &mut rows).expect("floats");
            black_box(&rows);
        });
        bench.run(&format!("encode f64, {name}"), isa, 64, 8192.0, || {
            black_box(blocks::encode_f64(black_box(&values), None).expect("a block"));
        });
    }
}

/// Measures operations on strings like TPC-H comments of about fifty bytes, in bytes of text.
fn text(bench: &Bench) {
    const WORDS: [&str; 16] = [
        "furiously",
        "special",
        "requests",
        "packages",
        "carefully",
        "final",
        "deposits",
        "sleep",
        "quickly",
        "ironic",
        "accounts",
        "the",
        "blithely",
        "regular",
        "among",
        "express",
    ];
    let isa = Kernels::get().isa().name();
    let comments: Vec<String> = (0..65_536)
        .map(|row| (0..7).map(|word| WORDS[(number(row * 7 + word) % 16) as usize]).collect::<Vec<_>>().join(" "))
        .collect();
    let values: Vec<&[u8]> = comments.iter().map(|comment| comment.as_bytes()).collect();
    let a_vector = comments.iter().map(String::len).sum::<usize>() as f64 / 64.0;
    for (name, compression) in [("plain", Compression::None), ("compressed", Compression::Symbols)] {
        let bytes = blocks::encode_text(&values, None, compression).expect("a block");
        let block = Block::open(bytes).expect("a block");
        if name == "compressed" {
            println!("compressed text takes {:.0} %", block.bytes().len() as f64 / a_vector / 0.64);
        }
        let like =
            |text| TextCondition::Like { pattern: LikePattern::parse(text).expect("a pattern"), is_negated: false };
        for (what, condition) in [
            ("LIKE '%special%requests%'", like("%special%requests%")),
            ("LIKE '%nowhere%'", like("%nowhere%")),
            ("LIKE 'special%'", like("special%")),
            ("= a comment", TextCondition::Compare(Comparison::Equal, values[9].to_vec())),
        ] {
            bench.run(&format!("{what}, {name} text"), isa, 64, a_vector, || {
                let mut rows = RowSet::all(65_536);
                block.filter_text(black_box(&condition), &mut rows).expect("text");
                black_box(&rows);
            });
        }
        bench.run(&format!("read {name} text"), isa, 64, a_vector, || {
            let mut buffer = TextBuffer::default();
            for vector in 0..64 {
                black_box(block.decode_texts(vector, &mut buffer).expect("text"));
            }
        });
        let mut some = RowSet::none(65_536);
        (0..65_536).step_by(100).for_each(|row| some.insert(row));
        bench.run(&format!("gather 1 row of 100, {name} text"), isa, 64, a_vector / 100.0, || {
            black_box(block.gather_text(black_box(&some)).expect("text"));
        });
        bench.run(&format!("encode {name} text"), isa, 64, a_vector, || {
            black_box(blocks::encode_text(black_box(&values), None, compression).expect("a block"));
        });
        bench.run(&format!("open {name} text"), isa, 64, a_vector, || {
            black_box(Block::open(black_box(block.bytes().clone())).expect("a block"));
        });
    }
    bench.run("dictionary of 1,000 from 65,536", isa, 64, 0.0, || {
        let mut builder = DictionaryBuilder::default();
        for row in 0..65_536 {
            black_box(builder.insert(values[row % 1000]));
        }
        black_box(builder.finish().expect("a dictionary"));
    });
}
