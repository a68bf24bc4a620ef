mod fixture;
mod names;
mod parameters;
mod queries;
mod tpc;
