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
    pub(super) seen: Option<i64>,
    pub(super) now: Option<Row>,
}

/// Changes of a transaction.
#[derive(Debug, Clone, Default)]
pub(super) struct Writes {
    pub(super) rows: BTreeMap<i64, Write>,
    /// Rows that a TRUNCATE saw and removed.
    pub(super) emptied: Option<Rows>,
    /// Idempotency token of the transaction.
    pub(super) token: Option<u64>,
}

/// Committed tokens and their commits.
pub(super) type Tokens = BTreeMap<u64, CommitTs>;

impl Writes {
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.emptied.is_none() && self.token.is_none()
    }

    /// Returns `rows` with the changes applied.
    pub(super) fn over(&self, rows: &Rows) -> Rows {
        let mut rows = if self.emptied.is_some() { Rows::new() } else { rows.clone() };
        for (number, write) in &self.rows {
            match write.now {
                Some(row) => rows.insert(*number, row),
                None => rows.remove(number),
            };
        }
        rows
    }

    /// Returns why the changes cannot follow `rows`: the transaction wrote without having seen the latest version.
    fn refusal(&self, rows: &Rows) -> Option<String> {
        if let Some(seen) = self.emptied.as_ref().filter(|seen| *seen != rows) {
            return Some(format!("it took away {seen:?} where there was {rows:?}"));
        }
        if self.emptied.is_some() {
            return None;
        }
        self.rows.iter().find_map(|(number, write)| {
            let found = rows.get(number).map(|row| row.version);
            (found != write.seen).then(|| format!("row {number} was {found:?} and not {:?}", write.seen))
        })
    }
}

/// Rows after each commit that changed any.
#[derive(Debug, Default)]
pub(super) struct History {
    states: BTreeMap<CommitTs, Rows>,
    /// Acknowledged commits not yet in `states`: acknowledgements of one commit group arrive in any order.
    acknowledged: BTreeMap<CommitTs, Writes>,
    /// Writes whose commit failed with an unknown outcome: all or none of them exist after the next start.
    in_doubt: Vec<Writes>,
    /// Commits that clients have requested and not yet heard of.
    asked: BTreeMap<u64, Writes>,
    /// Pending commit of the client that disconnected last.
    left: Option<Writes>,
    tokens: Tokens,
}

impl History {
    /// Records that a client has requested a commit.
    pub(super) fn ask(&mut self, client: u64, writes: &Writes) {
        self.asked.insert(client, writes.clone());
    }

    /// Records that the client's commit was answered.
    pub(super) fn answered(&mut self, client: u64) {
        self.asked.remove(&client);
    }

    /// Removes a disconnected client; returns its pending commit.
    pub(super) fn leave(&mut self, client: u64) -> Option<Writes> {
        self.left = self.asked.remove(&client);
        self.left.clone()
    }

    /// Resolves a commit without an answer: at `ts`, the newest commit, its writes exist entirely or not at all.
    pub(super) fn find_out(&mut self, ts: CommitTs, writes: &Writes, found: &Rows, tokens: &Tokens) {
        self.left = None;
        let without = self.at(ts);
        let told = writes.token.and_then(|token| tokens.get(&token)).copied();
        if *found == without {
            assert!(told.is_none() || writes.over(&without) == without, "a token tells of a commit that was none");
            self.tokens.extend(writes.token.zip(told));
            return;
        }
        assert!(writes.token.is_none() || told.is_some(), "commit {} was made, and its token does not tell", ts.0);
        self.tokens.extend(writes.token.zip(told));
        if let Some(why) = writes.refusal(&without) {
            panic!("a commit that nobody waited for: {why}");
        }
        let with = writes.over(&without);
        assert!(*found == with, "commit {} has {found:?}, not {without:?} or {with:?}", ts.0);
        assert_keys_hold(&with, ts);
        self.states.insert(ts, with);
    }

    pub(super) fn acknowledge(&mut self, ts: CommitTs, writes: Writes) {
        self.acknowledged.insert(ts, writes);
    }

    pub(super) fn doubt(&mut self, writes: Writes) {
        self.left = None;
        self.in_doubt.push(writes);
    }

    /// Returns the rows as of a commit.
    pub(super) fn at(&mut self, ts: CommitTs) -> Rows {
        self.advance();
        self.states.range(..=ts).next_back().map(|(_, rows)| rows.clone()).unwrap_or_default()
    }

