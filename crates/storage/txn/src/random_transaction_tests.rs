//! Random concurrent transactions with crashes and cleanings, compared with a simple model of lists.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use catalog::{CatalogState, Change, Table};
use kv::sim::SimDisk;
use objects::Objects;
use types::random::SeededRandom;
use types::{Oid, Random};

use crate::fixtures::*;
use crate::{Error, Isolation, Snapshot, Transaction, Transactions};

/// Catalog of the model.
type Model = BTreeMap<u32, ModelTable>;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct ModelTable {
    name: String,
    comment: Option<String>,
    shards: Vec<u128>,
}

/// Effect of one statement of a transaction.
#[derive(Debug, Clone)]
enum Does {
    Create { table: u32, name: String },
    Drop { table: u32 },
    Comment { table: u32, text: String },
    Load { table: u32, shards: Vec<u128> },
    Truncate { table: u32 },
}

impl Does {
    fn changes(&self, state: &CatalogState) -> Vec<Change> {
        match self {
            Self::Create { table: oid, name } => vec![put(table(*oid, name))],
            Self::Drop { table } => vec![Change::DropTable(Oid(*table))],
            Self::Comment { table, text } => {
                let Some(old) = state.table(Oid(*table)) else { return vec![Change::DropTable(Oid(*table))] };
                vec![put(Table { comment: Some(text.clone()), ..Table::clone(old) })]
            }
            Self::Load { table, shards } => vec![load(*table, shards)],
            Self::Truncate { table } => vec![Change::RemoveAllRows { table: Oid(*table) }],
        }
    }

    /// Applies the statement to the model; returns `false` if that is impossible.
    fn apply(&self, model: &mut Model) -> bool {
        match self {
            Self::Create { table, name } => {
                let free = model.values().all(|other| other.name != *name);
                if free {
                    model.insert(*table, ModelTable { name: name.clone(), ..ModelTable::default() });
                }
                free
            }
            Self::Drop { table } => model.remove(table).is_some(),
            Self::Comment { table, text } => {
                model.get_mut(table).map(|table| table.comment = Some(text.clone())).is_some()
            }
            Self::Load { table, shards } => model.get_mut(table).map(|table| table.shards.extend(shards)).is_some(),
            Self::Truncate { table } => model.get_mut(table).map(|table| table.shards.clear()).is_some(),
        }
    }
}

fn model_of(state: &CatalogState) -> Model {
    let tables = state.tables().map(|table| {
        let shards = shard_ids(state, table.oid.0);
        (table.oid.0, ModelTable { name: table.name.clone(), comment: table.comment.clone(), shards })
    });
    tables.collect()
}

fn objects_of(model: &Model) -> BTreeSet<String> {
    model.iter().flat_map(|(table, content)| content.shards.iter().map(|&shard| object_name(*table, shard))).collect()
}

/// Open transaction with the model's view of it.
struct Open {
    transaction: Transaction,
    /// The committed state that it was last rebased onto.
    base: Model,
    does: Vec<Does>,
    savepoints: Vec<usize>,
    /// Its objects that were not rolled back.
    uploaded: BTreeSet<String>,
}

impl Open {
    fn expected(&self) -> Model {
        let mut model = self.base.clone();
        assert!(self.does.iter().all(|does| does.apply(&mut model)), "what was staged can be staged");
        model
    }

    fn check_view(&self) {
        assert_eq!(model_of(&self.transaction.view().state), self.expected());
    }
}

struct World {
    random: SeededRandom,
    disk: SimDisk,
    objects: Objects,
    transactions: Arc<Transactions>,
    committed: Model,
    open: Vec<Open>,
    readers: Vec<(Snapshot, Model)>,
    next_shard: u128,
    /// Counts of events by kind, to verify that all kinds occur.
    seen: BTreeMap<&'static str, usize>,
}

impl World {
    fn new(seed: u64) -> Self {
        let (disk, objects) = (SimDisk::new(seed), bucket());
        let transactions = open(&disk, &objects);
        Self {
            random: SeededRandom::new(seed),
            disk,
            objects,
            transactions,
            committed: Model::new(),
            open: Vec::new(),
            readers: Vec::new(),
            next_shard: 1,
            seen: BTreeMap::new(),
        }
    }

    fn below(&self, count: usize) -> usize {
        usize::try_from(self.random.next_u64() % count as u64).unwrap()
    }

