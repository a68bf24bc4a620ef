//! Views: named queries.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use types::{ColumnId, Oid, SqlType};

/// A view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    pub oid: Oid,
    pub schema: Oid,
    pub name: String,
    pub owner: Oid,
    /// Names and types of its output; the n-th has [`ColumnId`] n, from 1.
    pub columns: Vec<(String, SqlType)>,
    /// SQL text of the query.
    pub definition: String,
    /// The tables and views that the query reads.
    pub depends_on: Vec<Oid>,
    /// The columns of those that it uses: they can be neither dropped nor retyped while the view exists.
    pub columns_used: Vec<(Oid, ColumnId)>,
    pub comment: Option<String>,
    #[serde(default)]
    pub column_comments: BTreeMap<ColumnId, String>,
}

impl View {
    /// The id of the output column at a position, from 0.
    #[must_use]
    pub fn column_id(position: usize) -> ColumnId {
        ColumnId(i32::try_from(position + 1).expect("a view has few columns"))
    }

    /// Name and type of an output column.
    #[must_use]
    pub fn column(&self, id: ColumnId) -> Option<&(String, SqlType)> {
        self.columns.get(usize::try_from(id.0).ok()?.checked_sub(1)?)
    }
}
