//! Fresh rows: what was inserted or changed lately, found by key in microseconds, until it settles into shards.
//!
//! Never commits and never decides visibility: a table's rows are one immutable value, and `txn` makes the next from it.
