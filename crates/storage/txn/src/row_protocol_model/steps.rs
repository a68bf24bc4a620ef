//! Steps of the model.

use super::breadth_first_search::Bounds;
use super::omitted_rule::OmittedRule;
use super::row_moves::{Compacted, Flushed, Move, RowFate, bind, row_fate};
use super::serializable_reads::CommitWrite;
use super::table_rows::{Mask, Object, OwnVersions, ROWS, Rows, has};
use super::transaction::{Level, Transaction};
use super::world_state::World;

/// Step; numbers are rows or indexes of transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Insert,
    Update(usize),
    Delete(usize),
    Begin(Level),
    /// Looks up a row in a serializable transaction.
    Read(usize, usize),
    InsertIn(usize),
    FindRowToUpdate(usize, usize),
    FindRowToDelete(usize, usize),
    /// Locks the row that the statement saw, determines its fate, and changes it.
    Write(usize),
    Savepoint(usize),
    RollbackTo(usize),
    Commit(usize),
    Rollback(usize),
    Seal,
    /// Writes the shard of the sealed layer, with all rows or only those not yet deleted.
    WriteFlushedShard {
        all: bool,
    },
    CommitFlush,
    /// Writes a shard that is to replace this number of the oldest ones.
    WriteCompactedShard(usize),
    CommitCompaction,
    Truncate,
    Pin,
    Unpin,
    Clean,
    ForgetMoves,
    ForgetGenerations,
    WritePendingChanges,
    Crash,
}

/// Base of the numbers of uncommitted versions.
const UNCOMMITTED: u8 = 100;

/// Maximum number of statements of a transaction.
const STATEMENTS: u8 = 2;

impl World {
    /// Returns every possible step with the world after it, or with the violation that it shows.
    pub(super) fn next(&self, bounds: &Bounds, bug: Option<OmittedRule>) -> Vec<(Step, Result<World, String>)> {
        let steps = self.candidates(bounds);
        let after = |step| {
            let mut world = self.clone();
            let taken = world.take(step, bounds, bug);
            match taken {
                Ok(false) => None,
                Ok(true) if world == *self => None,
                Ok(true) => Some((step, Ok(world))),
                Err(reason) => Some((step, Err(reason))),
            }
        };
        steps.into_iter().filter_map(after).collect()
    }

