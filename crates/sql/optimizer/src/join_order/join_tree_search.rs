//! Search for the cheapest join tree of a graph.
//!
//! Small graphs are searched exhaustively, by dynamic programming over pairs of connected sets (DPccp: Moerkotte and
//! Neumann, "Analysis of two existing and one new dynamic programming algorithm for the generation of optimal bushy
//! join trees without cross products", VLDB 2006); large ones greedily, the pair with the fewest rows first (Fegaras,
//! 1998).

use datafusion::common::HashMap;

use super::graph::JoinGraph;
use super::join_cardinality::SizeEstimates;
use super::leaf_set::LeafSet;

#[cfg(test)]
mod tests;

/// Join tree. The left side of a join is the build side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Tree {
    Leaf(usize),
    Join(Box<(Tree, Tree)>),
}

impl Tree {
    pub(super) fn join(left: Tree, right: Tree) -> Tree {
        Tree::Join(Box::new((left, right)))
    }
}

/// Limit of pairs of sets in the exhaustive search, about one millisecond; then the search is greedy. A star of twelve
/// inputs stays below it.
const PAIR_COUNT_MAX: usize = 12_000;

/// Returns the cheapest join tree that the search finds.
pub(super) fn find_cheapest(graph: &JoinGraph, sizes: &SizeEstimates) -> Tree {
    let search = Search::new(graph, sizes);
    let mut parts = Vec::new();
    let mut rest = LeafSet::first(graph.leaves.len());
    while let Some(leaf) = rest.iter().next() {
        let component = search.component(leaf);
        rest = rest.difference(component);
        match search.exhaustive(component) {
            Some(part) => parts.push(part),
            None => parts.extend(
                component.iter().map(|leaf| JoinedSet { set: LeafSet::from_leaf(leaf), tree: Tree::Leaf(leaf) }),
            ),
        }
    }
    search.greedy(parts)
}

/// Set of leaves with the tree that joins them.
#[derive(Debug, Clone)]
struct JoinedSet {
    set: LeafSet,
    tree: Tree,
}

/// Join graph with the indices that the search uses.
struct Search<'a> {
    graph: &'a JoinGraph,
    sizes: &'a SizeEstimates,
    /// Per leaf, the leaves that conditions connect it with.
    neighbours: Vec<LeafSet>,
    /// Per equivalence class, the leaves that have a member.
    classes: Vec<LeafSet>,
}

/// Cheapest known join of a set of leaves.
#[derive(Debug, Clone, Copy)]
struct BestJoin {
    /// Cost in rows touched, with all joins below.
    cost: f64,
    /// Build side and probe side; `None` for a leaf.
    sides: Option<(LeafSet, LeafSet)>,
}

impl<'a> Search<'a> {
    fn new(graph: &'a JoinGraph, sizes: &'a SizeEstimates) -> Self {
        let classes = graph.classes.iter().map(|class| class.members.iter().map(|(leaf, _)| *leaf).collect());
        Self { graph, sizes, neighbours: neighbours(graph), classes: classes.collect() }
    }

    /// Returns the connected component of `leaf`.
    fn component(&self, leaf: usize) -> LeafSet {
        let mut set = LeafSet::from_leaf(leaf);
        loop {
            let wider = set.union(self.neighbours_of(set));
            if wider == set {
                return set;
            }
            set = wider;
        }
    }

    fn neighbours_of(&self, set: LeafSet) -> LeafSet {
        set.iter().fold(LeafSet::EMPTY, |near, leaf| near.union(self.neighbours[leaf])).difference(set)
    }

    /// Returns the cheapest tree without cross products; `None` if there are too many pairs to search, or if the
    /// attached leaves allow no such tree.
    fn exhaustive(&self, component: LeafSet) -> Option<JoinedSet> {
        let mut table = MemoTable { search: self, best: HashMap::new(), pair_count: 0 };
        for leaf in component.iter() {
            table.best.insert(LeafSet::from_leaf(leaf), BestJoin { cost: 0.0, sides: None });
        }
        for leaf in component.iter().rev() {
            let start = LeafSet::from_leaf(leaf);
            table.enumerate_pairs(start)?;
            table.enumerate_supersets(start, LeafSet::first(leaf + 1))?;
        }
        let tree = table.tree(component)?;
        Some(JoinedSet { set: component, tree })
    }

