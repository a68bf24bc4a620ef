//! Idempotency tokens: the work that a statement does under its token, and the committed statement that it repeats.

use txn::{StatementDigest, StatementHasher, StatementOutcome, Token};

/// Token and work of the running statement, to be claimed before it writes.
#[derive(Debug)]
pub(crate) struct TokenRequest {
    pub(crate) token: Token,
    /// Digest input: the text of the statement.
    pub(crate) text_hasher: StatementHasher,
    /// Digest input: the text with the values of its parameters or the text of the prepared statement; `None` if there
    /// are none.
    pub(crate) full_hasher: Option<StatementHasher>,
    /// True once the token is claimed: the statement runs, and its outcome is recorded in the commit.
    pub(crate) is_claimed: bool,
}

/// Outcome of a statement that was committed under the same token before.
#[derive(Debug)]
pub(crate) struct RecordedOutcome(pub(crate) StatementOutcome);

impl RecordedOutcome {
    /// Returns the recorded outcome.
    pub(crate) fn into_outcome(self) -> StatementOutcome {
        self.0
    }
}

impl TokenRequest {
    /// Returns the digest that a repetition has to match.
    pub(crate) fn digest(&self) -> StatementDigest {
        self.full_hasher.as_ref().unwrap_or(&self.text_hasher).digest()
    }

    /// Adds a part to the work beside the statement's text.
    pub(crate) fn add_part(&mut self, part: &[u8]) {
        self.full_hasher = Some(self.text_hasher.clone().with_part(part));
    }
}
