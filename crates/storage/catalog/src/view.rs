//! Views: named queries.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use types::{ColumnId, Oid, SqlType};

/// View: a named query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    pub oid: Oid,
    pub schema: Oid,
    pub name: String,
    pub owner: Oid,
    /// Name and type of each output column; the n-th, counted from 1, has [`ColumnId`] n.
    pub columns: Vec<(String, SqlType)>,
    /// SQL text of the query.
    pub definition: String,
    /// Relations that the query reads.
    pub depends_on: Vec<Oid>,
    /// Columns that the query uses, with their relations; they can be neither dropped nor retyped while the view
    /// exists.
    pub columns_used: Vec<(Oid, ColumnId)>,
    pub comment: Option<String>,
    #[serde(default)]
    pub column_comments: BTreeMap<ColumnId, String>,
}

impl View {
    /// Returns the id of the output column at a position, counted from 0.
    #[must_use]
    pub fn column_id(position: usize) -> ColumnId {
        ColumnId(i32::try_from(position + 1).expect("the number of a view's columns fits into i32"))
    }

    /// Returns name and type of an output column.
    #[must_use]
    pub fn column(&self, id: ColumnId) -> Option<&(String, SqlType)> {
        self.columns.get(usize::try_from(id.0).ok()?.checked_sub(1)?)
    }
}
