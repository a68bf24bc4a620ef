//! What is wrong with a history of list appends, by Adya's definitions.
//!
//! A list that was read tells the order of all appends to its key before: from that follow who wrote after whom (ww), who read from
//! whom (wr) and who read what was overwritten later (rw). A cycle of such dependencies is an anomaly, named by what it is made of.

use std::collections::{BTreeMap, BTreeSet};

use super::history::{End, Op, Txn};

/// Something that a level forbids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Anomaly {
    /// Two reads of a key that are not one the beginning of the other, a value twice, or one that nobody appended.
    Incompatible,
    /// A transaction does not see its own appends.
    Internal,
    /// An acknowledged append is in no later list.
    Lost,
    /// A cycle of writes.
    G0,
    /// An aborted transaction's append is seen.
    G1a,
    /// A transaction's append is seen without a later one of it.
    G1b,
    /// A cycle of writes and reads.
    G1c,
    /// A cycle with one overwritten read.
    GSingle,
    /// A cycle with several overwritten reads.
    G2,
}

/// What is allowed to happen.
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

/// An anomaly with the transactions that make it, by their places in the history.
pub(super) type Found = (Anomaly, Vec<usize>);

/// Every kind of anomaly in the history that the level forbids, with an example or more. The last transaction has read all keys after
/// all others ended.
pub(super) fn check(history: &[Txn], level: Level) -> Vec<Found> {
    let history = &settled(history);
    let mut found = Vec::new();
    let writers = writers(history);
    let orders = orders(history, &mut found);
    for (&key, order) in &orders {
        for value in order {
            match writers.get(&(key, *value)) {
                None => found.push((Anomaly::Incompatible, Vec::new())),
                Some(&writer) if history[writer].end == End::Aborted => {
                    found.push((Anomaly::G1a, readers_of(history, key, *value, writer)));
                }
                Some(_) => {}
            }
        }
    }
    lost(history, &orders, &mut found);
    for (reader, txn) in history.iter().enumerate().filter(|(_, txn)| txn.end != End::Aborted) {
        within(history, &writers, reader, txn, &mut found);
    }
    // Without an order of the appends nothing follows from them.
    if found.iter().all(|(anomaly, _)| *anomaly != Anomaly::Incompatible) {
        cycles(&Graph::of(history, &writers, &orders), level, history.len(), &mut found);
    }
    found.sort();
    found.dedup();
    found
}

/// The history with an end for each transaction that was in doubt: it was committed if others have seen what it did, and otherwise did
/// nothing.
fn settled(history: &[Txn]) -> Vec<Txn> {
    let reads = history.iter().filter(|txn| txn.end == End::Committed).flat_map(|txn| &txn.ops);
    let seen: BTreeSet<(u32, u64)> = reads
        .filter_map(|op| match op {
            Op::Read { key, list } => Some(list.iter().map(|value| (*key, *value))),
            Op::Append { .. } => None,
        })
        .flatten()
        .collect();
    let mut history = history.to_vec();
    for txn in history.iter_mut().filter(|txn| txn.end == End::Unknown) {
        let is_seen =
            txn.ops.iter().any(|op| matches!(op, Op::Append { key, value } if seen.contains(&(*key, *value))));
        txn.end = if is_seen { End::Committed } else { End::Aborted };
    }
    history
}

/// Who appended what.
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

/// The longest list of each key that a transaction that was not aborted has read; all others begin it.
fn orders(history: &[Txn], found: &mut Vec<Found>) -> BTreeMap<u32, Vec<u64>> {
    let mut orders: BTreeMap<u32, (Vec<u64>, usize)> = BTreeMap::new();
    for (reader, txn) in history.iter().enumerate().filter(|(_, txn)| txn.end != End::Aborted) {
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

/// Appends that were acknowledged and are in no list: the last transaction read them all.
fn lost(history: &[Txn], orders: &BTreeMap<u32, Vec<u64>>, found: &mut Vec<Found>) {
    let seen: BTreeSet<(u32, u64)> =
        orders.iter().flat_map(|(key, order)| order.iter().map(move |value| (*key, *value))).collect();
    let last_read: BTreeMap<u32, BTreeSet<u64>> = history.last().map_or_else(BTreeMap::new, |last| {
        let reads = last.ops.iter().filter_map(|op| match op {
            Op::Read { key, list } => Some((*key, list.iter().copied().collect())),
            Op::Append { .. } => None,
        });
        reads.collect()
    });
    for (number, txn) in history.iter().enumerate().filter(|(_, txn)| txn.end == End::Committed) {
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

/// What a transaction's reads show by themselves: its own appends missing, others' half done.
fn within(history: &[Txn], writers: &BTreeMap<(u32, u64), usize>, reader: usize, txn: &Txn, found: &mut Vec<Found>) {
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
        txn.end != End::Aborted && txn.ops.iter().any(read)
    };
    let readers = history.iter().enumerate().filter(|(_, txn)| reads(txn)).map(|(number, _)| number);
    std::iter::once(writer).chain(readers.take(1)).collect()
}

/// Who depends on whom: the later one on the earlier.
#[derive(Debug, Default)]
struct Graph {
    ww: BTreeSet<(usize, usize)>,
    wr: BTreeSet<(usize, usize)>,
    rw: BTreeSet<(usize, usize)>,
}

impl Graph {
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
        for (reader, txn) in history.iter().enumerate().filter(|(_, txn)| txn.end != End::Aborted) {
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

/// Cycles: one example of each kind that the level forbids.
fn cycles(graph: &Graph, level: Level, count: usize, found: &mut Vec<Found>) {
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

/// Dependencies by where they begin.
struct Edges {
    next: Vec<Vec<usize>>,
    /// A place in an order in which every dependency goes forward; the same for all where there is a cycle.
    place: Vec<usize>,
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
        Self { next, place }
    }

    /// A shortest way, with both its ends.
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
                // What lies behind the target does not lead to it.
                for &then in self.next[at].iter().filter(|&&then| self.place[then] <= self.place[to]) {
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
