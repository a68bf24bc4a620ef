//! Checks a history of list appends for anomalies, by Adya's definitions.
//!
//! The longest list read for a key gives the order of its appends: from it follow write-write (ww), write-read (wr)
//! and read-write (rw) dependencies. A cycle of dependencies is an anomaly, named by the kinds it consists of.

use std::collections::{BTreeMap, BTreeSet};

use super::history::{Op, TransactionEnd, Txn};

/// Anomaly that an isolation level may forbid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Anomaly {
    /// Two reads of a key of which neither is a prefix of the other, a duplicate value, or one that was never
    /// appended.
    Incompatible,
    /// A transaction does not see its own appends.
    Internal,
    /// An acknowledged append is missing from later reads.
    Lost,
    /// A cycle of ww dependencies.
    G0,
    /// An aborted transaction's append is seen.
    G1a,
    /// A transaction's append is seen without a later one of the same transaction.
    G1b,
    /// A cycle of ww and wr dependencies.
    G1c,
    /// A cycle with one rw dependency.
    GSingle,
    /// A cycle with several rw dependencies.
    G2,
}

/// Isolation level to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    ReadCommitted,
    /// Snapshot isolation.
    RepeatableRead,
    Serializable,
}

impl Level {
    pub(super) fn forbids(self, anomaly: Anomaly) -> bool {
        match anomaly {
            Anomaly::GSingle => self != Self::ReadCommitted,
            Anomaly::G2 => self == Self::Serializable,
            _ => true,
        }
    }
}

/// Anomaly with the transactions that form it, by their positions in the history.
pub(super) type FoundAnomaly = (Anomaly, Vec<usize>);

/// Returns the anomalies that the level forbids, at least one example of each kind.
///
/// The last transaction must have read all keys after all others ended.
pub(super) fn check(history: &[Txn], level: Level) -> Vec<FoundAnomaly> {
    let history = &resolve_in_doubt(history);
    let mut found = Vec::new();
    let writers = writers(history);
    let orders = orders(history, &mut found);
    for (&key, order) in &orders {
        for value in order {
            match writers.get(&(key, *value)) {
                None => found.push((Anomaly::Incompatible, Vec::new())),
                Some(&writer) if history[writer].end == TransactionEnd::Aborted => {
                    found.push((Anomaly::G1a, readers_of(history, key, *value, writer)));
                }
                Some(_) => {}
            }
        }
    }
    lost(history, &orders, &mut found);
    for (reader, txn) in history.iter().enumerate().filter(|(_, txn)| txn.end != TransactionEnd::Aborted) {
        check_reads(history, &writers, reader, txn, &mut found);
    }
    // Without an order of appends there are no dependencies.
    if found.iter().all(|(anomaly, _)| *anomaly != Anomaly::Incompatible) {
        cycles(&DependencyGraph::of(history, &writers, &orders), level, history.len(), &mut found);
    }
    found.sort();
    found.dedup();
    found
}

/// Resolves transactions in doubt: one is committed if others have seen its appends, and otherwise had no effect.
fn resolve_in_doubt(history: &[Txn]) -> Vec<Txn> {
    let reads = history.iter().filter(|txn| txn.end == TransactionEnd::Committed).flat_map(|txn| &txn.ops);
    let seen: BTreeSet<(u32, u64)> = reads
        .filter_map(|op| match op {
            Op::Read { key, list } => Some(list.iter().map(|value| (*key, *value))),
            Op::Append { .. } => None,
        })
        .flatten()
        .collect();
    let mut history = history.to_vec();
    for txn in history.iter_mut().filter(|txn| txn.end == TransactionEnd::Unknown) {
        let is_seen =
            txn.ops.iter().any(|op| matches!(op, Op::Append { key, value } if seen.contains(&(*key, *value))));
        txn.end = if is_seen { TransactionEnd::Committed } else { TransactionEnd::Aborted };
    }
    history
}

/// Returns the transaction that appended each value, by key and value.
fn writers(history: &[Txn]) -> BTreeMap<(u32, u64), usize> {
    let mut writers = BTreeMap::new();
    for (number, txn) in history.iter().enumerate() {
        for op in &txn.ops {
            if let Op::Append { key, value } = op {
                assert!(writers.insert((*key, *value), number).is_none(), "every append has a value of its own");
            }
        }
    }
    writers
}

