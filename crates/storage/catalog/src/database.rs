//! The one database.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use types::Oid;

/// A database: there is one, `kiln`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Database {
    pub oid: Oid,
    pub name: String,
    pub owner: Oid,
    /// What ALTER DATABASE SET fixed, by setting's name.
    pub settings: BTreeMap<String, String>,
    pub comment: Option<String>,
}

impl Database {
    /// The id of the database `kiln`: PostgreSQL's first database has it too.
    pub const KILN: Oid = Oid(5);
}
