//! SCRAM verifiers: the form in which the catalog stores passwords.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use catalog::ScramVerifier;
use pgwire::api::auth::sasl::scram::{SCRAM_ITERATIONS, ScramSecret, gen_salted_password};
use types::Random;

pub(crate) const SALT_BYTES: usize = 16;
const PREFIX: &str = "SCRAM-SHA-256$";

/// Returns the verifier of a password in CREATE or ALTER ROLE: derived from it with a new salt, or taken as is if the
/// text is a verifier.
#[must_use]
pub fn create_verifier(password: &str, random: &dyn Random) -> ScramVerifier {
    if let Some(parsed) = parse_verifier(password) {
        return parsed;
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

/// Whether a verifier matches the password, or is the one that the text encodes.
#[must_use]
pub(crate) fn matches_password(verifier: &ScramVerifier, password: &str) -> bool {
    if let Some(parsed) = parse_verifier(password) {
        return parsed == *verifier;
    }
    let iterations = verifier.iterations as usize;
    let salted = gen_salted_password(password, &verifier.salt, iterations);
    match ScramSecret::verifier_from_salted_password(verifier.salt.clone(), salted, iterations) {
        ScramSecret::Verifier { stored_key, .. } => stored_key == verifier.stored_key,
        ScramSecret::SaltedPassword { .. } => unreachable!("a verifier was asked for"),
    }
}

/// Parses PostgreSQL's form `SCRAM-SHA-256$iterations:salt$stored key:server key`; `None` if the text is a password.
pub(crate) fn parse_verifier(text: &str) -> Option<ScramVerifier> {
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

/// Derives a verifier that no password matches, the same for the same user name, so that an unknown role cannot be told
/// from an existing one.
#[must_use]
pub(crate) fn decoy_verifier(user: &str, secret: &[u8; 32]) -> ScramVerifier {
    // One iteration is a plain HMAC of the secret keyed by the name.
    let derived = gen_salted_password(user, secret, 1);
    ScramVerifier {
        salt: derived.iter().copied().take(SALT_BYTES).collect(),
        iterations: u32::try_from(SCRAM_ITERATIONS).expect("the default is 4,096"),
        stored_key: *secret,
        server_key: *secret,
    }
}
