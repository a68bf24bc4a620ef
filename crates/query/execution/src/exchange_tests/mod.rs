//! Claims about queries on several workers: what they give is what one process gives, whatever is sent where.

mod co_located;
mod codec;
mod deep;
mod fixture;
mod fragments;
mod many_shards;
mod statements;
mod tpc;
mod traps;
