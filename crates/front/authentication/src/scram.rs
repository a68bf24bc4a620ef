//! SCRAM-SHA-256 exchange, which checks a password without seeing it (RFC 7677).

use catalog::ScramVerifier;
use pgwire::api::auth::sasl::scram::{ScramSecret, ScramServerAuth, ScramServerAuthWaitingForClientFinal};
use pgwire::error::PgWireError;
use types::{Condition, SqlError, SqlResult};

#[cfg(test)]
mod tests;

/// Server's side of one exchange.
pub struct ScramExchange {
    auth: ScramServerAuth,
    is_encrypted: bool,
    /// True if the client has chosen the mechanism with channel binding.
    uses_channel_binding: bool,
    waiting: Option<ScramServerAuthWaitingForClientFinal>,
}

const SCRAM: &str = "SCRAM-SHA-256";
const SCRAM_PLUS: &str = "SCRAM-SHA-256-PLUS";

impl ScramExchange {
    /// Creates an exchange. `bound` is the exchange with channel binding to the server's certificate, for an encrypted
    /// connection.
    #[must_use]
    pub fn new(channel_bound: Option<ScramServerAuth>) -> Self {
        let is_encrypted = channel_bound.is_some();
        Self { auth: channel_bound.unwrap_or_default(), is_encrypted, uses_channel_binding: false, waiting: None }
    }

    /// Returns the mechanisms to offer, best first.
    #[must_use]
    pub fn mechanisms(&self) -> Vec<String> {
        let bound = (self.is_encrypted && self.auth.supports_channel_binding()).then_some(SCRAM_PLUS);
        bound.into_iter().chain([SCRAM]).map(str::to_owned).collect()
    }

    /// Sets the mechanism that the client has chosen.
    ///
    /// # Errors
    /// `08P01` if it was not offered.
    pub fn choose_mechanism(&mut self, mechanism: &str) -> SqlResult<()> {
        if !self.mechanisms().iter().any(|offered| offered == mechanism) {
            return Err(violation("client selected an invalid SASL authentication mechanism"));
        }
        self.uses_channel_binding = mechanism == SCRAM_PLUS;
        Ok(())
    }

    /// Returns the server's reply to the client's first message.
    ///
    /// # Errors
    /// `08P01` if the message is malformed.
    pub fn handle_client_first(&mut self, message: &[u8], verifier: &ScramVerifier) -> SqlResult<String> {
        if message.starts_with(b"p=") != self.uses_channel_binding {
            return Err(violation("malformed SCRAM message: the channel binding flag does not fit the mechanism"));
        }
        let secret = ScramSecret::Verifier {
            salt: verifier.salt.clone(),
            iterations: verifier.iterations as usize,
            stored_key: verifier.stored_key.to_vec(),
            server_key: verifier.server_key.to_vec(),
        };
        let (answer, waiting) = self.auth.on_client_first_message_with_secret(message, secret).map_err(scram_error)?;
        self.waiting = Some(waiting);
        Ok(answer)
    }

    /// Checks the client's proof, and returns the message that proves that the server knows the verifier.
    ///
    /// # Errors
    /// `28P01` if the proof is wrong, `08P01` if the message is malformed.
    pub fn handle_client_final(&mut self, body: &[u8]) -> SqlResult<String> {
        let waiting = self.waiting.take().ok_or_else(|| violation("no SASL exchange is under way"))?;
        waiting.on_client_final_message(body).map_err(scram_error)
    }
}

fn scram_error(error: PgWireError) -> SqlError {
    match error {
        PgWireError::InvalidPassword(_) => SqlError::new(Condition::InvalidPassword, "password authentication failed"),
        other => violation(format!("malformed SCRAM message: {other}")),
    }
}

fn violation(message: impl Into<String>) -> SqlError {
    SqlError::new(Condition::ProtocolViolation, message)
}
