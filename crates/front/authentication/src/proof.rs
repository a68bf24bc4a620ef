//! The rule of who may log in: a role with a password proves it, a role without one connects from this machine only.

use std::net::IpAddr;
use std::sync::Arc;

use catalog::{CatalogState, Role, ScramVerifier};
use types::{Condition, SqlError, SqlResult};

use crate::verifier::decoy;

/// The proof that a client has to give of its role.
#[derive(Debug)]
pub enum Proof {
    /// It is on this machine, and its role has no password.
    Local(Arc<Role>),
    Password(Arc<Role>, ScramVerifier),
    /// The role does not exist; the exchange runs all the same, and fails.
    Impossible(ScramVerifier),
}

/// The proof that a client of this name and address has to give. `secret` makes up verifiers for roles that do not exist.
///
/// # Errors
/// `28000` where nothing that it could show would do.
pub fn demand(state: &CatalogState, user: &str, address: IpAddr, secret: &[u8; 32]) -> SqlResult<Proof> {
    let local = address.to_canonical().is_loopback();
    match state.role_by_name(user) {
        Some(role) => match (&role.scram, local) {
            (Some(verifier), _) => Ok(Proof::Password(Arc::clone(role), verifier.clone())),
            (None, true) => Ok(Proof::Local(Arc::clone(role))),
            (None, false) => {
                let message = format!("role \"{user}\" has no password and may connect from the server's machine only");
                let hint = format!("Connect there and run: ALTER ROLE {user} PASSWORD '...'");
                Err(SqlError::new(Condition::InvalidAuthorization, message).with_hint(hint))
            }
        },
        None if local => Err(SqlError::new(Condition::InvalidAuthorization, format!("role \"{user}\" does not exist"))),
        None => Ok(Proof::Impossible(decoy(user, secret))),
    }
}

/// Checks that a role whose password is right may log in at the moment `now_us`.
///
/// # Errors
/// `28000` for a role that may not log in, `28P01` for one whose time is over.
pub fn admit(role: &Role, now_us: i64) -> SqlResult<()> {
    if !role.login {
        let message = format!("role \"{}\" is not permitted to log in", role.name);
        return Err(SqlError::new(Condition::InvalidAuthorization, message));
    }
    if role.valid_until.is_some_and(|until_us| until_us < now_us) {
        return Err(failed(&role.name));
    }
    Ok(())
}

/// `28P01`, which does not say what was wrong.
#[must_use]
pub fn failed(user: &str) -> SqlError {
    SqlError::new(Condition::InvalidPassword, format!("password authentication failed for user \"{user}\""))
}
