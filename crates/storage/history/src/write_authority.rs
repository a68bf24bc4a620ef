//! Write authority: the right of this server to write, which ends when a write to its store fails or another server
//! claims the storage.

use std::sync::Arc;

use objects::StorageClaim;
use tokio::sync::watch;

/// Right of a server to write, shared by everything that writes.
#[derive(Debug, Clone)]
pub struct WriteAuthority {
    /// The claim on the storage; `None` if no other server can use it, as in tests.
    claim: Option<Arc<StorageClaim>>,
    is_over: watch::Sender<bool>,
}

impl WriteAuthority {
    /// Creates the write authority of a server that holds the claim.
    #[must_use]
    pub fn new(claim: Option<Arc<StorageClaim>>) -> Self {
        Self { claim, is_over: watch::Sender::new(false) }
    }

    /// Returns whether the authority has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        *self.is_over.borrow()
    }

    /// Waits for the end of the authority.
    pub async fn wait_for_end(&self) {
        let mut is_over = self.is_over.subscribe();
        // The sender lives in `self`, so waiting ends only when the value changes.
        let _ = is_over.wait_for(|is_over| *is_over).await;
    }

    /// Ends the authority, after a write to the store has failed.
    pub fn end(&self) {
        self.is_over.send_replace(true);
    }

    /// Verifies in the storage that the claim still belongs to this server; ends the authority if not. Must be called
    /// before anything in the storage is deleted, and regularly.
    ///
    /// # Errors
    /// [`objects::Error::ClaimLost`] if another server has claimed the storage; others if the storage cannot be read.
    pub async fn check(&self) -> objects::Result<()> {
        let Some(claim) = &self.claim else { return Ok(()) };
        let checked = claim.check_owned().await;
        if let Err(error @ objects::Error::ClaimLost { .. }) = &checked
            && !self.is_over()
        {
            tracing::error!(
                error = error as &dyn std::error::Error,
                "another server has claimed the storage: this server stops and writes and deletes nothing more"
            );
            self.end();
        }
        checked
    }
}
