use super::*;

/// Pseudo-random values, the same in each run.
fn values(seed: u64) -> [u64; VECTOR_ROWS] {
    let mut state = seed;
    std::array::from_fn(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state ^ state >> 31
    })
}

fn lanes<T: Lane>(seed: u64, width: usize) -> [T; VECTOR_ROWS] {
    let mask = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
    values(seed).map(|value| T::truncate(value & mask))
}

fn every_variant_packs_and_unpacks<T: Lane>() {
    for width in 0..=T::BITS {
        let lanes: [T; VECTOR_ROWS] = lanes(width as u64, width);
        let mut first = vec![[0; 128]; width];
        Kernels::available().next().unwrap().pack(&lanes, width, &mut first);
        for kernels in Kernels::available() {
            let mut packed = vec![[7; 128]; width];
            kernels.pack(&lanes, width, &mut packed);
            assert!(packed == first, "{:?} packs {width} of {} bits", kernels.isa(), T::BITS);
            let mut unpacked = [T::MAX; VECTOR_ROWS];
            kernels.unpack(&packed, width, &mut unpacked);
            assert!(unpacked == lanes, "{:?} unpacks {width} of {} bits", kernels.isa(), T::BITS);
        }
        for (row, lane) in lanes.iter().enumerate() {
            assert_eq!(T::unpack_one(&first, width, row), *lane, "row {row} of {width} bits");
        }
    }
}

fn every_variant_compares<T: Lane>() {
    let lanes: [T; VECTOR_ROWS] = lanes(3, T::BITS);
    let max = T::MAX.extend();
    for (low, high) in
        [(0, 0), (0, max), (1, max), (max / 3, max / 2), (max, max), (lanes[5].extend(), lanes[5].extend())]
    {
        for kernels in Kernels::available() {
            let mask = kernels.mask_between(&lanes, T::truncate(low), T::truncate(high - low));
            let mut retained = [0x00ff_5555_ffff_0000; _];
            kernels.retain_between(&lanes, T::truncate(low), T::truncate(high - low), &mut retained);
            assert_eq!(retained, mask.map(|word| word & 0x00ff_5555_ffff_0000), "{:?}", kernels.isa());
            for (row, lane) in lanes.iter().enumerate() {
                let passes = (low..=high).contains(&lane.extend());
                assert_eq!(mask[row / 64] >> (row % 64) & 1 == 1, passes, "{:?}, row {row}", kernels.isa());
            }
        }
    }
}

fn every_variant_looks_up<T: Lane>() {
    let lanes: [T; VECTOR_ROWS] = lanes(9, T::BITS);
    let flags = values(1).map(|value| if value & 1 == 1 { u8::MAX } else { 0 });
    for table in [&flags[..], &flags[..64], &flags[..1]] {
        for (kernels, shift) in
            Kernels::available().flat_map(|kernels| [0, 77, u64::MAX - 3].map(|shift| (kernels, shift)))
        {
            let mask = kernels.mask_by_lookup(&lanes, shift, table);
            for (row, lane) in lanes.iter().enumerate() {
                let flag = table[lane.extend().wrapping_add(shift) as usize % table.len()];
                assert_eq!(mask[row / 64] >> (row % 64) & 1 == 1, flag != 0, "{:?}, row {row}", kernels.isa());
            }
        }
    }
}

fn every_variant_widens_and_narrows<T: Lane>() {
    let lanes: [T; VECTOR_ROWS] = lanes(4, T::BITS);
    for kernels in Kernels::available() {
        for base in [0, -5, i64::MAX, i64::MIN] {
            let mut wide = [0; VECTOR_ROWS];
            kernels.widen(&lanes, base, &mut wide);
            let expected = lanes.map(|lane| base.wrapping_add(lane.extend() as i64));
            assert!(wide == expected, "{:?} widens from {base}", kernels.isa());
            let mut narrow = [T::MAX; VECTOR_ROWS];
            kernels.narrow(&wide, base, &mut narrow);
            assert!(narrow == lanes, "{:?} narrows from {base}", kernels.isa());
        }
    }
}

