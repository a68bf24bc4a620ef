//! Statements that concern the session or its transaction alone, checked.

mod plan;
mod show;

pub(crate) use self::plan::plan;
