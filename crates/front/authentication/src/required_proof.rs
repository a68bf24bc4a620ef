//! Login rule: a role with a password must prove it, a role without one may connect from the server's machine only.

use std::net::IpAddr;
use std::sync::Arc;

use catalog::{CatalogState, Role, ScramVerifier};
use types::{Condition, SqlError, SqlResult};

use crate::scram_verifier::decoy_verifier;

/// Proof that a client has to show to log in as a role.
#[derive(Debug)]
pub enum RequiredProof {
    /// No proof: the client is on the server's machine and the role has no password.
    Local(Arc<Role>),
    /// SCRAM exchange with the verifier of the role's password.
    Password(Arc<Role>, ScramVerifier),
    /// SCRAM exchange that must fail, with a decoy verifier: the role does not exist, which a remote client must not
    /// learn.
    Decoy(ScramVerifier),
}

/// Returns the proof that a client of this user name and address has to show. `secret` is the key of decoy verifiers
/// for roles that do not exist.
///
/// # Errors
/// `28000` if no proof is accepted: from a remote address for a role without password, locally for a role that does not
/// exist.
pub fn required_proof(
    state: &CatalogState,
    user: &str,
    address: IpAddr,
    secret: &[u8; 32],
) -> SqlResult<RequiredProof> {
    let local = address.to_canonical().is_loopback();
    match state.role_by_name(user) {
        Some(role) => match (&role.scram, local) {
            (Some(verifier), _) => Ok(RequiredProof::Password(Arc::clone(role), verifier.clone())),
            (None, true) => Ok(RequiredProof::Local(Arc::clone(role))),
            (None, false) => {
                let message = format!("role \"{user}\" has no password and may connect from the server's machine only");
                let hint = format!("Connect there and run: ALTER ROLE {user} PASSWORD '...'");
                Err(SqlError::new(Condition::InvalidAuthorization, message).with_hint(hint))
            }
        },
        None if local => Err(SqlError::new(Condition::InvalidAuthorization, format!("role \"{user}\" does not exist"))),
        None => Ok(RequiredProof::Decoy(decoy_verifier(user, secret))),
    }
}

/// Checks that an authenticated role may log in at `now_us`.
///
/// # Errors
/// `28000` for a role without the LOGIN attribute, `28P01` for one whose VALID UNTIL has passed.
pub fn check_login_allowed(role: &Role, now_us: i64) -> SqlResult<()> {
    if !role.login {
        let message = format!("role \"{}\" is not permitted to log in", role.name);
        return Err(SqlError::new(Condition::InvalidAuthorization, message));
    }
    if role.valid_until.is_some_and(|until_us| until_us < now_us) {
        return Err(authentication_failed(&role.name));
    }
    Ok(())
}

/// Returns the error of a failed authentication (`28P01`), which does not tell the reason.
#[must_use]
pub fn authentication_failed(user: &str) -> SqlError {
    SqlError::new(Condition::InvalidPassword, format!("password authentication failed for user \"{user}\""))
}