macro_rules! for_lanes {
    ($($check:ident)*) => {
        $(mod $check {
            #[test]
            fn of_8_bits() { super::$check::<u8>(); }
            #[test]
            fn of_16_bits() { super::$check::<u16>(); }
            #[test]
            fn of_32_bits() { super::$check::<u32>(); }
            #[test]
            fn of_64_bits() { super::$check::<u64>(); }
        })*
    };
}

for_lanes!(every_variant_packs_and_unpacks every_variant_compares every_variant_looks_up every_variant_widens_and_narrows);

/// Checks the FastLanes layout: the first lane of the first word has value 0, then 128, then 256.
#[test]
fn a_lane_holds_values_in_the_published_order() {
    let lanes: [u16; VECTOR_ROWS] = std::array::from_fn(|value| value as u16);
    let mut packed = vec![[0; 128]; 16];
    Kernels::get().pack(&lanes, 16, &mut packed);
    let lane_of = |word: usize, lane: usize| u16::from_le_bytes([packed[word][lane * 2], packed[word][lane * 2 + 1]]);
    assert_eq!([0, 1, 2, 7, 8, 9, 15].map(|word| lane_of(word, 0)), [0, 128, 256, 896, 64, 192, 960]);
    assert_eq!(lane_of(0, 63), 63);
}

#[test]
fn every_variant_finds_bounds_and_changes() {
    for kernels in Kernels::available() {
        let values = values(6).map(|value| value as i64);
        let expected = (*values.iter().min().unwrap(), *values.iter().max().unwrap());
        assert_eq!(kernels.min_max(&values), expected);
        assert_eq!(kernels.min_max(&values[..1]), (values[0], values[0]));
        assert_eq!(kernels.count_changes(&values), VECTOR_ROWS - 1);
        assert_eq!(kernels.count_changes(&[1, 1, 2, 2, 2, 1]), 2);
        assert_eq!(kernels.count_changes(&[]), 0);
    }
}

#[test]
fn every_variant_computes_numbers() {
    let x: Vec<i64> = values(5).iter().map(|value| *value as i64).take(1_021).collect();
    let y: Vec<i64> = values(6).iter().map(|value| *value as i64).take(1_021).collect();
    let groups: Vec<u32> = values(7).iter().map(|value| (value >> 40) as u32 % 9).take(1_021).collect();
    for kernels in Kernels::available() {
        let mut out = vec![0; x.len()];
        kernels.linear_combination(&x, 100, &y, -3, &mut out);
        let expected = |x: i64, y: i64| x.wrapping_mul(100).wrapping_sub(y.wrapping_mul(3));
        assert!(out.iter().zip(x.iter().zip(&y)).all(|(out, (x, y))| *out == expected(*x, *y)));
        for factor in [1, -1, 1_000] {
            kernels.scale_and_shift(&x, factor, 17, &mut out);
            assert!(out.iter().zip(&x).all(|(out, x)| *out == x.wrapping_mul(factor).wrapping_add(17)));
        }
        kernels.product(&x, &y, &mut out);
        assert!(out.iter().zip(x.iter().zip(&y)).all(|(out, (x, y))| *out == x.wrapping_mul(*y)));
        for (few, count) in [(true, 4), (false, 8)] {
            let mut sums = [11; 8];
            kernels.add_to_sums(&x, &groups, few, &mut sums);
            for (group, sum) in sums.iter().enumerate() {
                let of_group = x.iter().zip(&groups).filter(|(_, of)| group < count && **of as usize == group);
                assert_eq!(*sum, of_group.fold(11_i64, |sum, (x, _)| sum.wrapping_add(*x)), "{:?}", kernels.isa());
            }
        }
    }
}
