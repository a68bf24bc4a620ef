//! Idempotent transactions: outcomes of transactions that clients identify by a token, so that each is executed once,
//! however often the client sends it.
//!
//! An outcome is stored in the batch of its commit, so either both are durable or neither is. A transaction that claims
//! a token locks it until its commit is visible, so no other transaction finds the token unused while it is being
//! committed.
//!
//! - `transaction_token.rs`: the token of a transaction and the statements that ran under it
//! - `statement_digest.rs`: digests that identify a statement and its data
//! - `running_tokens.rs`: tokens of running transactions
//! - `outcome_format.rs`: outcomes in the store
//! - `expiry.rs`: removal of expired outcomes

mod expiry;
mod outcome_format;
mod running_tokens;
mod statement_digest;
#[cfg(test)]
mod tests;
mod transaction_token;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use kv::TxKv;
use types::{CommitTs, Oid};

pub use outcome_format::TOKEN_BYTES_MAX;
pub(crate) use outcome_format::{max_stored_bytes as stored_bytes, put};
use running_tokens::{RunningToken, RunningTokens};
pub use statement_digest::{StatementDigest, StatementHasher};
pub use transaction_token::{Claim, ClaimError, STATEMENTS_MAX};
pub(crate) use transaction_token::{TokenRollbackPoint, TransactionToken};

use crate::locks::LockWait;
use crate::transactions::Core;
use crate::{Error, Result, Transaction, Transactions};

/// Idempotency token: a client's name for a transaction. Each role has its own namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token {
    pub role: Oid,
    pub text: Arc<str>,
}

/// Writing statement that ran under a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementOutcome {
    /// Digest of the statement's text and parameters.
    pub digest: StatementDigest,
    /// Digest of the data of COPY FROM STDIN, if the client sent any.
    pub data_digest: Option<StatementDigest>,
    /// The command tag: `INSERT 0 5`.
    pub command_tag: String,
    pub rows: u64,
    /// True if the statement returned rows, which are not stored.
    pub returned_rows: bool,
}

/// Result of a transaction that committed under a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub commit: CommitTs,
    /// Time of the commit in microseconds since 1970.
    pub at_us: i64,
    /// Statements of the transaction in execution order; at least one.
    pub statements: Vec<StatementOutcome>,
}

/// Status of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenStatus {
    pub token: Token,
    /// The stored outcome; `None` while the transaction runs.
    pub outcome: Option<Arc<Outcome>>,
}

/// Retention of outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutcomeSettings {
    /// Time that each outcome is retained after its commit.
    pub retention: Duration,
    /// Maximum number of outcomes. At this number no transaction can begin under a new token.
    pub max_outcomes: u64,
}

impl Default for OutcomeSettings {
    fn default() -> Self {
        Self { retention: Duration::from_secs(24 * 3_600), max_outcomes: 1_000_000 }
    }
}

/// State of tokens shared by all transactions.
#[derive(Debug)]
pub(crate) struct OutcomeRegistry {
    pub(crate) running: RunningTokens,
    /// Number of outcomes in the store; below zero for a moment where one is removed before it was counted.
    count: AtomicI64,
    retention_us: AtomicI64,
    max_outcomes: AtomicU64,
}

impl OutcomeRegistry {
    /// Counts the outcomes in the store.
    pub(crate) fn recover(kv: &dyn TxKv) -> Result<Self> {
        let outcomes = Self {
            running: RunningTokens::default(),
            count: AtomicI64::new(i64::try_from(outcome_format::count(kv)?).expect("a disk holds fewer")),
            retention_us: AtomicI64::default(),
            max_outcomes: AtomicU64::default(),
        };
        outcomes.apply_settings(OutcomeSettings::default());
        Ok(outcomes)
    }

    fn apply_settings(&self, settings: OutcomeSettings) {
        self.retention_us.store(i64::try_from(settings.retention.as_micros()).unwrap_or(i64::MAX), Ordering::Relaxed);
        self.max_outcomes.store(settings.max_outcomes, Ordering::Relaxed);
    }

