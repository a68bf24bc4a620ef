//! What exists: the database, its schemas, tables, views and roles, and which shards each table has, as one immutable state.
//!
//! Never commits, never decides who may do what, never opens a shard. A state changes only into another state, by
//! [`CatalogState::apply`], and every state that exists fulfils the invariants.
//!
//! Start at `state.rs` for what can be asked, `change.rs` for what can happen; `stored.rs` is what lies on disk.

mod cascade;
mod change;
mod check;
mod clone;
mod database;
mod definitions;
mod deleted_rows;
mod dependants;
mod error;
mod fresh;
mod moves;
mod record;
mod role;
mod row_index;
mod sample;
mod schema;
mod sequence;
mod state;
pub mod stored;
mod summary;
mod table;
mod table_rows;
mod table_shards;
mod view;

#[cfg(test)]
mod fixtures;

pub use cascade::DropPlan;
pub use change::Change;
pub use database::Database;
pub use definitions::Definitions;
pub use deleted_rows::DeletedRows;
pub use dependants::Dependant;
pub use error::{Error, ObjectKind, Result};
pub use moves::{Compacted, Settled};
pub use role::{Role, ScramVerifier};
pub use row_index::RowIndex;
pub use sample::Sample;
pub use schema::Schema;
pub use sequence::{Sequence, SequenceOwner, SequencePosition};
pub use state::{CatalogState, Relation};
pub use summary::ColumnSummary;
pub use table::{
    Column, Constraint, ConstraintKind, Distribution, External, Identity, Index, KeyOrder, ReferentialAction,
    SortColumn, Storage, Table, TableOrder,
};
pub use table_rows::{CommittedRows, History, RowPlace, TableRows};
pub use table_shards::{PrunedShards, ShardList, ShardSize, TableShards};
pub use view::View;
