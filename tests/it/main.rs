//! Single integration-test binary: every test talks to real server processes over the wire.

#![expect(clippy::print_stdout, reason = "a test that is skipped says so")]

mod branches;
mod bulk;
mod by_key;
mod cache;
mod cancel;
mod clients;
mod cluster;
mod cluster_caches;
mod cluster_cursor;
mod cluster_kill;
mod dependent;
mod distributed;
mod documents;
mod endurance;
mod external;
mod faults;
mod fleet;
mod fragments;
mod full_disk;
mod isolation;
mod kill;
mod large_values;
mod lifecycle;
mod measuring;
mod memory;
mod multiplying;
mod network;
mod old_warehouse;
mod open_format;
mod partition;
mod pipeline;
mod planning;
mod pods;
mod prepared;
mod psql;
mod public_names;
mod random;
mod rows;
mod s3;
mod sequence;
mod services;
mod shapes;
mod slt;
mod start;
mod steps;
mod storm;
mod temporary;
mod time;
mod token;
mod tpc;
mod tpc_oracles;
mod untyped_operands;

use tests::{postgres, processes, server};
