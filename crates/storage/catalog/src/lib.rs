//! Catalog: the database, its schemas, tables, views, sequences and roles, and the rows and shards of each table, as
//! one immutable state.
//!
//! This crate never commits, never decides about permissions and never opens a shard. A state changes only into another
//! state, by [`CatalogState::apply`], and every state fulfils the invariants of `check.rs`.
//!
//! Reading order:
//!
//! - `state.rs`, `definitions.rs`: the state and its queries
//! - `change/`: changes and their application; `check.rs` has the invariants
//! - `dependants.rs`, `cascade/`: dependencies between objects, and DROP … CASCADE
//! - `table.rs`, `view.rs`, `sequence.rs`, `role.rs`, `schema.rs`, `database.rs`: definitions of objects
//! - `table_rows.rs`, `row_index.rs`, `delete_bitmap.rs`, `sample.rs`: the rows of a table
//! - `table_shards/`, `summary/`: its shards and their statistics
//! - `row_moves.rs`, `row_clone.rs`: flush, compaction, and tables that share shards
//! - `stored/`, `record/`: the catalog's keys and records in the store; `new_warehouse.rs`: the catalog of a new warehouse

mod cascade;
mod change;
mod check;
mod database;
mod definitions;
mod delete_bitmap;
mod dependants;
mod error;
mod new_warehouse;
mod record;
mod role;
mod row_clone;
mod row_index;
mod row_moves;
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
pub use delete_bitmap::DeleteBitmap;
pub use dependants::Dependant;
pub use error::{Error, ObjectKind, Result};
pub use role::{Role, ScramVerifier};
pub use row_index::RowIndex;
pub use row_moves::{CompactedShards, FlushedRows};
pub use sample::Sample;
pub use schema::Schema;
pub use sequence::{Sequence, SequenceOwner, SequencePosition};
pub use state::{CatalogState, Relation};
pub use summary::ColumnSummary;
pub use table::{
    Column, Constraint, ConstraintKind, Distribution, External, Identity, Index, KeyOrder, ReferentialAction,
    SortColumn, Storage, Table, TableOrder,
};
pub use table_rows::{CommittedRows, RowCounters, RowPosition, TableRows};
pub use table_shards::{PrunedShards, ShardList, ShardSize, TableShards};
pub use view::View;