    /// Returns the steps that may be possible; a cheap filter, since copying a world is expensive.
    fn candidates(&self, bounds: &Bounds) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut add = |is_possible: bool, step: Step| {
            if is_possible {
                steps.push(step);
            }
        };
        let spent = &self.spent;
        let may_commit = usize::from(self.rows.ts) < bounds.commits;
        let inserts = may_commit && (bounds.everything || spent.transactions == 0);
        add(inserts && spent.rows < bounds.rows, Step::Insert);
        for row in (0..ROWS).filter(|row| self.truth[*row] != 0 && may_commit && bounds.everything) {
            add(true, Step::Update(row));
            add(true, Step::Delete(row));
        }
        add(may_commit && spent.seals < bounds.seals && self.rows.sealed.is_none(), Step::Seal);
        add(self.rows.sealed.is_some() && self.running_flush.is_none(), Step::WriteFlushedShard { all: true });
        let some_are_gone = self.rows.sealed.is_some() && self.rows.gone != 0;
        add(some_are_gone && self.running_flush.is_none(), Step::WriteFlushedShard { all: false });
        add(may_commit && self.running_flush.is_some(), Step::CommitFlush);
        for count in 1..=self.rows.shards.len() {
            add(spent.compactions < bounds.compactions, Step::WriteCompactedShard(count));
        }
        add(may_commit && self.running_compaction.is_some(), Step::CommitCompaction);
        add(may_commit && spent.truncates < bounds.truncates, Step::Truncate);
        add(spent.pins < bounds.pins, Step::Pin);
        add(self.pinned.is_some(), Step::Unpin);
        add(!self.store.uploads.is_empty() || !self.store.garbage.is_empty(), Step::Clean);
        add(!self.moves.is_empty(), Step::ForgetMoves);
        add(self.store.has_forgotten(), Step::ForgetGenerations);
        add(self.store.is_half_written(), Step::WritePendingChanges);
        add(spent.crashes < bounds.crashes, Step::Crash);
        let levels = bounds.levels.iter().enumerate().filter(|(at, _)| bounds.everything || *at == spent.transactions);
        for (_, level) in levels {
            let is_first = *level != Level::Serializable || self.serializable().is_none();
            add(is_first && spent.transactions < bounds.transactions, Step::Begin(*level));
        }
        for (at, transaction) in self.transactions.iter().enumerate() {
            let is_looking = transaction.pending_write.is_some();
            let may_ask = !is_looking && transaction.statements < STATEMENTS;
            add(may_ask && spent.rows < bounds.rows, Step::InsertIn(at));
            for row in (0..spent.rows).filter(|_| may_ask) {
                add(true, Step::FindRowToUpdate(at, row));
                add(true, Step::FindRowToDelete(at, row));
            }
            for row in
                (0..ROWS).filter(|row| transaction.level == Level::Serializable && !has(transaction.reads.keys, *row))
            {
                add(!is_looking, Step::Read(at, row));
            }
            add(is_looking, Step::Write(at));
            add(bounds.everything && !is_looking && transaction.savepoint.is_none(), Step::Savepoint(at));
            add(!is_looking && transaction.savepoint.is_some(), Step::RollbackTo(at));
            add(may_commit && !is_looking, Step::Commit(at));
            add(!is_looking, Step::Rollback(at));
        }
        steps
    }

    /// Takes a step; returns false if it is impossible now.
    fn take(&mut self, step: Step, bounds: &Bounds, bug: Option<OmittedRule>) -> Result<bool, String> {
        let commits = matches!(
            step,
            Step::Insert
                | Step::Update(_)
                | Step::Delete(_)
                | Step::Commit(_)
                | Step::Seal
                | Step::CommitFlush
                | Step::CommitCompaction
                | Step::Truncate
        );
        if commits && usize::from(self.rows.ts) == bounds.commits {
            return Ok(false);
        }
        Ok(match step {
            Step::Insert => self.insert(bounds, bug),
            Step::Update(row) => self.write_one(row, UNCOMMITTED, bug),
            Step::Delete(row) => self.write_one(row, 0, bug),
            Step::Begin(level) => self.begin(level, bounds),
            Step::Read(at, row) => self.read(at, row),
            Step::InsertIn(at) => self.insert_in(at, bounds, bug),
            Step::FindRowToUpdate(at, row) => self.look(at, row, false, bug),
            Step::FindRowToDelete(at, row) => self.look(at, row, true, bug),
            Step::Write(at) => return self.write(at, bug),
            Step::Savepoint(at) => self.savepoint(at),
            Step::RollbackTo(at) => self.rollback_to(at, bug),
            Step::Commit(at) => return self.commit(at, bug),
            Step::Rollback(at) => {
                self.end(at);
                true
            }
            Step::Seal => self.seal(bounds),
            Step::WriteFlushedShard { all } => self.write_settled(all),
            Step::CommitFlush => self.settle(bug),
            Step::WriteCompactedShard(count) => self.write_compacted(count, bounds),
            Step::CommitCompaction => self.compact(bug),
            Step::Truncate => self.truncate(bounds),
            Step::Pin => self.pin(bounds),
            Step::Unpin => self.pinned.take().is_some(),
            Step::Clean => {
                self.clean(bug);
                true
            }
            Step::ForgetMoves => {
                self.forget_moves(bug);
                true
            }
            Step::ForgetGenerations => {
                self.store.forget_generations();
                true
            }
            Step::WritePendingChanges => self.store.write_rest(),
            Step::Crash => self.crash(bounds),
        })
    }

    fn commit_rows(&mut self, own: &OwnVersions, bug: Option<OmittedRule>) {
        self.store.write(&self.rows, own, bug);
        self.rows.after(own, bug);
    }

    fn serializable(&self) -> Option<&Transaction> {
        self.transactions.iter().find(|transaction| transaction.level == Level::Serializable)
    }

    fn end(&mut self, at: usize) -> Transaction {
        let transaction = self.transactions.remove(at);
        self.forget_written();
        transaction
    }

    /// Looks up a row; the transaction's own rows need no validation.
    fn read(&mut self, at: usize, row: usize) -> bool {
        let transaction = &mut self.transactions[at];
        if transaction.written[row].is_some() || transaction.pending_write.is_some() {
            return false;
        }
        let found = transaction.base.place(&OwnVersions::default(), row, &self.bucket);
        transaction.reads.add(row, found);
        true
    }

    fn insert(&mut self, bounds: &Bounds, bug: Option<OmittedRule>) -> bool {
        let row = self.spent.rows;
        if row == bounds.rows {
            return false;
        }
        self.spent.rows += 1;
        let mut own = OwnVersions::default();
        own.change(row, None, UNCOMMITTED, bug);
        self.commit_rows(&own, bug);
        self.record_write(CommitWrite::Rows(own));
        self.truth[row] = self.rows.ts;
        true
    }

    /// Runs an autocommit statement.
    fn write_one(&mut self, row: usize, version: u8, bug: Option<OmittedRule>) -> bool {
        let mut own = OwnVersions::default();
        let Some(place) = self.rows.place(&own, row, &self.bucket).filter(|_| !self.is_locked(row, None, bug)) else {
            return false;
        };
        own.change(row, Some(place), version, bug);
        self.commit_rows(&own, bug);
        self.record_write(CommitWrite::Rows(own));
        self.truth[row] = if version == 0 { 0 } else { self.rows.ts };
        true
    }

    fn is_locked(&self, row: usize, by_other_than: Option<usize>, bug: Option<OmittedRule>) -> bool {
        let others = self.transactions.iter().enumerate().filter(|(at, _)| Some(*at) != by_other_than);
        bug != Some(OmittedRule::NoRowLocks) && others.into_iter().any(|(_, other)| has(other.locks, row))
    }

    fn begin(&mut self, level: Level, bounds: &Bounds) -> bool {
        if self.spent.transactions == bounds.transactions {
            return false;
        }
        self.spent.transactions += 1;
        self.transactions.push(Transaction::new(level, &self.rows, self.truth));
        true
    }

    /// Refreshes the view of a READ COMMITTED transaction before a statement; returns false on a conflict.
    fn refresh(&mut self, at: usize, bug: Option<OmittedRule>) -> bool {
        let transaction = &mut self.transactions[at];
        if transaction.is_repeatable() {
            return true;
        }
        let is_emptied = transaction.base.emptied != self.rows.emptied;
        if is_emptied && !transaction.own.is_empty() {
            return false;
        }
        transaction.base = self.rows.clone();
        transaction.truth = self.truth;
        if transaction.moved != self.rows.moved {
            transaction.own = bind(&transaction.own, &self.rows, &self.moves, bug);
            transaction.moved = self.rows.moved;
        }
        true
    }

    fn insert_in(&mut self, at: usize, bounds: &Bounds, bug: Option<OmittedRule>) -> bool {
        let row = self.spent.rows;
        if row == bounds.rows || self.transactions[at].statements == STATEMENTS || !self.refresh(at, bug) {
            return false;
        }
        self.spent.rows += 1;
        self.transactions[at].change(row, None, UNCOMMITTED, bug);
        true
    }

    fn look(&mut self, at: usize, row: usize, deletes: bool, bug: Option<OmittedRule>) -> bool {
        let transaction = &self.transactions[at];
        if transaction.pending_write.is_some() || transaction.statements == STATEMENTS {
            return false;
        }
        if !self.refresh(at, bug) {
            self.end(at);
            return true;
        }
        let transaction = &mut self.transactions[at];
        let Some(place) = transaction.base.place(&transaction.own, row, &self.bucket) else { return false };
        transaction.pending_write = Some((row, place, deletes));
        true
    }

    fn write(&mut self, at: usize, bug: Option<OmittedRule>) -> Result<bool, String> {
        let Some((row, place, deletes)) = self.transactions[at].pending_write else { return Ok(false) };
        if self.is_locked(row, Some(at), bug) {
            return Ok(false);
        }
        let transaction = &mut self.transactions[at];
        transaction.pending_write = None;
        transaction.locks |= 1 << row;
        let mut was = place;
        if transaction.own.rows[row] == 0 && bug != Some(OmittedRule::ConcurrentChangesNotDetected) {
            let now = row_fate(&transaction.base, &self.rows, &self.moves, &self.bucket, row, place, bug);
            let should = match self.truth[row] {
                0 => "Deleted",
                version if version == transaction.truth[row] => "Same",
                _ => "Changed",
            };
            if !format!("{now:?}").starts_with(should) && bug != Some(OmittedRule::NoRowLocks) {
                return Err(format!("row {row} counts as {now:?} and is {should}"));
            }
            match now {
                RowFate::Same(place) if bug == Some(OmittedRule::PositionOfNewestSnapshotUsed) => was = place,
                RowFate::Same(_) => {}
                RowFate::Changed | RowFate::Deleted => {
                    if transaction.is_repeatable() {
                        self.end(at);
                    }
                    return Ok(true);
                }
            }
        }
        transaction.change(row, Some(was), if deletes { 0 } else { UNCOMMITTED }, bug);
        Ok(true)
    }

    fn savepoint(&mut self, at: usize) -> bool {
        let transaction = &mut self.transactions[at];
        if transaction.savepoint.is_some() || transaction.own.is_empty() || transaction.pending_write.is_some() {
            return false;
        }
        transaction.savepoint = Some((transaction.own.clone(), transaction.moved, transaction.written));
        true
    }

    fn rollback_to(&mut self, at: usize, bug: Option<OmittedRule>) -> bool {
        let transaction = &mut self.transactions[at];
        if transaction.pending_write.is_some() {
            return false;
        }
        let Some((own, moved, written)) = transaction.savepoint.clone() else { return false };
        (transaction.own, transaction.written) = (own, written);
        if moved != transaction.base.moved && bug != Some(OmittedRule::SavepointRowsNotRebound) {
            transaction.own = bind(&transaction.own, &transaction.base, &self.moves, bug);
        }
        transaction.moved = transaction.base.moved;
        true
    }

    fn commit(&mut self, at: usize, bug: Option<OmittedRule>) -> Result<bool, String> {
        if self.transactions[at].pending_write.is_some() {
            return Ok(false);
        }
        let since = self.transactions[at].base.ts;
        let written: Vec<_> =
            self.written.iter().filter(|(at, _)| since < *at).map(|(_, written)| written.clone()).collect();
        let transaction = self.end(at);
        let is_emptied = transaction.base.emptied != self.rows.emptied;
        if transaction.own.is_empty() || (is_emptied && bug != Some(OmittedRule::TruncateNotDetected)) {
            return Ok(true);
        }
        if bug != Some(OmittedRule::ReadsNotValidated) && transaction.reads.are_changed_by(written.iter(), bug) {
            return Ok(true);
        }
        for row in (0..ROWS).filter(|row| has(transaction.reads.keys, *row)) {
            let (was, is) = (transaction.truth[row], self.truth[row]);
            if was != is {
                return Err(format!("row {row} was read as {was} and is {is} when its reader commits"));
            }
        }
        let bound = bind(&transaction.own, &self.rows, &self.moves, bug);
        self.commit_rows(&bound, bug);
        self.record_write(CommitWrite::Rows(if bug == Some(OmittedRule::WritesRecordedAtOldPositions) {
            transaction.own.clone()
        } else {
            bound
        }));
        for row in 0..ROWS {
            let is_emptied = is_emptied && transaction.truth[row] != 0;
            match transaction.written[row] {
                Some(0) => self.truth[row] = 0,
                Some(_) if !is_emptied => self.truth[row] = self.rows.ts,
                _ => {}
            }
        }
        Ok(true)
    }

    fn seal(&mut self, bounds: &Bounds) -> bool {
        if self.spent.seals == bounds.seals || self.rows.sealed.is_some() || self.rows.active == [0; ROWS] {
            return false;
        }
        self.spent.seals += 1;
        self.store.seal(&self.rows);
        self.rows.seal();
        true
    }

    fn write_settled(&mut self, all: bool) -> bool {
        let (Some((generation, sealed)), None) = (self.rows.sealed, &self.running_flush) else { return false };
        let gone: Mask = if all { 0 } else { self.rows.gone };
        let rows = (0..ROWS).filter(|row| sealed[*row] != 0 && !has(gone, *row));
        let rows: Vec<(u8, u8)> = rows.map(|row| (row as u8, sealed[row])).collect();
        let flushed =
            Flushed { generation, shard: self.bucket.len() as u8, rows: rows.iter().map(|row| row.0).collect() };
        self.upload(rows);
        self.running_flush = Some(flushed);
        true
    }

    fn settle(&mut self, bug: Option<OmittedRule>) -> bool {
        let Some(flushed) = self.running_flush.take() else { return false };
        let before = self.rows.clone();
        if !self.rows.settle(&flushed, bug) {
            return true;
        }
        self.store.settle(&before, &flushed, bug);
        self.moves.push((self.rows.ts, Move::Flushed(flushed)));
        self.record_write(CommitWrite::Moved);
        true
    }

    fn write_compacted(&mut self, count: usize, bounds: &Bounds) -> bool {
        if self.spent.compactions == bounds.compactions || self.running_compaction.is_some() {
            return false;
        }
        self.spent.compactions += 1;
        let removed = self.rows.shards[..count].to_vec();
        // From the newest shard to the oldest, so that positions change.
        let rows = removed.iter().rev().flat_map(|(shard, deleted)| {
            let rows = self.bucket[usize::from(*shard)].rows.iter().enumerate();
            let live = rows.filter(|(place, _)| !has(*deleted, *place));
            live.map(|(place, row)| ((*shard, place as u8), *row)).collect::<Vec<_>>()
        });
        let (places, rows): (Vec<_>, Vec<_>) = rows.unzip();
        self.running_compaction = Some(Compacted { removed, shard: self.bucket.len() as u8, places });
        self.upload(rows);
        true
    }

    fn compact(&mut self, bug: Option<OmittedRule>) -> bool {
        let Some(compacted) = self.running_compaction.take() else { return false };
        let before = self.rows.clone();
        if !self.rows.compact(&compacted, bug) {
            return true;
        }
        self.store.compact(&before, &compacted, bug);
        self.moves.push((self.rows.ts, Move::Compacted(compacted)));
        self.record_write(CommitWrite::Moved);
        true
    }

    /// Announces an object, then writes it.
    fn upload(&mut self, rows: Vec<(u8, u8)>) {
        self.store.uploads.push(self.bucket.len() as u8);
        self.bucket.push(Object { rows, is_there: true });
    }

    fn truncate(&mut self, bounds: &Bounds) -> bool {
        if self.spent.truncates == bounds.truncates {
            return false;
        }
        self.spent.truncates += 1;
        self.store.truncate(&self.rows);
        self.rows.truncate();
        self.record_write(CommitWrite::Anything);
        self.truth = [0; ROWS];
        true
    }

    fn pin(&mut self, bounds: &Bounds) -> bool {
        if self.spent.pins == bounds.pins || self.pinned.is_some() {
            return false;
        }
        self.spent.pins += 1;
        self.pinned = Some((self.rows.clone(), self.truth));
        true
    }

    /// Discards everything in memory.
    fn crash(&mut self, bounds: &Bounds) -> bool {
        if self.spent.crashes == bounds.crashes {
            return false;
        }
        self.spent.crashes += 1;
        *self = World {
            rows: self.store.recover(),
            store: std::mem::take(&mut self.store),
            bucket: std::mem::take(&mut self.bucket),
            truth: self.truth,
            spent: self.spent,
            ..World::default()
        };
        true
    }
}

impl Transaction {
    fn change(&mut self, row: usize, was: Option<super::table_rows::Position>, version: u8, bug: Option<OmittedRule>) {
        self.statements += 1;
        let version = if version == 0 { 0 } else { version + self.statements };
        self.own.change(row, was, version, bug);
        self.written[row] = Some(version);
        self.anchor.get_or_insert(self.base.ts);
    }
}

impl World {
    /// Creates a world with an empty table.
    pub(super) fn new() -> World {
        let rows = Rows { generation: 1, ..Rows::default() };
        World { rows, store: super::durable_store::Store::new(1), ..World::default() }
    }
}
