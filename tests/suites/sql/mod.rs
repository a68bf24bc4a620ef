//! Reads SQL without judging it: tokens, statement ends, and the facts that the comparison needs.
//!
//! - `lexer.rs`: words, quotes and comments
//! - `split.rs`: the ends of statements
//! - `statement.rs`: facts about one statement: its ORDER BY, COPY, transaction command
//! - `effects.rs`: the objects that a statement defines, writes and drops

mod effects;
mod lexer;
mod split;
mod statement;

pub(crate) use self::effects::{Effects, effects};
pub(crate) use self::lexer::{Token, TokenKind, next_token};
pub(crate) use self::split::{StatementEnd, split};
pub(crate) use self::statement::{CopyDirection, Statement, TransactionCommand};
