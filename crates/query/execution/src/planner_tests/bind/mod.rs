mod fixture;
mod named_columns;
mod names;
mod parameters;
mod planning_interruption;
mod queries;
mod tpc;
mod worker_requirement;
