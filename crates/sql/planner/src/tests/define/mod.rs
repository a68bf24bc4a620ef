//! Tests of DDL statements as text, each applied to the catalog that the earlier ones created.

mod alter_table;
mod create;
mod database;
mod drop;
mod index;
mod role;
mod view;
