//! Parsers of test files.
//!
//! - `slt.rs`: the sqllogictest format and the dialects of DuckDB, SQLite and CockroachDB; `loops.rs` and
//!   `conditions.rs`: its loops, and its lines `skipif` and `onlyif`
//! - `psql.rs`: psql scripts, as PostgreSQL's regression tests are; `interpolate.rs`: their variables

mod conditions;
mod interpolate;
mod loops;
mod psql;
mod slt;

pub(crate) use self::psql::parse_psql;
pub(crate) use self::slt::{SltDialect, parse_slt};
