//! The system tables over a small catalog: every table fills, and what clients send is answered.

mod fixture;
mod tables;
