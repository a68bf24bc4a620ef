//! Tokens of running transactions.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Token;

/// Registry of the tokens of running transactions. A token is registered once at a time, as claiming it takes a lock.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunningTokens(Arc<Mutex<BTreeSet<Token>>>);

/// Guard that keeps a token registered until its transaction is visible or rolled back.
#[derive(Debug)]
pub(crate) struct RunningToken {
    token: Token,
    registry: RunningTokens,
}

impl RunningTokens {
    pub(super) fn begin(&self, token: &Token) -> Arc<RunningToken> {
        self.0.lock().insert(token.clone());
        Arc::new(RunningToken { token: token.clone(), registry: self.clone() })
    }

    /// Returns the registered tokens, sorted.
    pub(super) fn list(&self) -> BTreeSet<Token> {
        self.0.lock().clone()
    }
}

impl Drop for RunningToken {
    fn drop(&mut self) {
        self.registry.0.lock().remove(&self.token);
    }
}
