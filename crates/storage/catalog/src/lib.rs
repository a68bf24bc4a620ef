//! Catalog: the database, its schemas, tables, views, sequences and roles, and the rows and shards of each table, as
//! one immutable state.
//!
//! This crate never commits, never decides about permissions and never opens a shard. A state changes only into another
//! state, by [`CatalogState::apply`], and every state fulfils the invariants of `validation.rs`.
//!
//! Reading order:
//!
//! - `catalog_state.rs`, `definitions.rs`: the state and its queries
//! - `change/`: changes and their application; `validation.rs` has the invariants
//! - `dependants.rs`, `cascade/`: dependencies between objects, and DROP … CASCADE
//! - `table.rs`, `view.rs`, `sequence.rs`, `role.rs`, `schema.rs`, `database.rs`: definitions of objects
//! - `table_rows.rs`, `row_index.rs`, `delete_bitmap.rs`, `table_sample.rs`: the rows of a table
//! - `table_shards/`, `column_summary/`: its shards and their statistics
//! - `row_moves.rs`, `row_clone.rs`: flush, compaction, and tables that share shards
//! - `persistence/`, `record_format/`: the catalog's keys and records in the store
//! - `new_warehouse.rs`: the catalog of a new warehouse

mod cascade;
mod catalog_state;
mod change;
mod column_summary;
mod database;
mod definitions;
mod delete_bitmap;
mod dependants;
mod error;
mod new_warehouse;
pub mod persistence;
mod record_format;
mod role;
mod row_clone;
mod row_index;
mod row_moves;
mod schema;
mod sequence;
mod table;
mod table_rows;
mod table_sample;
mod table_shards;
mod validation;
mod view;

#[cfg(test)]
mod fixtures;

pub use cascade::DropPlan;
pub use catalog_state::{CatalogState, Relation};
pub use change::Change;
pub use column_summary::ColumnSummary;
pub use database::Database;
pub use definitions::Definitions;
pub use delete_bitmap::DeleteBitmap;
pub use dependants::Dependant;
pub use error::{Error, ObjectKind, Result};
pub use role::{Role, ScramVerifier};
pub use row_index::RowIndex;
pub use row_moves::{CompactedShards, FlushedRows};
pub use schema::Schema;
pub use sequence::{Sequence, SequenceOwner, SequencePosition};
pub use table::{
    Column, Constraint, ConstraintKind, Distribution, External, Identity, Index, KeyOrder, ReferentialAction,
    SortColumn, Storage, Table, TableOrder,
};
pub use table_rows::{CommittedRows, RowCounters, RowPosition, TableRows};
pub use table_sample::Sample;
pub use table_shards::{PrunedShards, ShardList, ShardSize, TableShards};
pub use view::View;
