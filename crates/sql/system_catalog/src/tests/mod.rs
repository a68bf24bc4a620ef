//! Tests of the system tables over a small catalog: every table returns rows, and the reference of
//! system views is that of the code.

mod fixture;
mod function_reference;
mod reference_page;
mod routines;
mod tables;