/// Returns the longest committed read of each key, of which all others must be prefixes.
fn orders(history: &[Txn], found: &mut Vec<FoundAnomaly>) -> BTreeMap<u32, Vec<u64>> {
    let mut orders: BTreeMap<u32, (Vec<u64>, usize)> = BTreeMap::new();
    for (reader, txn) in history.iter().enumerate().filter(|(_, txn)| txn.end != TransactionEnd::Aborted) {
        for op in &txn.ops {
            let Op::Read { key, list } = op else { continue };
            if list.iter().collect::<BTreeSet<_>>().len() < list.len() {
                found.push((Anomaly::Incompatible, vec![reader]));
            }
            let (longest, other) = orders.entry(*key).or_default();
            let common = longest.len().min(list.len());
            if longest[..common] != list[..common] {
                found.push((Anomaly::Incompatible, vec![*other, reader]));
            }
            if longest.len() < list.len() {
                (*longest, *other) = (list.clone(), reader);
            }
        }
    }
    orders.into_iter().map(|(key, (list, _))| (key, list)).collect()
}

/// Reports acknowledged appends that are in no list; the last transaction has read all lists.
fn lost(history: &[Txn], orders: &BTreeMap<u32, Vec<u64>>, found: &mut Vec<FoundAnomaly>) {
    let seen: BTreeSet<(u32, u64)> =
        orders.iter().flat_map(|(key, order)| order.iter().map(move |value| (*key, *value))).collect();
    let last_read: BTreeMap<u32, BTreeSet<u64>> = history.last().map_or_else(BTreeMap::new, |last| {
        let reads = last.ops.iter().filter_map(|op| match op {
            Op::Read { key, list } => Some((*key, list.iter().copied().collect())),
            Op::Append { .. } => None,
        });
        reads.collect()
    });
    for (number, txn) in history.iter().enumerate().filter(|(_, txn)| txn.end == TransactionEnd::Committed) {
        for op in &txn.ops {
            let Op::Append { key, value } = op else { continue };
            let is_lost = match last_read.get(key) {
                Some(last) => !last.contains(value),
                None => !seen.contains(&(*key, *value)) && orders.contains_key(key),
            };
            if is_lost {
                found.push((Anomaly::Lost, vec![number]));
            }
        }
    }
}

/// Reports anomalies visible in one transaction's reads: own appends missing, or others' partly visible.
fn check_reads(
    history: &[Txn],
    writers: &BTreeMap<(u32, u64), usize>,
    reader: usize,
    txn: &Txn,
    found: &mut Vec<FoundAnomaly>,
) {
    let mut own: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for op in &txn.ops {
        match op {
            Op::Append { key, value } => own.entry(*key).or_default().push(*value),
            Op::Read { key, list } => {
                let own = own.get(key).map_or(&[][..], Vec::as_slice);
                if !list.ends_with(own) {
                    found.push((Anomaly::Internal, vec![reader]));
                    continue;
                }
                let others = &list[..list.len() - own.len()];
                let Some(last) = others.last() else { continue };
                let Some(&writer) = writers.get(&(*key, *last)) else { continue };
                if writer != reader && history[writer].appends(*key).last() != Some(*last) {
                    found.push((Anomaly::G1b, vec![writer, reader]));
                }
            }
        }
    }
}

fn readers_of(history: &[Txn], key: u32, value: u64, writer: usize) -> Vec<usize> {
    let reads = |txn: &Txn| {
        let read = |op: &Op| matches!(op, Op::Read { key: of, list } if *of == key && list.contains(&value));
        txn.end != TransactionEnd::Aborted && txn.ops.iter().any(read)
    };
    let readers = history.iter().enumerate().filter(|(_, txn)| reads(txn)).map(|(number, _)| number);
    std::iter::once(writer).chain(readers.take(1)).collect()
}

/// Dependencies: pairs of an earlier transaction and the later one that depends on it.
#[derive(Debug, Default)]
struct DependencyGraph {
    ww: BTreeSet<(usize, usize)>,
    wr: BTreeSet<(usize, usize)>,
    rw: BTreeSet<(usize, usize)>,
}

