//! Operator of `generate_series`, which computes the values of a series as its rows are read, whatever its length.

mod exec;
mod plan;

pub use self::exec::ProjectSetColumn;
pub(crate) use self::exec::ProjectSetExec;
pub(crate) use self::plan::plan_project_set;
