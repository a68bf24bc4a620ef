//! The time in which this server may write: until a write to its store fails, or until another start of the instance has its storage.

use std::sync::Arc;

use objects::Claim;
use tokio::sync::watch;

/// Shared by all who write.
#[derive(Debug, Clone)]
pub struct Tenure {
    /// `None` where the storage is nobody else's, as in tests.
    claim: Option<Arc<Claim>>,
    is_over: watch::Sender<bool>,
}

impl Tenure {
    /// That of a server whose storage has the claim.
    #[must_use]
    pub fn new(claim: Option<Arc<Claim>>) -> Self {
        Self { claim, is_over: watch::Sender::new(false) }
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        *self.is_over.borrow()
    }

    /// Waits for the end.
    pub async fn over(&self) {
        let mut is_over = self.is_over.subscribe();
        // The sender lives in `self`: waiting ends with the value alone.
        let _ = is_over.wait_for(|is_over| *is_over).await;
    }

    /// Ends it: a write to the store has failed.
    pub fn end(&self) {
        self.is_over.send_replace(true);
    }

    /// Asks the storage whether it is still this server's. To be called before anything in it is deleted, and now and then besides.
    ///
    /// # Errors
    /// [`objects::Error::ClaimLost`], which is the end; others where the storage does not answer.
    pub async fn check(&self) -> objects::Result<()> {
        let Some(claim) = &self.claim else { return Ok(()) };
        let checked = claim.check().await;
        if let Err(error @ objects::Error::ClaimLost { .. }) = &checked
            && !self.is_over()
        {
            tracing::error!(
                error = error as &dyn std::error::Error,
                "the storage belongs to another server now: this one writes and deletes nothing more, and stops"
            );
            self.end();
        }
        checked
    }
}
