//! Reference model: the rows after every acknowledged commit.

use std::collections::{BTreeMap, BTreeSet};

use types::CommitTs;

/// Mutable values of a row; the row's number, assigned at insertion, never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    /// Unique among the rows.
    pub(super) key: i32,
    /// Unique among all versions of all rows.
    pub(super) version: i64,
}

/// Rows by number.
pub(super) type Rows = BTreeMap<i64, Row>;

/// Change of one row by a transaction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Write {
    /// Version that the transaction saw; `None` for an inserted row.
    pub(super) seen_version: Option<i64>,
    pub(super) new_row: Option<Row>,
}

/// Changes of a transaction.
#[derive(Debug, Clone, Default)]
pub(super) struct TransactionWrites {
    pub(super) rows: BTreeMap<i64, Write>,
    /// Rows that a TRUNCATE saw and removed.
    pub(super) truncated_rows: Option<Rows>,
    /// Idempotency token of the transaction.
    pub(super) token: Option<u64>,
}

/// Committed tokens and their commits.
pub(super) type Tokens = BTreeMap<u64, CommitTs>;

impl TransactionWrites {
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.truncated_rows.is_none() && self.token.is_none()
    }

    /// Returns `rows` with the changes applied.
    pub(super) fn apply_to(&self, rows: &Rows) -> Rows {
        let mut rows = if self.truncated_rows.is_some() { Rows::new() } else { rows.clone() };
        for (number, write) in &self.rows {
            match write.new_row {
                Some(row) => rows.insert(*number, row),
                None => rows.remove(number),
            };
        }
        rows
    }

    /// Returns why the changes cannot follow `rows`: the transaction wrote without having seen the latest version.
    fn find_conflict(&self, rows: &Rows) -> Option<String> {
        if let Some(seen) = self.truncated_rows.as_ref().filter(|seen| *seen != rows) {
            return Some(format!("it took away {seen:?} where there was {rows:?}"));
        }
        if self.truncated_rows.is_some() {
            return None;
        }
        self.rows.iter().find_map(|(number, write)| {
            let found = rows.get(number).map(|row| row.version);
            (found != write.seen_version)
                .then(|| format!("row {number} was {found:?} and not {:?}", write.seen_version))
        })
    }
}

/// Rows after each commit that changed any.
#[derive(Debug, Default)]
pub(super) struct ReferenceModel {
    states: BTreeMap<CommitTs, Rows>,
    /// Acknowledged commits not yet in `states`: acknowledgements of one commit group arrive in any order.
    acknowledged: BTreeMap<CommitTs, TransactionWrites>,
    /// Writes whose commit failed with an unknown outcome: all or none of them exist after the next start.
    in_doubt: Vec<TransactionWrites>,
    /// Commits that clients have requested and not yet heard of.
    pending: BTreeMap<u64, TransactionWrites>,
    /// Pending commit of the client that disconnected last.
    disconnected: Option<TransactionWrites>,
    tokens: Tokens,
}

impl ReferenceModel {
    /// Records that a client has requested a commit.
    pub(super) fn record_commit_request(&mut self, client: u64, writes: &TransactionWrites) {
        self.pending.insert(client, writes.clone());
    }

    /// Records that the client's commit was answered.
    pub(super) fn remove_commit_request(&mut self, client: u64) {
        self.pending.remove(&client);
    }

    /// Removes a disconnected client; returns its pending commit.
    pub(super) fn disconnect(&mut self, client: u64) -> Option<TransactionWrites> {
        self.disconnected = self.pending.remove(&client);
        self.disconnected.clone()
    }

    /// Resolves a commit without an answer: at `ts`, the newest commit, its writes exist entirely or not at all.
    pub(super) fn resolve_unanswered(
        &mut self,
        ts: CommitTs,
        writes: &TransactionWrites,
        found: &Rows,
        tokens: &Tokens,
    ) {
        self.disconnected = None;
        let without = self.rows_at(ts);
        let told = writes.token.and_then(|token| tokens.get(&token)).copied();
        if *found == without {
            assert!(told.is_none() || writes.apply_to(&without) == without, "a token tells of a commit that was none");
            self.tokens.extend(writes.token.zip(told));
            return;
        }
        assert!(writes.token.is_none() || told.is_some(), "commit {} was made, and its token does not tell", ts.0);
        self.tokens.extend(writes.token.zip(told));
        if let Some(why) = writes.find_conflict(&without) {
            panic!("a commit that nobody waited for: {why}");
        }
        let with = writes.apply_to(&without);
        assert!(*found == with, "commit {} has {found:?}, not {without:?} or {with:?}", ts.0);
        assert_unique_keys(&with, ts);
        self.states.insert(ts, with);
    }

    pub(super) fn acknowledge(&mut self, ts: CommitTs, writes: TransactionWrites) {
        self.acknowledged.insert(ts, writes);
    }

    pub(super) fn record_in_doubt(&mut self, writes: TransactionWrites) {
        self.disconnected = None;
        self.in_doubt.push(writes);
    }

