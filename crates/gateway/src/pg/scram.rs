//! Passwords: verifiers made from them, and the SCRAM-SHA-256 exchange that checks one without seeing it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use catalog::ScramVerifier;
use pgwire::api::auth::sasl::scram::{
    SCRAM_ITERATIONS, ScramSecret, ScramServerAuth, ScramServerAuthWaitingForClientFinal, gen_salted_password,
};
use pgwire::error::PgWireError;
use types::{Condition, Random, SqlError, SqlResult};

use crate::pg::frontend::{Body, violation};

#[cfg(test)]
mod tests;

const SALT_BYTES: usize = 16;
const PREFIX: &str = "SCRAM-SHA-256$";

/// The verifier for a password given to CREATE or ALTER ROLE: made from it, or taken over where the text is one already.
#[must_use]
pub(crate) fn verifier(password: &str, random: &dyn Random) -> ScramVerifier {
    if let Some(given) = parse_verifier(password) {
        return given;
    }
    let mut salt = vec![0; SALT_BYTES];
    random.fill(&mut salt);
    let salted = gen_salted_password(password, &salt, SCRAM_ITERATIONS);
    match ScramSecret::verifier_from_salted_password(salt, salted, SCRAM_ITERATIONS) {
        ScramSecret::Verifier { salt, iterations, stored_key, server_key } => {
            let key = |key: Vec<u8>| key.try_into().expect("SHA-256 gives 32 bytes");
            let iterations = u32::try_from(iterations).expect("the default is 4,096");
            ScramVerifier { salt, iterations, stored_key: key(stored_key), server_key: key(server_key) }
        }
        ScramSecret::SaltedPassword { .. } => unreachable!("a verifier was asked for"),
    }
}

/// Whether a verifier is the password's, or the one that the text is.
#[must_use]
pub(crate) fn is_of(verifier: &ScramVerifier, password: &str) -> bool {
    if let Some(given) = parse_verifier(password) {
        return given == *verifier;
    }
    let iterations = verifier.iterations as usize;
    let salted = gen_salted_password(password, &verifier.salt, iterations);
    match ScramSecret::verifier_from_salted_password(verifier.salt.clone(), salted, iterations) {
        ScramSecret::Verifier { stored_key, .. } => stored_key == verifier.stored_key,
        ScramSecret::SaltedPassword { .. } => unreachable!("a verifier was asked for"),
    }
}

/// Reads PostgreSQL's form, `SCRAM-SHA-256$iterations:salt$stored key:server key`; `None` where the text is a password.
fn parse_verifier(text: &str) -> Option<ScramVerifier> {
    let (head, keys) = text.strip_prefix(PREFIX)?.split_once('$')?;
    let (iterations, salt) = head.split_once(':')?;
    let (stored_key, server_key) = keys.split_once(':')?;
    let key = |text| STANDARD.decode(text).ok()?.try_into().ok();
    Some(ScramVerifier {
        salt: STANDARD.decode(salt).ok().filter(|salt| !salt.is_empty())?,
        iterations: iterations.parse().ok().filter(|count| *count > 0)?,
        stored_key: key(stored_key)?,
        server_key: key(server_key)?,
    })
}

/// A verifier no password fits, the same for the same name, so that a stranger cannot tell an unknown role from a known one.
pub(crate) fn decoy(user: &str, secret: &[u8; 32]) -> ScramVerifier {
    // One round is a plain HMAC of the secret keyed by the name.
    let derived = gen_salted_password(user, secret, 1);
    ScramVerifier {
        salt: derived.iter().copied().take(SALT_BYTES).collect(),
        iterations: u32::try_from(SCRAM_ITERATIONS).expect("the default is 4,096"),
        stored_key: *secret,
        server_key: *secret,
    }
}

/// The server's side of one exchange.
pub(crate) struct Exchange {
    auth: ScramServerAuth,
    encrypted: bool,
    waiting: Option<ScramServerAuthWaitingForClientFinal>,
}

const PLAIN: &str = "SCRAM-SHA-256";
const BOUND: &str = "SCRAM-SHA-256-PLUS";

impl Exchange {
    /// `bound` is the exchange tied to the server's certificate, for an encrypted connection.
    pub(crate) fn new(bound: Option<ScramServerAuth>) -> Self {
        let encrypted = bound.is_some();
        Self { auth: bound.unwrap_or_default(), encrypted, waiting: None }
    }

    /// The mechanisms to offer, best first.
    pub(crate) fn mechanisms(&self) -> Vec<String> {
        let bound = (self.encrypted && self.auth.supports_channel_binding()).then_some(BOUND);
        bound.into_iter().chain([PLAIN]).map(str::to_owned).collect()
    }

    /// Answers the client's first message, a SASLInitialResponse.
    pub(crate) fn first(&mut self, body: bytes::Bytes, verifier: &ScramVerifier) -> SqlResult<String> {
        let mut body = Body(body);
        let mechanism = body.text()?;
        if !self.mechanisms().contains(&mechanism) {
            return Err(violation("client selected an invalid SASL authentication mechanism"));
        }
        let length = body.u32()?;
        if body.0.len() != length as usize || length == 0 {
            return Err(violation("malformed SASL initial response"));
        }
        let binds = body.0.starts_with(b"p=");
        if binds != (mechanism == BOUND) {
            return Err(violation("malformed SCRAM message: the channel binding flag does not fit the mechanism"));
        }
        let secret = ScramSecret::Verifier {
            salt: verifier.salt.clone(),
            iterations: verifier.iterations as usize,
            stored_key: verifier.stored_key.to_vec(),
            server_key: verifier.server_key.to_vec(),
        };
        let (answer, waiting) = self.auth.on_client_first_message_with_secret(&body.0, secret).map_err(refusal)?;
        self.waiting = Some(waiting);
        Ok(answer)
    }

    /// Checks the client's proof, and proves in turn that the server knows the verifier.
    pub(crate) fn last(&mut self, body: &[u8]) -> SqlResult<String> {
        let waiting = self.waiting.take().ok_or_else(|| violation("no SASL exchange is under way"))?;
        waiting.on_client_final_message(body).map_err(refusal)
    }
}

fn refusal(error: PgWireError) -> SqlError {
    match error {
        PgWireError::InvalidPassword(_) => SqlError::new(Condition::InvalidPassword, "password authentication failed"),
        other => violation(format!("malformed SCRAM message: {other}")),
    }
}
