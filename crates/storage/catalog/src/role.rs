//! Roles: login and privileges.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use types::Oid;

/// Role; one with `login` is a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Role {
    pub oid: Oid,
    pub name: String,
    pub superuser: bool,
    pub login: bool,
    pub create_role: bool,
    pub create_db: bool,
    pub inherit: bool,
    /// Maximum number of concurrent connections; -1 for no limit.
    pub connection_limit: i32,
    /// Expiry of the password in microseconds since 1970 UTC.
    pub valid_until: Option<i64>,
    /// Verifier of the password; without one every password is rejected.
    pub scram: Option<ScramVerifier>,
    /// Defaults set by ALTER ROLE SET, by name of the setting.
    pub settings: BTreeMap<String, String>,
    pub comment: Option<String>,
}

impl Role {
    /// Id of the role `kiln` of a new catalog, the same as of PostgreSQL's bootstrap superuser.
    pub const BOOTSTRAP: Oid = Oid(10);
}

/// SCRAM-SHA-256 verifier (RFC 5802, RFC 7677): it verifies a password but does not suffice to log in.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScramVerifier {
    pub salt: Vec<u8>,
    pub iterations: u32,
    pub stored_key: [u8; 32],
    pub server_key: [u8; 32],
}

/// Omits salt and keys, so that they never appear in logs.
impl fmt::Debug for ScramVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScramVerifier").field("iterations", &self.iterations).finish_non_exhaustive()
    }
}
