//! What one transaction does under its token. Pure, but for the guard that keeps the token among those that run.

use std::sync::Arc;

use types::CommitTs;

use super::{Outcome, Running, Token, WorkDigest, Written, stored};
use crate::Error;
use crate::locks::LockError;

/// Most writing statements of a transaction with a token: all of them are in its outcome.
pub const STATEMENTS_MAX: usize = 10_000;

/// What a statement is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// It has to run.
    Run,
    /// It has run, and was committed; this is what it did.
    Repeat { written: Written, commit: CommitTs },
}

/// Why a statement cannot run under its token.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// The transaction has another token, or has one where the statement has none.
    #[error("the transaction runs under another token")]
    Other,
    /// The transaction has written without a token.
    #[error("the transaction has written without a token")]
    Unnamed,
    /// Under this token something else was committed.
    #[error("the token was committed with other statements")]
    Differs { committed: usize, number: usize },
    #[error("a transaction with a token can have at most {most} writing statements")]
    TooManyStatements { most: usize },
    #[error("{most} tokens are kept, which is the most")]
    Full { most: u64 },
    #[error("no lock on the token")]
    Lock(LockError),
    #[error(transparent)]
    Failed(#[from] Error),
}

/// What a transaction does under a token, if it has one.
#[derive(Debug, Default)]
pub(crate) struct Naming {
    named: Option<Named>,
    /// It has written without one.
    is_unnamed: bool,
}

#[derive(Debug)]
struct Named {
    token: Token,
    /// What was committed under it before; then nothing runs.
    known: Option<Arc<Outcome>>,
    /// Statements of `known` that were repeated.
    repeated: usize,
    /// What has run.
    written: Vec<Written>,
    running: Option<Arc<Running>>,
}

/// Where a transaction was, for a savepoint.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamingMark {
    /// Statements that were repeated, and that have run; `None` without a token.
    named: Option<(usize, usize)>,
    is_unnamed: bool,
}

impl Naming {
    /// Whether the transaction has this token; `false` where it may take it.
    pub(super) fn has(&self, token: &Token) -> Result<bool, ClaimError> {
        match &self.named {
            Some(named) if named.token == *token => Ok(true),
            Some(_) => Err(ClaimError::Other),
            None if self.is_unnamed => Err(ClaimError::Unnamed),
            None => Ok(false),
        }
    }

    pub(super) fn begin(&mut self, token: &Token, known: Option<Arc<Outcome>>, running: Option<Arc<Running>>) {
        self.named = Some(Named { token: token.clone(), known, repeated: 0, written: Vec::new(), running });
    }

    /// What the next writing statement is to do. A repeat counts as done.
    pub(super) fn next(&mut self, work: WorkDigest) -> Result<Claim, ClaimError> {
        let named = self.named.as_mut().expect("a transaction claims its token first");
        let Some(known) = &named.known else {
            if STATEMENTS_MAX <= named.written.len() {
                return Err(ClaimError::TooManyStatements { most: STATEMENTS_MAX });
            }
            return Ok(Claim::Run);
        };
        match known.statements.get(named.repeated).filter(|written| written.work == work) {
            Some(written) => {
                named.repeated += 1;
                Ok(Claim::Repeat { written: written.clone(), commit: known.commit })
            }
            None => Err(ClaimError::Differs { committed: known.statements.len(), number: named.repeated + 1 }),
        }
    }

    /// Whether [`Self::next`] would call the statement a repeat; `None` where that depends on what is stored.
    pub(super) fn would_repeat(&self, token: &Token, work: WorkDigest) -> Option<bool> {
        match &self.named {
            Some(named) if named.token == *token => {
                let next = named.known.as_ref().and_then(|known| known.statements.get(named.repeated));
                Some(next.is_some_and(|next| next.work == work))
            }
            Some(_) => Some(false),
            None => self.is_unnamed.then_some(false),
        }
    }

    pub(super) fn note(&mut self, written: Written) {
        if let Some(named) = &mut self.named {
            debug_assert!(named.known.is_none(), "a repeat does not run");
            named.written.push(written);
        }
    }

    pub(super) fn write_unnamed(&mut self) -> Result<(), ClaimError> {
        if self.named.is_some() {
            return Err(ClaimError::Other);
        }
        self.is_unnamed = true;
        Ok(())
    }

    /// Whether there is an outcome to be committed.
    pub(crate) fn has_written(&self) -> bool {
        self.named.as_ref().is_some_and(|named| !named.written.is_empty())
    }

    /// What that takes in the store, at most.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.named.as_ref().map_or(0, |named| stored::bytes(&named.written))
    }

    pub(crate) fn mark(&self) -> NamingMark {
        let named = self.named.as_ref().map(|named| (named.repeated, named.written.len()));
        NamingMark { named, is_unnamed: self.is_unnamed }
    }

    /// Takes back what came after the mark.
    pub(crate) fn roll_back_to(&mut self, mark: NamingMark) {
        self.is_unnamed = mark.is_unnamed;
        match (&mut self.named, mark.named) {
            (Some(named), Some((repeated, written))) => {
                named.repeated = repeated;
                named.written.truncate(written);
            }
            // The lock on the token goes with those that were taken since.
            _ => self.named = None,
        }
    }

    /// What is to be committed, and what keeps the token among those that run until then.
    pub(crate) fn take(&mut self) -> Option<(Token, Vec<Written>, Option<Arc<Running>>)> {
        let named = self.named.take().filter(|named| !named.written.is_empty())?;
        Some((named.token, named.written, named.running))
    }
}
