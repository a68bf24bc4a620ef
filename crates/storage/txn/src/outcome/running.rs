//! The tokens that transactions run under.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Token;

/// All that run. Nobody begins with a token that is here: there is a lock on each.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunningTokens(Arc<Mutex<BTreeSet<Token>>>);

/// Keeps a token among those that run, until its transaction is visible or rolled back.
#[derive(Debug)]
pub(crate) struct Running {
    token: Token,
    all: RunningTokens,
}

impl RunningTokens {
    pub(super) fn begin(&self, token: &Token) -> Arc<Running> {
        self.0.lock().insert(token.clone());
        Arc::new(Running { token: token.clone(), all: self.clone() })
    }

    /// In their order.
    pub(super) fn list(&self) -> BTreeSet<Token> {
        self.0.lock().clone()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.all.0.lock().remove(&self.token);
    }
}