    /// Joins parts until one is left: connected pairs first, then cross products, each by the smallest result.
    fn greedy(&self, mut parts: Vec<JoinedSet>) -> Tree {
        while 1 < parts.len() {
            let mut best: Option<((bool, f64), usize, usize)> = None;
            for left in 0..parts.len() {
                for right in left + 1..parts.len() {
                    let (a, b) = (parts[left].set, parts[right].set);
                    if !self.is_allowed(a, b) {
                        continue;
                    }
                    let is_cross = !self.neighbours_of(a).intersects(b);
                    let rank = (is_cross, self.sizes.rows(a.union(b)));
                    if best.is_none_or(|(least, ..)| (rank.0, rank.1) < least) {
                        best = Some((rank, left, right));
                    }
                }
            }
            let (_, left, right) = best.expect("no two parts of the join graph may be joined");
            let b = parts.swap_remove(right);
            let a = parts.swap_remove(left);
            let (build, probe) = if self.is_build_side(a.set, b.set) { (a, b) } else { (b, a) };
            parts.push(JoinedSet { set: build.set.union(probe.set), tree: Tree::join(build.tree, probe.tree) });
        }
        parts.pop().expect("the join graph has no leaves").tree
    }

    /// Returns whether the two sets may be joined: a single attached leaf needs all its required leaves on the other
    /// side.
    fn is_allowed(&self, a: LeafSet, b: LeafSet) -> bool {
        let required = |set: LeafSet| set.single().and_then(|leaf| self.graph.leaves[leaf].attachment.as_ref());
        match (required(a), required(b)) {
            (None, None) => true,
            (Some(attachment), None) => b.contains(attachment.required_leaves),
            (None, Some(attachment)) => a.contains(attachment.required_leaves),
            (Some(_), Some(_)) => false,
        }
    }

    /// Returns whether `a`, rather than `b`, is to be the build side.
    fn is_build_side(&self, a: LeafSet, b: LeafSet) -> bool {
        let is_null_aware = |set: LeafSet| {
            let leaf = set.single().and_then(|leaf| self.graph.leaves[leaf].attachment.as_ref());
            leaf.is_some_and(|attachment| attachment.null_aware)
        };
        // A null-aware anti join has to build its hash table from the preserved side.
        if is_null_aware(a) || is_null_aware(b) {
            return is_null_aware(b);
        }
        self.sizes.bytes(a) <= self.sizes.bytes(b)
    }

    /// Returns the cost of joining the two sets, in rows touched.
    fn cost(&self, build: LeafSet, probe: LeafSet) -> f64 {
        let (build_rows, probe_rows) = (self.sizes.rows(build), self.sizes.rows(probe));
        let out = self.sizes.rows(build.union(probe));
        if !self.has_keys(build, probe) {
            return build_rows * probe_rows * 0.1 + out;
        }
        // Probes of hash tables that exceed the CPU caches wait for memory.
        let misses = (build_rows / 20_000.0).log2().clamp(0.0, 10.0) * 0.2;
        let probed = probe_rows * self.sizes.runtime_filter_selectivity(build, probe);
        2.0 * build_rows + 0.1 * probe_rows + 0.9 * probed * (1.0 + misses) + out
    }

    /// Returns whether some equality connects the sets, so that a hash join can be used.
    fn has_keys(&self, a: LeafSet, b: LeafSet) -> bool {
        let attached = |set: LeafSet| set.single().and_then(|leaf| self.graph.leaves[leaf].attachment.as_ref());
        if let Some(attachment) = attached(a).or_else(|| attached(b)) {
            return !attachment.on.is_empty();
        }
        self.classes.iter().any(|class| class.intersects(a) && class.intersects(b))
    }
}

/// Dynamic programming table: the cheapest join of each connected set of leaves.
struct MemoTable<'a> {
    search: &'a Search<'a>,
    best: HashMap<LeafSet, BestJoin>,
    /// Number of pairs examined so far.
    pair_count: usize,
}