    /// Returns the rows as of a commit.
    pub(super) fn rows_at(&mut self, ts: CommitTs) -> Rows {
        self.advance();
        self.states.range(..=ts).next_back().map(|(_, rows)| rows.clone()).unwrap_or_default()
    }

    /// Returns true if a row had the key at any commit from `from` to `to`.
    pub(super) fn had_key(&mut self, key: i32, from: CommitTs, to: CommitTs) -> bool {
        let has = |rows: &Rows| rows.values().any(|row| row.key == key);
        has(&self.rows_at(from)) || self.states.range(from..=to).any(|(_, rows)| has(rows))
    }

    fn advance(&mut self) {
        for (ts, writes) in std::mem::take(&mut self.acknowledged) {
            let earlier = writes.token.and_then(|token| self.tokens.insert(token, ts));
            assert!(earlier.is_none(), "one token was committed twice, by {earlier:?} and {}", ts.0);
            let before = self.states.values().next_back().cloned().unwrap_or_default();
            assert!(self.states.keys().next_back().is_none_or(|last| *last < ts), "commit {} came twice", ts.0);
            if let Some(why) = writes.find_conflict(&before) {
                panic!("commit {}: {why}", ts.0);
            }
            let after = writes.apply_to(&before);
            assert_unique_keys(&after, ts);
            self.states.insert(ts, after);
        }
    }

    /// Checks the rows after a restart: acknowledged writes exist, and writes in doubt exist entirely or not at all.
    pub(super) fn check_restart(&mut self, ts: CommitTs, found: &Rows, tokens: &Tokens) {
        self.advance();
        self.pending.clear();
        let last = self.states.values().next_back().cloned().unwrap_or_default();
        let in_doubt = std::mem::take(&mut self.in_doubt);
        let doubted: BTreeSet<u64> = in_doubt.iter().filter_map(|writes| writes.token).collect();
        let with_doubts = in_doubt.iter().fold(last.clone(), |rows, writes| {
            if let Some(why) = writes.find_conflict(&rows) {
                panic!("in doubt: {why}");
            }
            writes.apply_to(&rows)
        });
        assert!(*found == last || *found == with_doubts, "after a crash {found:?}, not {last:?} or {with_doubts:?}");
        let new: BTreeSet<u64> = tokens.keys().filter(|token| !self.tokens.contains_key(token)).copied().collect();
        let is_without = *found == last && new.is_empty();
        let is_with = *found == with_doubts && new == doubted;
        assert!(
            is_without || is_with,
            "after a crash tokens tell of {new:?}, and {doubted:?} were in doubt: {found:?}"
        );
        self.assert_tokens_reported(tokens);
        self.tokens.clone_from(tokens);
        self.states.insert(ts, found.clone());
    }

    /// Checks the rows after a restore to commit `ts` and drops the later states.
    pub(super) fn check_restore(&mut self, ts: CommitTs, found: &Rows, tokens: &Tokens) {
        let expected = self.rows_at(ts);
        self.tokens.retain(|_, commit| *commit <= ts);
        assert_eq!(self.tokens, *tokens, "tokens, restored to commit {}", ts.0);
        assert!(*found == expected, "restored to commit {}: {found:?}, not {expected:?}", ts.0);
        self.states.retain(|commit, _| *commit <= ts);
        self.pending.clear();
        self.in_doubt.clear();
    }

    /// Checks the answer to a claim of a token: free, or committed by `by`.
    pub(super) fn check_claim(&mut self, token: u64, by: Option<CommitTs>) {
        self.advance();
        match (self.tokens.get(&token), by) {
            (Some(known), by) => assert_eq!(Some(*known), by, "token {token} was committed"),
            (None, None) => {}
            // The client that committed it has not been answered yet.
            (None, Some(commit)) => {
                let mut unheard = self.pending.values().chain(&self.disconnected);
                assert!(unheard.any(|writes| writes.token == Some(token)), "commit {} has a token of nobody", commit.0);
            }
        }
    }

    /// Asserts that every committed token is reported with its commit.
    fn assert_tokens_reported(&self, tokens: &Tokens) {
        for (token, commit) in &self.tokens {
            assert_eq!(tokens.get(token), Some(commit), "token {token} was committed");
        }
    }

    /// Returns the oldest commit that changed rows.
    pub(super) fn oldest_commit(&self) -> Option<CommitTs> {
        self.states.keys().next().copied()
    }

    /// Returns the number of commits that changed rows.
    pub(super) fn commits(&self) -> usize {
        self.states.len()
    }
}

fn assert_unique_keys(rows: &Rows, ts: CommitTs) {
    let mut keys: Vec<i32> = rows.values().map(|row| row.key).collect();
    keys.sort_unstable();
    assert!(keys.windows(2).all(|pair| pair[0] != pair[1]), "commit {}: two rows have one key: {rows:?}", ts.0);
}
