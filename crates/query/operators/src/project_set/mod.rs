//! `generate_series`, made row by row: the operator walks each series as its rows are asked for, whatever its length.

mod exec;
mod plan;

pub use self::exec::Column;
pub(crate) use self::exec::ProjectSetExec;
pub(crate) use self::plan::plan_project_set;
