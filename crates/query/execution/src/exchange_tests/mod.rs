//! Tests of queries on several workers: they return the rows that one process returns.

mod co_located;
mod codec;
mod deep;
mod fixture;
mod fragment_cache;
mod many_shards;
mod pitfalls;
mod statements;
mod tpc;
