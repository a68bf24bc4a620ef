//! Tests of queries on several workers: they return the rows that one process returns.

mod co_located;
mod codec;
mod deeply_nested_statements;
mod distributed_correctness;
mod fixture;
mod fragment_cache;
mod many_shards;
mod statements;
mod tpc;
