//! Idempotency tokens: the work that a statement does under its token, and the committed statement that it repeats.

use txn::{Token, Work, WorkDigest, Written};

/// Token and work of the running statement, to be claimed before it writes.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) token: Token,
    /// Digest input: the text of the statement.
    pub(crate) text: Work,
    /// Digest input: the text with the values of its parameters or the text of the prepared statement; `None` if there
    /// are none.
    pub(crate) whole: Option<Work>,
    /// True once the token is claimed: the statement runs, and its outcome is recorded in the commit.
    pub(crate) runs: bool,
}

/// Outcome of a statement that was committed under the same token before.
#[derive(Debug)]
pub(crate) struct Repeated(pub(crate) Written);

impl Repeated {
    /// Returns the recorded outcome.
    pub(crate) fn written(self) -> Written {
        self.0
    }
}

impl Asked {
    /// Returns the digest that a repetition has to match.
    pub(crate) fn work(&self) -> WorkDigest {
        self.whole.as_ref().unwrap_or(&self.text).digest()
    }

    /// Adds a part to the work beside the statement's text.
    pub(crate) fn with(&mut self, part: &[u8]) {
        self.whole = Some(self.text.clone().part(part));
    }
}
