//! What became of transactions that a client has named: by a token, so that each happens once, however often the client asks for it.
//!
//! An outcome is stored by the batch of the commit that it tells of, so one is there exactly when the other is. Whoever claims a token
//! holds a lock on it to the end of the transaction, which is when others see the commit: so nobody finds a token free that is being
//! committed. Start at `naming.rs` for what a transaction does under its token; `stored.rs` is what lies on disk.

mod forget;
mod naming;
mod running;
mod stored;
#[cfg(test)]
mod tests;
mod work;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use kv::TxKv;
use types::{CommitTs, Oid};

pub use naming::{Claim, ClaimError, STATEMENTS_MAX};
pub(crate) use naming::{Naming, NamingMark};
use running::{Running, RunningTokens};
pub use stored::TOKEN_BYTES_MAX;
pub(crate) use stored::{bytes as stored_bytes, put};
pub use work::{Work, WorkDigest};

use crate::locks::LockWait;
use crate::transactions::Core;
use crate::{Error, Result, Transaction, Transactions};

/// A client's name for a transaction. Each role has names of its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token {
    pub role: Oid,
    pub text: Arc<str>,
}

/// A writing statement that has run under a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// What was asked for.
    pub work: WorkDigest,
    /// Of what the client sent beside its text: the data of COPY FROM STDIN.
    pub data: Option<WorkDigest>,
    /// The command tag: `INSERT 0 5`.
    pub tag: String,
    pub rows: u64,
    /// It gave rows, which nobody has kept.
    pub gave_rows: bool,
}

/// What was committed under a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub commit: CommitTs,
    /// Microseconds since 1970.
    pub at_us: i64,
    /// In the order in which they ran; at least one.
    pub statements: Vec<Written>,
}

/// What is known of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub token: Token,
    /// `None` while a transaction runs under it.
    pub outcome: Option<Arc<Outcome>>,
}

/// How long outcomes are kept, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutcomeSettings {
    /// Every one for so long after its commit.
    pub kept_for: Duration,
    /// Where there are so many, no transaction begins under a new token.
    pub most: u64,
}

impl Default for OutcomeSettings {
    fn default() -> Self {
        Self { kept_for: Duration::from_secs(24 * 3_600), most: 1_000_000 }
    }
}

/// What transactions share about tokens.
#[derive(Debug)]
pub(crate) struct Outcomes {
    pub(crate) running: RunningTokens,
    /// Outcomes in the store.
    count: AtomicU64,
    kept_for_us: AtomicI64,
    most: AtomicU64,
}

impl Outcomes {
    /// Counts what the store has.
    pub(crate) fn recover(kv: &dyn TxKv) -> Result<Self> {
        let outcomes = Self {
            running: RunningTokens::default(),
            count: AtomicU64::new(stored::count(kv)?),
            kept_for_us: AtomicI64::default(),
            most: AtomicU64::default(),
        };
        outcomes.set(OutcomeSettings::default());
        Ok(outcomes)
    }

    fn set(&self, settings: OutcomeSettings) {
        self.kept_for_us.store(i64::try_from(settings.kept_for.as_micros()).unwrap_or(i64::MAX), Ordering::Relaxed);
        self.most.store(settings.most, Ordering::Relaxed);
    }

    /// Another one is in the store.
    pub(crate) fn note_committed(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// How many there may be, where there are so many.
    fn is_full(&self) -> Option<u64> {
        let most = self.most.load(Ordering::Relaxed);
        (most <= self.count.load(Ordering::Relaxed)).then_some(most)
    }
}

impl Transactions {
    /// From now on outcomes are kept so.
    pub fn keep_outcomes(&self, settings: OutcomeSettings) {
        self.core.outcomes.set(settings);
    }

    /// What is known of tokens, in their order: of all roles or one's, of all tokens or one. A token that is in none of these rows was
    /// not committed when this was called, or so long ago that its outcome is forgotten. Waits for the store.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub fn outcomes(&self, role: Option<Oid>, token: Option<&str>) -> Result<Vec<Known>> {
        if self.is_poisoned() {
            return Err(Error::Poisoned);
        }
        let is_asked = |known: &Token| {
            role.is_none_or(|role| role == known.role) && token.is_none_or(|token| *token == *known.text)
        };
        // Who has begun before this and is not in the store after it has not committed before this.
        let running = self.core.outcomes.running.list();
        let stored = stored::list(&*self.core.kv, role, token)?;
        // What is durable and not visible is still running.
        let later = self.core.outcomes.running.list();
        let mut known: Vec<Known> = (stored.into_iter())
            .filter(|(token, _)| is_asked(token) && !later.contains(token))
            .map(|(token, outcome)| Known { token, outcome: Some(Arc::new(outcome)) })
            .collect();
        let is_running =
            |token: &Token| is_asked(token) && known.binary_search_by(|known| known.token.cmp(token)).is_err();
        let running = running.into_iter().chain(later).filter(|token| is_running(token));
        let mut running: Vec<Known> = running.map(|token| Known { token, outcome: None }).collect();
        known.append(&mut running);
        known.sort_by(|left, right| left.token.cmp(&right.token));
        known.dedup();
        Ok(known)
    }
}

impl Transaction {
    /// A writing statement is about to run under a token, which is the transaction's from now on: whether it has to, or is the repeat of
    /// one that has committed. Waits for a transaction that runs under the same token. To be called again where the statement begins again.
    ///
    /// # Errors
    /// Where the transaction has written without a token or under another, the token was committed with another statement, or
    /// no lock on it is to be had.
    pub async fn claim(&mut self, token: &Token, work: WorkDigest, wait: LockWait) -> Result<Claim, ClaimError> {
        if !self.naming.has(token)? {
            let core = Arc::clone(self.core());
            self.lock_token(&stored::key(token), wait).await.map_err(ClaimError::Lock)?;
            let known = core.outcome(token).await?.map(Arc::new);
            if known.is_none()
                && let Some(most) = core.outcomes.is_full()
            {
                return Err(ClaimError::Full { most });
            }
            let running = known.is_none().then(|| core.outcomes.running.begin(token));
            self.naming.begin(token, known, running);
        }
        self.naming.next(work)
    }

    /// The statement that [`Claim::Run`] was said to has done what it was to do.
    pub fn note_written(&mut self, written: Written) {
        self.naming.note(written);
    }

    /// A writing statement is about to run without a token.
    ///
    /// # Errors
    /// Where the transaction has one: a repeat would run this statement again.
    pub fn write_unnamed(&mut self) -> Result<(), ClaimError> {
        self.naming.write_unnamed()
    }

    /// Whether [`Self::claim`] would find this statement committed already. Takes no lock and waits for nobody.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub async fn is_committed(&self, token: &Token, work: WorkDigest) -> Result<bool> {
        match self.naming.would_repeat(token, work) {
            Some(answer) => Ok(answer),
            None => {
                let known = self.core().outcome(token).await?;
                Ok(known.is_some_and(|known| known.statements.first().is_some_and(|first| first.work == work)))
            }
        }
    }
}

impl Core {
    /// What the store has of a token.
    async fn outcome(&self, token: &Token) -> Result<Option<Outcome>> {
        let key = stored::key(token);
        self.blocking(move |kv| stored::read(kv, &key)).await
    }
}
