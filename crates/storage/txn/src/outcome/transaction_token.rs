//! Token of one transaction and the statements that ran under it. Pure, except for the guard that registers the token
//! as running.

use std::sync::Arc;

use types::CommitTs;

use super::{Outcome, RunningToken, StatementDigest, StatementOutcome, Token, outcome_format};
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
    Repeat { written: StatementOutcome, commit: CommitTs },
}

/// Refusal of a claim.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// A token other than the transaction's, or a statement without token in a transaction that has one.
    #[error("the transaction runs under another idempotency token")]
    OtherToken,
    /// A transaction that has already written without a token.
    #[error("the transaction has already written without an idempotency token")]
    WrittenWithoutToken,
    /// A token that was committed with other statements.
    #[error("the idempotency token was committed with other statements")]
    OtherStatements { committed: usize, number: usize },
    #[error("a transaction with an idempotency token can have at most {limit} writing statements")]
    TooManyStatements { limit: usize },
    #[error("the maximum of {limit} stored idempotency tokens is reached")]
    TooManyTokens { limit: u64 },
    #[error("could not lock the idempotency token")]
    Lock(LockError),
    #[error(transparent)]
    Failed(#[from] Error),
}

/// Token state of a transaction.
#[derive(Debug, Default)]
pub(crate) struct TransactionToken {
    claimed: Option<ClaimedToken>,
    /// True if the transaction has written without a token.
    has_written_without_token: bool,
}

#[derive(Debug)]
struct ClaimedToken {
    token: Token,
    /// The outcome committed under the token before; if there is one, no statement runs.
    stored_outcome: Option<Arc<Outcome>>,
    /// Number of statements of `known` that were repeated.
    repeated_count: usize,
    /// Statements that have run.
    written: Vec<StatementOutcome>,
    running_guard: Option<Arc<RunningToken>>,
}

/// Position of the token state, for savepoints.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenRollbackPoint {
    /// Numbers of statements that were repeated and that ran; `None` without a token.
    statement_counts: Option<(usize, usize)>,
    had_written_without_token: bool,
}

impl TransactionToken {
    /// Returns whether the transaction has this token; `false` if it may still claim one.
    pub(super) fn has_token(&self, token: &Token) -> Result<bool, ClaimError> {
        match &self.claimed {
            Some(named) if named.token == *token => Ok(true),
            Some(_) => Err(ClaimError::OtherToken),
            None if self.has_written_without_token => Err(ClaimError::WrittenWithoutToken),
            None => Ok(false),
        }
    }

    pub(super) fn set_claimed(
        &mut self,
        token: &Token,
        known: Option<Arc<Outcome>>,
        running_guard: Option<Arc<RunningToken>>,
    ) {
        self.claimed = Some(ClaimedToken {
            token: token.clone(),
            stored_outcome: known,
            repeated_count: 0,
            written: Vec::new(),
            running_guard,
        });
    }

    /// Decides whether the next writing statement runs; a repeated statement counts as executed.
    pub(super) fn next_statement(&mut self, work: StatementDigest) -> Result<Claim, ClaimError> {
        let named = self.claimed.as_mut().expect("invariant of Naming: the token is claimed before a statement runs");
        let Some(known) = &named.stored_outcome else {
            if STATEMENTS_MAX <= named.written.len() {
                return Err(ClaimError::TooManyStatements { limit: STATEMENTS_MAX });
            }
            return Ok(Claim::Run);
        };
        match known.statements.get(named.repeated_count).filter(|written| written.digest == work) {
            Some(written) => {
                named.repeated_count += 1;
                Ok(Claim::Repeat { written: written.clone(), commit: known.commit })
            }
            None => {
                Err(ClaimError::OtherStatements { committed: known.statements.len(), number: named.repeated_count + 1 })
            }
        }
    }

    /// Returns whether [`Self::next_statement`] would find a repetition; `None` if that depends on the stored outcome.
    pub(super) fn would_repeat(&self, token: &Token, work: StatementDigest) -> Option<bool> {
        match &self.claimed {
            Some(named) if named.token == *token => {
                let next = named.stored_outcome.as_ref().and_then(|known| known.statements.get(named.repeated_count));
                Some(next.is_some_and(|next| next.digest == work))
            }
            Some(_) => Some(false),
            None => self.has_written_without_token.then_some(false),
        }
    }

    pub(super) fn record_statement(&mut self, written: StatementOutcome) {
        if let Some(named) = &mut self.claimed {
            debug_assert!(named.stored_outcome.is_none(), "invariant of Naming: repeated statements do not run");
            named.written.push(written);
        }
    }

    pub(super) fn begin_write_without_token(&mut self) -> Result<(), ClaimError> {
        if self.claimed.is_some() {
            return Err(ClaimError::OtherToken);
        }
        self.has_written_without_token = true;
        Ok(())
    }

    /// Returns whether there is an outcome to be committed.
    pub(crate) fn has_written(&self) -> bool {
        self.claimed.as_ref().is_some_and(|named| !named.written.is_empty())
    }

    /// Returns an upper bound of the bytes that the outcome takes in the store.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.claimed.as_ref().map_or(0, |named| outcome_format::max_stored_bytes(&named.written))
    }

    pub(crate) fn rollback_point(&self) -> TokenRollbackPoint {
        let named = self.claimed.as_ref().map(|named| (named.repeated_count, named.written.len()));
        TokenRollbackPoint { statement_counts: named, had_written_without_token: self.has_written_without_token }
    }

    /// Rolls back to the mark.
    pub(crate) fn rollback_to(&mut self, mark: TokenRollbackPoint) {
        self.has_written_without_token = mark.had_written_without_token;
        match (&mut self.claimed, mark.statement_counts) {
            (Some(named), Some((repeated, written))) => {
                named.repeated_count = repeated;
                named.written.truncate(written);
            }
            // The token was claimed after the mark; its lock is released with the later locks.
            _ => self.claimed = None,
        }
    }

    /// Takes the outcome to be committed, with the guard that registers the token as running.
    pub(crate) fn take(&mut self) -> Option<(Token, Vec<StatementOutcome>, Option<Arc<RunningToken>>)> {
        let named = self.claimed.take().filter(|named| !named.written.is_empty())?;
        Some((named.token, named.written, named.running_guard))
    }
}