impl MemoTable<'_> {
    /// Visits all connected supersets of `set` that add no leaf of `excluded`; `None` if there are too many pairs.
    fn enumerate_supersets(&mut self, set: LeafSet, excluded: LeafSet) -> Option<()> {
        let near = self.search.neighbours_of(set).difference(excluded);
        for more in near.subsets() {
            self.enumerate_pairs(set.union(more))?;
        }
        for more in near.subsets() {
            self.enumerate_supersets(set.union(more), excluded.union(near))?;
        }
        Some(())
    }

    /// Pairs `set` with all connected sets next to it whose leaves all come after its first leaf.
    fn enumerate_pairs(&mut self, set: LeafSet) -> Option<()> {
        let first = set.iter().next()?;
        let excluded = set.union(LeafSet::first(first + 1));
        let near = self.search.neighbours_of(set).difference(excluded);
        for leaf in near.iter().rev() {
            let other = LeafSet::from_leaf(leaf);
            self.record_if_cheaper(set, other)?;
            let earlier = LeafSet::first(leaf + 1).intersection(near);
            self.enumerate_pair_supersets(set, other, excluded.union(earlier))?;
        }
        Some(())
    }

    /// Pairs `set` with all connected supersets of `other` that add no leaf of `excluded`.
    fn enumerate_pair_supersets(&mut self, set: LeafSet, other: LeafSet, excluded: LeafSet) -> Option<()> {
        let near = self.search.neighbours_of(other).difference(excluded);
        for more in near.subsets() {
            self.record_if_cheaper(set, other.union(more))?;
        }
        for more in near.subsets() {
            self.enumerate_pair_supersets(set, other.union(more), excluded.union(near))?;
        }
        Some(())
    }

    /// Records the join of two sets if it is the cheapest so far for their union; `None` if there are too many pairs.
    fn record_if_cheaper(&mut self, a: LeafSet, b: LeafSet) -> Option<()> {
        self.pair_count += 1;
        if PAIR_COUNT_MAX < self.pair_count {
            return None;
        }
        let (Some(best_a), Some(best_b)) = (self.best.get(&a), self.best.get(&b)) else { return Some(()) };
        if !self.search.is_allowed(a, b) {
            return Some(());
        }
        let (build, probe) = if self.search.is_build_side(a, b) { (a, b) } else { (b, a) };
        let cost = best_a.cost + best_b.cost + self.search.cost(build, probe);
        let union = a.union(b);
        if self.best.get(&union).is_none_or(|best| cost < best.cost) {
            self.best.insert(union, BestJoin { cost, sides: Some((build, probe)) });
        }
        Some(())
    }

    /// Returns the cheapest tree of a set.
    fn tree(&self, set: LeafSet) -> Option<Tree> {
        match self.best.get(&set)?.sides {
            None => set.single().map(Tree::Leaf),
            Some((build, probe)) => Some(Tree::join(self.tree(build)?, self.tree(probe)?)),
        }
    }
}

/// Returns, per leaf, the leaves that conditions connect it with.
fn neighbours(graph: &JoinGraph) -> Vec<LeafSet> {
    let mut neighbours = vec![LeafSet::EMPTY; graph.leaves.len()];
    let mut connect = |leaves: LeafSet| {
        for leaf in leaves.iter() {
            neighbours[leaf] = neighbours[leaf].union(leaves.difference(LeafSet::from_leaf(leaf)));
        }
    };
    for class in &graph.classes {
        connect(class.members.iter().map(|(leaf, _)| *leaf).collect());
    }
    for condition in graph.conditions.iter().filter(|condition| condition.leaves.count() == 2) {
        connect(condition.leaves);
    }
    for (leaf, attachment) in graph
        .leaves
        .iter()
        .enumerate()
        .filter_map(|(leaf, of)| of.attachment.as_ref().map(|attachment| (leaf, attachment)))
    {
        for required in attachment.required_leaves.iter() {
            connect(LeafSet::from_iter([leaf, required]));
        }
    }
    neighbours
}
