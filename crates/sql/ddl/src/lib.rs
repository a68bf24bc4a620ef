//! Data definition: turns CREATE, ALTER, DROP, TRUNCATE, COMMENT, CREATE TABLE AS, CLONE, UNDROP and statements about
//! roles and clusters into catalog changes.
//!
//! Does no I/O: the session stages the changes.
//!
//! Start at `create_table.rs`. There is one file per statement: it checks the statement against the snapshot, with
//! PostgreSQL's errors, and returns all changes as a [`binder::DefinePlan`]. Shared parts:
//!
//! - `name_resolution.rs`: resolution of the names in a statement; `column_definition.rs`, `constraint.rs` and
//!   `distribution_clauses.rs`: the elements of a table,
//! - `drop_dependents.rs`: dependent objects that DROP … CASCADE includes; `view_text.rs`: updates of view definitions
//!   when a name changes.

mod alter_schema;
mod alter_table;
mod clone;
mod cluster_statements;
mod column_definition;
mod column_sequence;
mod comment_on;
mod constraint;
mod constraint_name;
mod create_as;
mod create_schema;
mod create_table;
mod create_view;
mod distribution_clauses;
mod drop;
mod drop_dependents;
mod expression_text;
mod external_table;
mod index;
mod key_check;
mod key_type;
mod like_clause;
mod name_resolution;
mod operator_class;
mod role;
mod sequence;
mod sequence_options;
mod storage_parameter;
mod truncate;
mod view_text;

pub use self::alter_schema::alter_schema;
pub use self::alter_table::alter_table;
pub use self::clone::{clone_table, last_drop, time_before_drop, undrop_table};
pub use self::cluster_statements::cluster;
pub use self::comment_on::comment;
pub use self::create_as::create_as;
pub use self::create_schema::create_schema;
pub use self::create_table::create_table;
pub use self::create_view::create_view;
pub use self::drop::drop;
pub use self::external_table::{create_external_table, location_to_read};
pub use self::index::create_index;
pub use self::role::{alter_database, alter_role, create_role};
pub use self::sequence::{alter_sequence, create_sequence};
pub use self::truncate::truncate;
