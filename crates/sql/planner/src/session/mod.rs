//! Planning of statements that concern only the session or its transaction.

mod plan;
mod show;

pub(crate) use self::plan::plan;
