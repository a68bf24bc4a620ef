//! Roles: who can log in and what they may do.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use types::Oid;

/// A role; with `login`, a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Role {
    pub oid: Oid,
    pub name: String,
    pub superuser: bool,
    pub login: bool,
    pub create_role: bool,
    pub create_db: bool,
    pub inherit: bool,
    /// Most connections at a time; -1 is no limit.
    pub connection_limit: i32,
    /// The password is good until then: microseconds since 1970 UTC.
    pub valid_until: Option<i64>,
    /// How a password is recognised; without one no password is right.
    pub scram: Option<ScramVerifier>,
    /// What ALTER ROLE SET fixed, by setting's name.
    pub settings: BTreeMap<String, String>,
    pub comment: Option<String>,
}

impl Role {
    /// The id of the role `kiln` that a fresh catalog has: PostgreSQL's bootstrap superuser has it too.
    pub const BOOTSTRAP: Oid = Oid(10);
}

/// What SCRAM-SHA-256 (RFC 5802, RFC 7677) keeps of a password: enough to recognise it, not enough to log in with.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScramVerifier {
    pub salt: Vec<u8>,
    pub iterations: u32,
    pub stored_key: [u8; 32],
    pub server_key: [u8; 32],
}

/// Keys stay out of logs.
impl fmt::Debug for ScramVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScramVerifier").field("iterations", &self.iterations).finish_non_exhaustive()
    }
}
