//! Tests of queries on several workers: they return the rows that one process returns.

mod co_located;
mod codec;
mod deep;
mod fixture;
mod fragments;
mod many_shards;
mod statements;
mod tpc;
mod traps;
