//! CREATE, ALTER, DROP, TRUNCATE, COMMENT and the roles as changes of the catalog.
//!
//! One file per statement; each checks the statement against the snapshot, with PostgreSQL's errors, and gives the whole
//! change as a [`crate::DefinePlan`]. `name.rs` says what names stand for, `constraint.rs` and `column.rs` what tables are
//! made of, `dependency.rs` what goes along with what is dropped, `view_text.rs` how views survive renamings.

mod alter_schema;
mod alter_table;
mod clone;
mod cluster;
mod column;
mod column_sequence;
mod comment;
mod constraint;
mod constraint_name;
mod create_schema;
mod create_table;
mod create_view;
mod dependency;
mod drop;
mod expression_text;
mod external;
mod index;
mod key_check;
mod key_type;
mod like;
mod name;
mod operator_class;
mod placement;
mod role;
mod sequence;
mod sequence_options;
mod storage_parameter;
mod truncate;
mod view_text;

#[cfg(test)]
mod tests;

pub(crate) use self::alter_schema::alter_schema;
pub(crate) use self::alter_table::alter_table;
pub(crate) use self::clone::{clone_table, undrop_table};
pub(crate) use self::cluster::cluster;
pub(crate) use self::comment::comment;
pub(crate) use self::create_schema::create_schema;
pub(crate) use self::create_table::{already_exists, create_table, new_table, on_commit, place};
pub(crate) use self::create_view::create_view;
pub(crate) use self::drop::drop;
pub(crate) use self::external::create_external_table;
pub(crate) use self::index::create_index;
pub(crate) use self::name::{find_in, taken, target};
pub(crate) use self::role::{alter_database, alter_role, create_role};
pub(crate) use self::sequence::{alter_sequence, create_sequence};
pub(crate) use self::storage_parameter::of_table as table_parameters;
pub(crate) use self::truncate::truncate;