    async fn step(&mut self) {
        match self.below(100) {
            0..12 if self.open.len() < 4 => self.begin(),
            12..60 if !self.open.is_empty() => self.statement().await,
            60..66 if !self.open.is_empty() => self.savepoint(),
            66..72 if !self.open.is_empty() => self.rollback_to(),
            72..84 if !self.open.is_empty() => self.commit().await,
            84..87 if !self.open.is_empty() => {
                let index = self.below(self.open.len());
                self.open.swap_remove(index).transaction.rollback();
            }
            87..90 if self.readers.len() < 3 => {
                self.readers.push((self.transactions.current(), self.committed.clone()));
            }
            90..93 if !self.readers.is_empty() => {
                let index = self.below(self.readers.len());
                self.readers.swap_remove(index);
            }
            93..97 => self.clean().await,
            97 => self.crash(),
            98 => self.disk.fail_after(self.random.next_u64() % 4),
            _ => self.begin(),
        }
        if self.transactions.is_poisoned() {
            self.crash();
        }
    }

    fn saw(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    fn begin(&mut self) {
        let isolation = if self.below(2) == 0 { Isolation::ReadCommitted } else { Isolation::RepeatableRead };
        let transaction = self.transactions.begin(isolation);
        let base = self.committed.clone();
        self.open.push(Open { transaction, base, does: vec![], savepoints: vec![], uploaded: BTreeSet::new() });
    }

    async fn statement(&mut self) {
        let index = self.below(self.open.len());
        if !self.refresh(index) {
            return;
        }
        let view = self.open[index].expected();
        let tables: Vec<u32> = view.keys().copied().collect();
        let does = if tables.is_empty() || self.below(6) == 0 {
            let table = self.transactions.allocate_oid().0;
            Does::Create { table, name: format!("t{}", self.below(4)) }
        } else {
            let table = tables[self.below(tables.len())];
            match self.below(10) {
                0 => Does::Drop { table },
                1 => Does::Truncate { table },
                2 | 3 => Does::Comment { table, text: self.next_shard.to_string() },
                _ => {
                    let count = 1 + self.below(3) as u128;
                    let shards: Vec<u128> = (self.next_shard..self.next_shard + count).collect();
                    self.next_shard += count;
                    Does::Load { table, shards }
                }
            }
        };
        self.next_shard += 1;
        let open = &mut self.open[index];
        if let Does::Load { table, shards } = &does {
            for &shard in shards {
                let name = object_name(*table, shard);
                if open.transaction.announce_upload(&name).await.is_err() {
                    return;
                }
                self.objects.put(&name, Bytes::from_static(b"rows")).await.unwrap();
                open.uploaded.insert(name);
            }
        }
        let mut view = view;
        let possible = does.apply(&mut view);
        let staged = open.transaction.stage(does.changes(&open.transaction.view().state));
        assert_eq!(staged.is_ok(), possible, "{does:?}: {staged:?}");
        if possible {
            open.does.push(does);
        }
        open.check_view();
    }

    /// Refreshes a READ COMMITTED transaction; returns `false` if it met a conflict and has ended.
    fn refresh(&mut self, index: usize) -> bool {
        let open = &mut self.open[index];
        if open.transaction.isolation() == Isolation::RepeatableRead {
            open.transaction.refresh().unwrap();
        } else if open.transaction.refresh().is_ok() {
            assert!(!self.harmful(&self.open[index]), "a transaction does not move on past what contradicts it");
            self.open[index].base = self.committed.clone();
        } else {
            let open = self.open.swap_remove(index);
            assert!(!self.harmless(&open), "loads alone do not conflict: {:?}", open.does);
            self.saw("conflict at a statement");
            return false;
        }
        self.open[index].check_view();
        true
    }

    /// Returns whether `open` only loads into tables that are unchanged except for more shards.
    fn harmless(&self, open: &Open) -> bool {
        open.does.iter().all(|does| match does {
            Does::Load { table, .. } => match (open.base.get(table), self.committed.get(table)) {
                (Some(base), Some(now)) => now.shards.starts_with(&base.shards) && !base.shards.is_empty(),
                _ => false,
            },
            _ => false,
        })
    }

    /// Returns whether another transaction has since made a change that `open` did not see and would undo or
    /// contradict.
    fn harmful(&self, open: &Open) -> bool {
        open.does.iter().any(|does| {
            let (Does::Create { table, .. }
            | Does::Drop { table }
            | Does::Comment { table, .. }
            | Does::Load { table, .. }
            | Does::Truncate { table }) = does;
            let Some(base) = open.base.get(table) else { return false };
            self.committed.get(table).is_none_or(|now| match does {
                Does::Load { .. } => !now.shards.starts_with(&base.shards),
                Does::Truncate { .. } => now.shards != base.shards,
                Does::Create { .. } | Does::Drop { .. } | Does::Comment { .. } => now.comment != base.comment,
            })
        })
    }

    fn savepoint(&mut self) {
        let index = self.below(self.open.len());
        let open = &mut self.open[index];
        open.transaction.set_savepoint(&open.savepoints.len().to_string());
        open.savepoints.push(open.does.len());
    }

    fn rollback_to(&mut self) {
        let index = self.below(self.open.len());
        if self.open[index].savepoints.is_empty() {
            return;
        }
        let target = self.below(self.open[index].savepoints.len());
        let open = &mut self.open[index];
        open.transaction.rollback_to_savepoint(&target.to_string()).unwrap();
        open.does.truncate(open.savepoints[target]);
        open.savepoints.truncate(target + 1);
        open.check_view();
    }

    async fn commit(&mut self) {
        let open = self.open.swap_remove(self.below(self.open.len()));
        let (harmless, harmful) = (self.harmless(&open), self.harmful(&open));
        let mut after = self.committed.clone();
        let fits = open.does.iter().all(|does| does.apply(&mut after));
        match open.transaction.commit().await {
            Ok(_) => {
                assert!(!harmful, "nothing is overwritten unseen: {:?}", open.does);
                assert!(fits, "what was committed can follow what was committed before: {:?}", open.does);
                self.saw(if self.committed == after { "empty commit" } else { "commit" });
                self.committed = after;
            }
            Err(Error::Conflict(_)) => {
                assert!(!harmless, "loads alone do not conflict: {:?}", open.does);
                self.saw("conflict at a commit");
            }
            // Only the store knows whether the commit took effect.
            Err(Error::InDoubt(_)) => {
                self.restart();
                let found = model_of(&self.transactions.current().state);
                assert!(found == self.committed || found == after, "all of the commit or nothing of it");
                self.saw(if found == after { "doubt, committed" } else { "doubt, not committed" });
                self.committed = found;
            }
            Err(Error::Poisoned) => self.crash(),
            Err(error) => panic!("{error}"),
        }
        self.check_committed();
    }

    fn check_committed(&self) {
        if !self.transactions.is_poisoned() {
            assert_eq!(model_of(&self.transactions.current().state), self.committed);
        }
    }

    async fn clean(&mut self) {
        if self.transactions.clean_once().await.is_err() {
            return self.crash();
        }
        self.transactions.delete_orphans(std::time::Duration::ZERO).await.unwrap();
        let found = self.found().await;
        for (_, seen) in &self.readers {
            assert!(objects_of(seen).is_subset(&found), "a reader finds all of its objects");
        }
        for open in &self.open {
            assert!(objects_of(&open.base).is_subset(&found), "an open transaction finds what it began with");
            assert!(open.uploaded.is_subset(&found), "an open transaction finds what it has uploaded");
        }
        assert!(objects_of(&self.committed).is_subset(&found), "what is committed is there");
    }

    async fn found(&self) -> BTreeSet<String> {
        self.objects.list("tables").await.unwrap().into_iter().map(|object| object.name).collect()
    }

    fn crash(&mut self) {
        self.restart();
        self.check_committed();
    }

    fn restart(&mut self) {
        self.open.clear();
        self.readers.clear();
        self.disk.crash();
        self.transactions = open(&self.disk, &self.objects);
    }

    /// Ends all transactions; exactly the committed objects must remain.
    async fn finish(mut self) -> BTreeMap<&'static str, usize> {
        self.crash();
        self.transactions.clean_once().await.unwrap();
        assert_eq!(self.found().await, objects_of(&self.committed), "no orphan outlives the cleaner");
        let report = self.transactions.delete_orphans(std::time::Duration::ZERO).await.unwrap();
        assert_eq!(report.orphans, 0, "everything was announced or remembered");
        self.seen
    }
}

#[tokio::test]
async fn random_transactions_do_what_the_model_does() {
    let mut seen: BTreeMap<&'static str, usize> = BTreeMap::new();
    for seed in 0..300 {
        let mut world = World::new(seed);
        for _ in 0..150 {
            world.step().await;
        }
        for (what, count) in world.finish().await {
            *seen.entry(what).or_default() += count;
        }
    }
    let often =
        ["commit", "conflict at a commit", "conflict at a statement", "doubt, committed", "doubt, not committed"];
    for what in often {
        assert!(5 <= seen.get(what).copied().unwrap_or_default(), "{what} happens: {seen:?}");
    }
}