    /// Counts an outcome that was added to the store.
    pub(crate) fn count_committed(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the maximum number of outcomes if it is reached.
    fn reached_limit(&self) -> Option<u64> {
        let limit = self.max_outcomes.load(Ordering::Relaxed);
        let count = u64::try_from(self.count.load(Ordering::Relaxed)).unwrap_or_default();
        (limit <= count).then_some(limit)
    }
}

impl Transactions {
    /// Sets the retention of outcomes.
    pub fn set_outcome_settings(&self, settings: OutcomeSettings) {
        self.core.outcomes.apply_settings(settings);
    }

    /// Returns the status of tokens, sorted by token, optionally only those of one role or one token. A token that is
    /// missing from the result was not committed before this call, or its outcome has expired. Blocks on the store.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    pub fn outcomes(&self, role: Option<Oid>, token: Option<&str>) -> Result<Vec<TokenStatus>> {
        if self.is_poisoned() {
            return Err(Error::Poisoned);
        }
        let is_requested = |known: &Token| {
            role.is_none_or(|role| role == known.role) && token.is_none_or(|token| *token == *known.text)
        };
        // The order matters: a transaction that began before this and is not in the store afterwards has not committed
        // before the call.
        let running = self.core.outcomes.running.list();
        let stored = outcome_format::list(&*self.core.kv, role, token)?;
        // A durable transaction that is not visible yet still counts as running.
        let later = self.core.outcomes.running.list();
        let mut known: Vec<TokenStatus> = (stored.into_iter())
            .filter(|(token, _)| is_requested(token) && !later.contains(token))
            .map(|(token, outcome)| TokenStatus { token, outcome: Some(Arc::new(outcome)) })
            .collect();
        let is_running =
            |token: &Token| is_requested(token) && known.binary_search_by(|known| known.token.cmp(token)).is_err();
        let running = running.into_iter().chain(later).filter(|token| is_running(token));
        let mut running: Vec<TokenStatus> = running.map(|token| TokenStatus { token, outcome: None }).collect();
        known.append(&mut running);
        known.sort_by(|left, right| left.token.cmp(&right.token));
        known.dedup();
        Ok(known)
    }
}

impl Transaction {
    /// Claims a token for the transaction's next writing statement, and returns whether it must run or repeats a
    /// committed one. Waits for another transaction that runs under the same token. Must be called again if the
    /// statement is restarted.
    ///
    /// # Errors
    /// Fails if the transaction has written without a token or under another one, if the token was committed with
    /// another statement, if the token cannot be locked, or if too many outcomes are stored.
    pub async fn claim(&mut self, token: &Token, work: StatementDigest, wait: LockWait) -> Result<Claim, ClaimError> {
        if !self.token.has_token(token)? {
            let core = Arc::clone(self.core());
            self.lock_token(&outcome_format::key(token), wait).await.map_err(ClaimError::Lock)?;
            let known = core.outcome(token).await?.map(Arc::new);
            if known.is_none()
                && let Some(limit) = core.outcomes.reached_limit()
            {
                return Err(ClaimError::TooManyTokens { limit });
            }
            let running = known.is_none().then(|| core.outcomes.running.begin(token));
            self.token.set_claimed(token, known, running);
        }
        self.token.next_statement(work)
    }

    /// Records that a statement for which [`Claim::Run`] was returned has run.
    pub fn record_statement(&mut self, written: StatementOutcome) {
        self.token.record_statement(written);
    }

    /// Declares that a writing statement is about to run without a token.
    ///
    /// # Errors
    /// Fails if the transaction has a token: a repetition would execute this statement again.
    pub fn begin_write_without_token(&mut self) -> Result<(), ClaimError> {
        self.token.begin_write_without_token()
    }

    /// Returns whether [`Self::claim`] would find this statement committed. Takes no lock and does not wait for other
    /// transactions.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    pub async fn is_committed(&self, token: &Token, work: StatementDigest) -> Result<bool> {
        match self.token.would_repeat(token, work) {
            Some(answer) => Ok(answer),
            None => {
                let known = self.core().outcome(token).await?;
                Ok(known.is_some_and(|known| known.statements.first().is_some_and(|first| first.digest == work)))
            }
        }
    }
}

impl Core {
    /// Reads the stored outcome of a token.
    async fn outcome(&self, token: &Token) -> Result<Option<Outcome>> {
        let key = outcome_format::key(token);
        self.blocking(move |kv| outcome_format::read(kv, &key)).await
    }
}
