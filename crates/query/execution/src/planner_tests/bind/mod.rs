mod fixture;
mod given_up;
mod named_columns;
mod names;
mod parameters;
mod queries;
mod tpc;
mod worker;
