//! The database; an instance has exactly one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use types::Oid;

/// Database; the only one is `kiln`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Database {
    pub oid: Oid,
    pub name: String,
    pub owner: Oid,
    /// Defaults set by ALTER DATABASE SET, by name of the setting.
    pub settings: BTreeMap<String, String>,
    pub comment: Option<String>,
}

impl Database {
    /// Id of the database `kiln`, the same as of PostgreSQL's first user database.
    pub const KILN: Oid = Oid(5);
}
