//! Bit sets of a join graph's leaves.

/// Set of up to 64 leaves, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(super) struct LeafSet(pub(super) u64);

impl LeafSet {
    pub(super) const EMPTY: LeafSet = LeafSet(0);
    pub(super) const COUNT_MAX: usize = 64;

    pub(super) fn from_leaf(leaf: usize) -> Self {
        Self(1 << leaf)
    }

    /// Returns the set of the leaves 0 to `count - 1`.
    pub(super) fn first(count: usize) -> Self {
        if count == Self::COUNT_MAX { Self(u64::MAX) } else { Self((1 << count) - 1) }
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) fn contains(self, other: Self) -> bool {
        other.difference(self).is_empty()
    }

    pub(super) fn contains_leaf(self, leaf: usize) -> bool {
        self.contains(Self::from_leaf(leaf))
    }

    pub(super) fn intersects(self, other: Self) -> bool {
        !self.intersection(other).is_empty()
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn count(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Returns the set's only leaf; `None` for sets of another size.
    pub(super) fn single(self) -> Option<usize> {
        (self.count() == 1).then(|| self.0.trailing_zeros() as usize)
    }

    pub(super) fn iter(self) -> Leaves {
        Leaves(self)
    }

    /// Returns all nonempty subsets; every subset comes before its supersets.
    pub(super) fn subsets(self) -> impl Iterator<Item = LeafSet> {
        let mut next = Some(self.0 & self.0.wrapping_neg()).filter(|bits| *bits != 0);
        std::iter::from_fn(move || {
            let current = next?;
            // Counts in binary, over this set's bits only.
            let following = current.wrapping_sub(self.0) & self.0;
            next = (following != 0).then_some(following);
            Some(LeafSet(current))
        })
    }
}

/// Iterator over the leaves of a set, ascending.
pub(super) struct Leaves(LeafSet);

impl Leaves {
    fn remove(&mut self, leaf: u32) -> usize {
        let leaf = leaf as usize;
        self.0 = self.0.difference(LeafSet::from_leaf(leaf));
        leaf
    }
}

impl Iterator for Leaves {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let LeafSet(left) = self.0;
        (left != 0).then(|| self.remove(left.trailing_zeros()))
    }
}

impl DoubleEndedIterator for Leaves {
    fn next_back(&mut self) -> Option<usize> {
        let LeafSet(left) = self.0;
        (left != 0).then(|| self.remove(u64::BITS - 1 - left.leading_zeros()))
    }
}

impl FromIterator<usize> for LeafSet {
    fn from_iter<I: IntoIterator<Item = usize>>(leaves: I) -> Self {
        leaves.into_iter().fold(Self::EMPTY, |set, leaf| set.union(Self::from_leaf(leaf)))
    }
}
