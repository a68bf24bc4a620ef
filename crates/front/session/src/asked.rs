//! Idempotency tokens: the work that a statement asks for under its token, and the statement that it repeats.

use txn::{Token, Work, WorkDigest, Written};

/// The work that the running statement asks for under its token.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) token: Token,
    /// Its text.
    pub(crate) text: Work,
    /// Its text and what goes with it: values of parameters, or the text of a prepared statement.
    pub(crate) whole: Option<Work>,
    /// It runs under the token, and its outcome is to be noted.
    pub(crate) runs: bool,
}

/// A statement that has committed before.
#[derive(Debug)]
pub(crate) struct Repeated(pub(crate) Written);

impl Repeated {
    /// The outcome of the statement that is repeated.
    pub(crate) fn written(self) -> Written {
        self.0
    }
}

impl Asked {
    pub(crate) fn work(&self) -> WorkDigest {
        self.whole.as_ref().unwrap_or(&self.text).digest()
    }

    pub(crate) fn with(&mut self, part: &[u8]) {
        self.whole = Some(self.text.clone().part(part));
    }
}
