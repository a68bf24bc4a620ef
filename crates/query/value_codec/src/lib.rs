//! Conversion of values between Arrow and PostgreSQL's text and binary formats, for the wire protocol and COPY.
//!
//! Knows no plan, table or connection: it converts columns or single values of an SQL type to bytes, and back.
//!
//! Start at [`encode::ColumnEncoder`] for output and [`decode::ColumnBuilder`] for input.

pub mod decode;
pub mod encode;
#[cfg(test)]
mod fixtures;