    /// Returns true if a row had the key at any commit from `from` to `to`.
    pub(super) fn had_key(&mut self, key: i32, from: CommitTs, to: CommitTs) -> bool {
        let has = |rows: &Rows| rows.values().any(|row| row.key == key);
        has(&self.at(from)) || self.states.range(from..=to).any(|(_, rows)| has(rows))
    }

    fn advance(&mut self) {
        for (ts, writes) in std::mem::take(&mut self.acknowledged) {
            let earlier = writes.token.and_then(|token| self.tokens.insert(token, ts));
            assert!(earlier.is_none(), "one token was committed twice, by {earlier:?} and {}", ts.0);
            let before = self.states.values().next_back().cloned().unwrap_or_default();
            assert!(self.states.keys().next_back().is_none_or(|last| *last < ts), "commit {} came twice", ts.0);
            if let Some(why) = writes.refusal(&before) {
                panic!("commit {}: {why}", ts.0);
            }
            let after = writes.over(&before);
            assert_keys_hold(&after, ts);
            self.states.insert(ts, after);
        }
    }

    /// Checks the rows after a restart: acknowledged writes exist, and writes in doubt exist entirely or not at all.
    pub(super) fn start_again(&mut self, ts: CommitTs, found: &Rows, tokens: &Tokens) {
        self.advance();
        self.asked.clear();
        let last = self.states.values().next_back().cloned().unwrap_or_default();
        let in_doubt = std::mem::take(&mut self.in_doubt);
        let doubted: BTreeSet<u64> = in_doubt.iter().filter_map(|writes| writes.token).collect();
        let with_doubts = in_doubt.iter().fold(last.clone(), |rows, writes| {
            if let Some(why) = writes.refusal(&rows) {
                panic!("in doubt: {why}");
            }
            writes.over(&rows)
        });
        assert!(*found == last || *found == with_doubts, "after a crash {found:?}, not {last:?} or {with_doubts:?}");
        let new: BTreeSet<u64> = tokens.keys().filter(|token| !self.tokens.contains_key(token)).copied().collect();
        let is_without = *found == last && new.is_empty();
        let is_with = *found == with_doubts && new == doubted;
        assert!(
            is_without || is_with,
            "after a crash tokens tell of {new:?}, and {doubted:?} were in doubt: {found:?}"
        );
        self.assert_known(tokens);
        self.tokens.clone_from(tokens);
        self.states.insert(ts, found.clone());
    }

    /// Checks the rows after a restore to commit `ts` and drops the later states.
    pub(super) fn go_back(&mut self, ts: CommitTs, found: &Rows, tokens: &Tokens) {
        let expected = self.at(ts);
        self.tokens.retain(|_, commit| *commit <= ts);
        assert_eq!(self.tokens, *tokens, "tokens, restored to commit {}", ts.0);
        assert!(*found == expected, "restored to commit {}: {found:?}, not {expected:?}", ts.0);
        self.states.retain(|commit, _| *commit <= ts);
        self.asked.clear();
        self.in_doubt.clear();
    }

    /// Checks the answer to a claim of a token: free, or committed by `by`.
    pub(super) fn claimed(&mut self, token: u64, by: Option<CommitTs>) {
        self.advance();
        match (self.tokens.get(&token), by) {
            (Some(known), by) => assert_eq!(Some(*known), by, "token {token} was committed"),
            (None, None) => {}
            // The client that committed it has not been answered yet.
            (None, Some(commit)) => {
                let mut unheard = self.asked.values().chain(&self.left);
                assert!(unheard.any(|writes| writes.token == Some(token)), "commit {} has a token of nobody", commit.0);
            }
        }
    }

    /// Asserts that every committed token is reported with its commit.
    fn assert_known(&self, tokens: &Tokens) {
        for (token, commit) in &self.tokens {
            assert_eq!(tokens.get(token), Some(commit), "token {token} was committed");
        }
    }

    /// Returns the oldest commit that changed rows.
    pub(super) fn oldest(&self) -> Option<CommitTs> {
        self.states.keys().next().copied()
    }

    /// Returns the number of commits that changed rows.
    pub(super) fn commits(&self) -> usize {
        self.states.len()
    }
}

fn assert_keys_hold(rows: &Rows, ts: CommitTs) {
    let mut keys: Vec<i32> = rows.values().map(|row| row.key).collect();
    keys.sort_unstable();
    assert!(keys.windows(2).all(|pair| pair[0] != pair[1]), "commit {}: two rows have one key: {rows:?}", ts.0);
}
