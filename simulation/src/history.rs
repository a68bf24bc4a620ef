//! The model: the rows after every commit that was acknowledged.

use std::collections::{BTreeMap, BTreeSet};

use types::CommitTs;

/// A row's values that change; by the number that it got when it was inserted and that never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    /// No two rows have the same.
    pub(super) key: i32,
    /// No two versions of any rows have the same.
    pub(super) version: i64,
}

/// All rows by their number.
pub(super) type Rows = BTreeMap<i64, Row>;

/// What a transaction did to one row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Write {
    /// The version that it saw; `None` for a row that it inserted.
    pub(super) seen: Option<i64>,
    pub(super) now: Option<Row>,
}

/// What a transaction did.
#[derive(Debug, Clone, Default)]
pub(super) struct Writes {
    pub(super) rows: BTreeMap<i64, Write>,
    /// It took away all rows, and these are what it saw.
    pub(super) emptied: Option<Rows>,
    /// The token that it has written under.
    pub(super) token: Option<u64>,
}

/// Tokens that were committed, and by which commits.
pub(super) type Tokens = BTreeMap<u64, CommitTs>;

impl Writes {
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.emptied.is_none() && self.token.is_none()
    }

    /// `rows` as the transaction sees them.
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

    /// Why this cannot follow `rows`: a transaction wrote what it did not see.
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

/// The rows after each commit that changed any.
#[derive(Debug, Default)]
pub(super) struct History {
    states: BTreeMap<CommitTs, Rows>,
    /// Acknowledged, and not in `states` yet: the answers of one group come in any order.
    acknowledged: BTreeMap<CommitTs, Writes>,
    /// Handed to a committer that failed: all of it is there after the next start, or none.
    in_doubt: Vec<Writes>,
    /// What clients have asked to be committed, and not heard of yet.
    asked: BTreeMap<u64, Writes>,
    /// The same of the client that has gone last.
    left: Option<Writes>,
    tokens: Tokens,
}

impl History {
    /// A client waits for its commit.
    pub(super) fn ask(&mut self, client: u64, writes: &Writes) {
        self.asked.insert(client, writes.clone());
    }

    /// The client has heard of it.
    pub(super) fn answered(&mut self, client: u64) {
        self.asked.remove(&client);
    }

    /// The client has gone without having heard of it: what it asked for.
    pub(super) fn leave(&mut self, client: u64) -> Option<Writes> {
        self.left = self.asked.remove(&client);
        self.left.clone()
    }

    /// Nobody has told whether this was committed: it is there as a whole at this commit, the newest, or not at all.
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

    /// The rows as of a commit.
    pub(super) fn at(&mut self, ts: CommitTs) -> Rows {
        self.advance();
        self.states.range(..=ts).next_back().map(|(_, rows)| rows.clone()).unwrap_or_default()
    }

    /// Whether a row had the key at some moment between two commits.
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

    /// The server starts again at a commit with these rows: what was acknowledged is there, what was in doubt as a whole or not.
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

    /// What came after a commit is lost: the rows as of it are what is there.
    pub(super) fn go_back(&mut self, ts: CommitTs, found: &Rows, tokens: &Tokens) {
        let expected = self.at(ts);
        self.tokens.retain(|_, commit| *commit <= ts);
        assert_eq!(self.tokens, *tokens, "tokens, restored to commit {}", ts.0);
        assert!(*found == expected, "restored to commit {}: {found:?}, not {expected:?}", ts.0);
        self.states.retain(|commit, _| *commit <= ts);
        self.asked.clear();
        self.in_doubt.clear();
    }

    /// A client was told that its token is free, or that this commit has it.
    pub(super) fn claimed(&mut self, token: u64, by: Option<CommitTs>) {
        self.advance();
        match (self.tokens.get(&token), by) {
            (Some(known), by) => assert_eq!(Some(*known), by, "token {token} was committed"),
            (None, None) => {}
            // Its client has not heard of it.
            (None, Some(commit)) => {
                let mut unheard = self.asked.values().chain(&self.left);
                assert!(unheard.any(|writes| writes.token == Some(token)), "commit {} has a token of nobody", commit.0);
            }
        }
    }

    /// Every token that is known to be committed is told of.
    fn assert_known(&self, tokens: &Tokens) {
        for (token, commit) in &self.tokens {
            assert_eq!(tokens.get(token), Some(commit), "token {token} was committed");
        }
    }

    /// The oldest commit that changed rows.
    pub(super) fn oldest(&self) -> Option<CommitTs> {
        self.states.keys().next().copied()
    }

    /// How many commits changed rows.
    pub(super) fn commits(&self) -> usize {
        self.states.len()
    }
}

fn assert_keys_hold(rows: &Rows, ts: CommitTs) {
    let mut keys: Vec<i32> = rows.values().map(|row| row.key).collect();
    keys.sort_unstable();
    assert!(keys.windows(2).all(|pair| pair[0] != pair[1]), "commit {}: two rows have one key: {rows:?}", ts.0);
}
