//! Tests of the system tables over a small catalog: every table returns rows, and queries of clients are answered.

mod fixture;
mod tables;
