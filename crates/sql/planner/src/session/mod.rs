//! Planning of statements that concern only the session or its transaction.

mod session_command;
mod show;

pub(crate) use self::session_command::plan;
