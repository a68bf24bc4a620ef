//! Join tickets: a worker's id, a single-use secret, and the certificate that authenticates the instance.

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

/// Single-use credential of a worker's first join. Whoever holds its text can join as that worker until it is used.
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket {
    pub(crate) worker: WorkerId,
    pub(crate) secret: [u8; SECRET_BYTES],
    /// Certificate of the instance's authority; the secret is sent only to a server with a certificate signed by it.
    pub(crate) authority: CertificateDer<'static>,
}

/// Error for a text that is not a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the join ticket is damaged")]
pub struct TicketError;

impl Ticket {
    /// Creates a ticket with a random secret.
    pub(crate) fn generate(worker: WorkerId, authority: CertificateDer<'static>, random: &dyn Random) -> Self {
        let mut secret = [0; SECRET_BYTES];
        random.fill(&mut secret);
        Self { worker, secret, authority }
    }

    /// Encodes the ticket as text: URL-safe base64 of id, secret and certificate.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut bytes = Vec::with_capacity(ID_BYTES + SECRET_BYTES + self.authority.len());
        bytes.extend(self.worker.0.to_be_bytes());
        bytes.extend(self.secret);
        bytes.extend(self.authority.as_ref());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Decodes a ticket from its text.
    ///
    /// # Errors
    /// The text is not a ticket.
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

/// Keyed hash of a ticket's secret: verifies the secret without storing it.
pub(crate) struct SecretHash {
    key: hmac::Key,
    tag: hmac::Tag,
}

impl SecretHash {
    /// Hashes a ticket's secret under a random key (HMAC-SHA256).
    pub(crate) fn from_ticket(ticket: &Ticket, random: &dyn Random) -> Self {
        let mut key = [0; SECRET_BYTES];
        random.fill(&mut key);
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
        let tag = hmac::sign(&key, &ticket.secret);
        Self { key, tag }
    }

    /// Verifies a secret in constant time.
    pub(crate) fn verify(&self, shown: &[u8]) -> bool {
        hmac::verify(&self.key, shown, self.tag.as_ref()).is_ok()
    }
}

/// Omits the secret.
impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket").field("worker", &self.worker).finish_non_exhaustive()
    }
}
