//! Sets of shards of a pack, one bit each.

/// Set of shard positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShardSet {
    bitmap_words: Vec<u64>,
}

impl ShardSet {
    /// Returns the set of all `count` positions.
    pub(super) fn all(count: usize) -> Self {
        let mut words = vec![u64::MAX; count.div_ceil(64)];
        if let (Some(last), rest @ 1..) = (words.last_mut(), count % 64) {
            *last = (1 << rest) - 1;
        }
        Self { bitmap_words: words }
    }

    /// Removes all positions.
    pub(super) fn clear(&mut self) {
        self.bitmap_words.fill(0);
    }

    /// Removes positions whose lane does not pass.
    pub(super) fn retain<T: Copy + Into<u64>>(&mut self, lanes: &[T], passes: impl Fn(u64) -> bool) {
        for (word, lanes) in self.bitmap_words.iter_mut().zip(lanes.chunks(64)) {
            if *word == 0 {
                continue;
            }
            let mut kept = 0;
            for (bit, lane) in lanes.iter().enumerate() {
                kept |= u64::from(passes((*lane).into())) << bit;
            }
            *word &= kept;
        }
    }

    /// Iterates over the positions, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        self.bitmap_words.iter().enumerate().flat_map(|(number, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros();
                left &= left.checked_sub(1)?;
                Some(number * 64 + bit as usize)
            })
        })
    }
}