impl DependencyGraph {
    fn of(history: &[Txn], writers: &BTreeMap<(u32, u64), usize>, orders: &BTreeMap<u32, Vec<u64>>) -> Self {
        let mut graph = Self::default();
        let writer = |key: u32, value: Option<&u64>| writers.get(&(key, *value?)).copied();
        for (&key, order) in orders {
            for pair in order.windows(2) {
                if let (Some(before), Some(after)) = (writer(key, pair.first()), writer(key, pair.last())) {
                    graph.ww.insert((before, after));
                }
            }
        }
        for (reader, txn) in history.iter().enumerate().filter(|(_, txn)| txn.end != TransactionEnd::Aborted) {
            for op in &txn.ops {
                let Op::Read { key, list } = op else { continue };
                if let Some(read) = writer(*key, list.last()) {
                    graph.wr.insert((read, reader));
                }
                let next = orders.get(key).and_then(|order| order.get(list.len()));
                if let Some(next) = writer(*key, next) {
                    graph.rw.insert((reader, next));
                }
            }
        }
        for edges in [&mut graph.ww, &mut graph.wr, &mut graph.rw] {
            edges.retain(|(from, to)| from != to);
        }
        graph
    }
}

/// Reports one cycle of each kind that the level forbids.
fn cycles(graph: &DependencyGraph, level: Level, count: usize, found: &mut Vec<FoundAnomaly>) {
    let writes = Edges::of([&graph.ww], count);
    let reads = Edges::of([&graph.ww, &graph.wr], count);
    let all = Edges::of([&graph.ww, &graph.wr, &graph.rw], count);
    let closing = |anomaly: Anomaly, edges: &Edges, candidates: &BTreeSet<(usize, usize)>| {
        let cycle = candidates.iter().find_map(|&(from, to)| edges.path(to, from));
        cycle.filter(|_| level.forbids(anomaly)).map(|cycle| (anomaly, cycle))
    };
    found.extend(closing(Anomaly::G0, &writes, &graph.ww));
    found.extend(closing(Anomaly::G1c, &reads, &graph.wr));
    if level.forbids(Anomaly::GSingle) {
        found.extend(closing(Anomaly::GSingle, &reads, &graph.rw));
    }
    if level.forbids(Anomaly::G2) {
        let several = graph.rw.iter().copied().filter(|&(from, to)| reads.path(to, from).is_none());
        found.extend(closing(Anomaly::G2, &all, &several.collect()));
    }
}

/// Adjacency lists of dependencies.
struct Edges {
    next: Vec<Vec<usize>>,
    /// Topological position; equal for all transactions of a cycle.
    position: Vec<usize>,
}

impl Edges {
    fn of<const N: usize>(kinds: [&BTreeSet<(usize, usize)>; N], count: usize) -> Self {
        let mut next = vec![Vec::new(); count];
        let mut waits_for = vec![0_usize; count];
        for &(from, to) in kinds.into_iter().flatten() {
            next[from].push(to);
            waits_for[to] += 1;
        }
        let mut place = vec![0; count];
        let mut ready: Vec<usize> = (0..count).filter(|&txn| waits_for[txn] == 0).collect();
        let mut placed = 0;
        while let Some(txn) = ready.pop() {
            place[txn] = placed;
            placed += 1;
            for &then in &next[txn] {
                waits_for[then] -= 1;
                if waits_for[then] == 0 {
                    ready.push(then);
                }
            }
        }
        if placed < count {
            place.fill(0);
        }
        Self { next, position: place }
    }

    /// Returns a shortest path, including both ends.
    fn path(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        let mut before: BTreeMap<usize, usize> = BTreeMap::new();
        let mut frontier = vec![from];
        while !frontier.is_empty() {
            let mut reached = Vec::new();
            for at in frontier {
                if at == to {
                    let mut path = vec![to];
                    let mut back = to;
                    while back != from {
                        back = before[&back];
                        path.push(back);
                    }
                    path.reverse();
                    return Some(path);
                }
                // Transactions behind the target cannot lead to it.
                for &then in self.next[at].iter().filter(|&&then| self.position[then] <= self.position[to]) {
                    if then != from && !before.contains_key(&then) {
                        before.insert(then, at);
                        reached.push(then);
                    }
                }
            }
            frontier = reached;
        }
        None
    }
}
