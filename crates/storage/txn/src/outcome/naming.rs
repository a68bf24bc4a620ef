//! Token of one transaction and the statements that ran under it. Pure, except for the guard that registers the token
//! as running.

use std::sync::Arc;

use types::CommitTs;

use super::{Outcome, Running, Token, WorkDigest, Written, stored};
use crate::Error;
use crate::locks::LockError;

/// Maximum number of writing statements of a transaction with a token, all of which its outcome stores.
pub const STATEMENTS_MAX: usize = 10_000;

/// Instruction for a statement that has claimed a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// Run the statement.
    Run,
    /// Skip the statement: it was committed before, with this result.
    Repeat { written: Written, commit: CommitTs },
}

/// Refusal of a claim.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// A token other than the transaction's, or a statement without token in a transaction that has one.
    #[error("the transaction runs under another token")]
    Other,
    /// A transaction that has already written without a token.
    #[error("the transaction has written without a token")]
    Unnamed,
    /// A token that was committed with other statements.
    #[error("the token was committed with other statements")]
    Differs { committed: usize, number: usize },
    #[error("a transaction with a token can have at most {most} writing statements")]
    TooManyStatements { most: usize },
    #[error("the maximum of {most} stored tokens is reached")]
    Full { most: u64 },
    #[error("could not lock the token")]
    Lock(LockError),
    #[error(transparent)]
    Failed(#[from] Error),
}

/// Token state of a transaction.
#[derive(Debug, Default)]
pub(crate) struct Naming {
    named: Option<Named>,
    /// True if the transaction has written without a token.
    is_unnamed: bool,
}

#[derive(Debug)]
struct Named {
    token: Token,
    /// The outcome committed under the token before; if there is one, no statement runs.
    known: Option<Arc<Outcome>>,
    /// Number of statements of `known` that were repeated.
    repeated: usize,
    /// Statements that have run.
    written: Vec<Written>,
    running: Option<Arc<Running>>,
}

/// Position of the token state, for savepoints.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamingMark {
    /// Numbers of statements that were repeated and that ran; `None` without a token.
    named: Option<(usize, usize)>,
    is_unnamed: bool,
}

impl Naming {
    /// Returns whether the transaction has this token; `false` if it may still claim one.
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

    /// Decides whether the next writing statement runs; a repeated statement counts as executed.
    pub(super) fn next(&mut self, work: WorkDigest) -> Result<Claim, ClaimError> {
        let named = self.named.as_mut().expect("invariant of Naming: the token is claimed before a statement runs");
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

    /// Returns whether [`Self::next`] would find a repetition; `None` if that depends on the stored outcome.
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
            debug_assert!(named.known.is_none(), "invariant of Naming: repeated statements do not run");
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

    /// Returns whether there is an outcome to be committed.
    pub(crate) fn has_written(&self) -> bool {
        self.named.as_ref().is_some_and(|named| !named.written.is_empty())
    }

    /// Returns an upper bound of the bytes that the outcome takes in the store.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.named.as_ref().map_or(0, |named| stored::bytes(&named.written))
    }

    pub(crate) fn mark(&self) -> NamingMark {
        let named = self.named.as_ref().map(|named| (named.repeated, named.written.len()));
        NamingMark { named, is_unnamed: self.is_unnamed }
    }

    /// Rolls back to the mark.
    pub(crate) fn roll_back_to(&mut self, mark: NamingMark) {
        self.is_unnamed = mark.is_unnamed;
        match (&mut self.named, mark.named) {
            (Some(named), Some((repeated, written))) => {
                named.repeated = repeated;
                named.written.truncate(written);
            }
            // The token was claimed after the mark; its lock is released with the later locks.
            _ => self.named = None,
        }
    }

    /// Takes the outcome to be committed, with the guard that registers the token as running.
    pub(crate) fn take(&mut self) -> Option<(Token, Vec<Written>, Option<Arc<Running>>)> {
        let named = self.named.take().filter(|named| !named.written.is_empty())?;
        Some((named.token, named.written, named.running))
    }
}
