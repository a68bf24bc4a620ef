//! The ticket by which a worker comes in for the first time: who it is to be, a secret that works once, and whom to believe.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cluster_model::WorkerId;
use ring::hmac;
use rustls_pki_types::CertificateDer;
use types::Random;

#[cfg(test)]
mod tests;

pub(crate) const SECRET_BYTES: usize = 32;
const ID_BYTES: usize = 8;

/// A worker's way in. Whoever has its text can be that worker, until it has been used.
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket {
    pub(crate) worker: WorkerId,
    pub(crate) secret: [u8; SECRET_BYTES],
    /// The instance's: nobody else is told the secret.
    pub(crate) authority: CertificateDer<'static>,
}

/// The text is no ticket's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the join ticket is damaged")]
pub struct TicketError;

impl Ticket {
    pub(crate) fn draw(worker: WorkerId, authority: CertificateDer<'static>, random: &dyn Random) -> Self {
        let mut secret = [0; SECRET_BYTES];
        random.fill(&mut secret);
        Self { worker, secret, authority }
    }

    /// As it is handed to a worker.
    #[must_use]
    pub fn text(&self) -> String {
        let mut bytes = Vec::with_capacity(ID_BYTES + SECRET_BYTES + self.authority.len());
        bytes.extend(self.worker.0.to_be_bytes());
        bytes.extend(self.secret);
        bytes.extend(self.authority.as_ref());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Of its text.
    ///
    /// # Errors
    /// The text is no ticket's.
    pub fn parse(text: &str) -> Result<Self, TicketError> {
        let bytes = URL_SAFE_NO_PAD.decode(text.trim()).map_err(|_| TicketError)?;
        let (worker, rest) = bytes.split_first_chunk::<ID_BYTES>().ok_or(TicketError)?;
        let (secret, authority) = rest.split_first_chunk::<SECRET_BYTES>().ok_or(TicketError)?;
        if authority.is_empty() {
            return Err(TicketError);
        }
        let authority = CertificateDer::from(authority.to_vec());
        Ok(Self { worker: WorkerId(u64::from_be_bytes(*worker)), secret: *secret, authority })
    }
}

/// What is remembered of a ticket's secret: enough to know it again, not enough to say it.
pub(crate) struct ExpectedSecret {
    key: hmac::Key,
    tag: hmac::Tag,
}

impl ExpectedSecret {
    pub(crate) fn of(ticket: &Ticket, random: &dyn Random) -> Self {
        let mut key = [0; SECRET_BYTES];
        random.fill(&mut key);
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
        let tag = hmac::sign(&key, &ticket.secret);
        Self { key, tag }
    }

    /// Whether it is this one. That takes as long whatever is shown.
    pub(crate) fn is(&self, shown: &[u8]) -> bool {
        hmac::verify(&self.key, shown, self.tag.as_ref()).is_ok()
    }
}

/// Without the secret.
impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket").field("worker", &self.worker).finish_non_exhaustive()
    }
}
