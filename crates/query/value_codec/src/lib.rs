//! Values between Arrow and PostgreSQL's formats, text and binary: rows and parameters on the wire, COPY both ways.
//!
//! Never knows a plan, a table or a connection: a column or a value and its type go in, bytes come out, and the other way round.
//!
//! Start at [`encode::ColumnEncoder`] for a column on its way out and [`decode::ColumnBuilder`] for one that comes in.

pub mod decode;
pub mod encode;
#[cfg(test)]
mod fixtures;
