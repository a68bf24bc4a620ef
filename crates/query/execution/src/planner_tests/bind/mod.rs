mod fixture;
mod interrupted;
mod named_columns;
mod names;
mod parameters;
mod queries;
mod tpc;
mod worker;
