//! Statements that concern the session or its transaction, among them those of prepared statements and cursors.

use sqlparser::ast::{DataType, Expr, ObjectName, Query};
use types::SqlResult;

use super::ParsedStatement;
use super::lex::Token;
use super::token_cursor::Cursor;
use super::transaction::TransactionModes;

/// Statement that concerns the session or its transaction.
#[derive(Debug, Clone)]
pub enum SessionStatement {
    /// `SET name = value`; `None` is DEFAULT. A list value is one text, as SHOW displays it.
    Set {
        name: String,
        value: Option<String>,
        local: bool,
    },
    /// RESET name; `None` is RESET ALL.
    Reset(Option<String>),
    SetTransaction {
        modes: TransactionModes,
        session: bool,
    },
    /// SET ROLE; `None` is NONE.
    SetRole {
        role: Option<String>,
        local: bool,
    },
    /// SET SESSION AUTHORIZATION; `None` is DEFAULT.
    SetSessionAuthorization {
        role: Option<String>,
        local: bool,
    },
    /// SHOW name; `None` is SHOW ALL.
    Show(Option<String>),
    Begin(TransactionModes),
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
    },
    Savepoint(String),
    RollbackTo(String),
    Release(String),
    Prepare {
        name: String,
        types: Vec<DataType>,
        statement: Box<ParsedStatement>,
    },
    Execute {
        name: String,
        arguments: Vec<Expr>,
    },
    /// DEALLOCATE name; `None` is ALL.
    Deallocate(Option<String>),
    Declare(DeclareCursor),
    Fetch {
        cursor: String,
        direction: FetchDirection,
    },
    Move {
        cursor: String,
        direction: FetchDirection,
    },
    /// CLOSE name; `None` is ALL.
    Close(Option<String>),
    Discard(Discard),
    /// ANALYZE or VACUUM: the command tag and the tables in the statement.
    Maintain {
        command_tag: &'static str,
        tables: Vec<ObjectName>,
    },
    /// Statement without an effect in Kiln: its command tag.
    NoOp(&'static str),
    CheckStorage,
}

/// `DECLARE name CURSOR FOR query`.
#[derive(Debug, Clone)]
pub struct DeclareCursor {
    pub name: String,
    pub query: Box<Query>,
    pub hold: bool,
    pub scroll: Option<bool>,
    pub binary: bool,
}

/// Rows that FETCH returns or MOVE skips.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchDirection {
    /// This many rows forward; 0 is the current row, a negative number goes backward.
    Forward(i64),
    ForwardAll,
    BackwardAll,
    /// Row number from the start (from 1), or from the end if negative.
    Absolute(i64),
    Relative(i64),
}

/// State of the session that DISCARD drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discard {
    All,
    Plans,
    Sequences,
    Temporary,
}

impl Cursor<'_> {
    /// Parses a session statement; `None` if the first word begins none.
    pub(super) fn session_statement(&mut self) -> SqlResult<Option<SessionStatement>> {
        let command = match self.next_word() {
            Some("set") => self.set_statement()?,
            Some("reset") => self.reset()?,
            Some("show") => self.show()?,
            Some("begin" | "start" | "commit" | "end" | "rollback" | "abort" | "savepoint" | "release") => {
                self.transaction()?
            }
            Some("prepare") => self.prepare()?,
            Some("execute") => self.execute()?,
            Some("deallocate") => {
                self.advance();
                self.eat("prepare");
                SessionStatement::Deallocate(self.name_or_all()?)
            }
            Some("declare") => self.declare()?,
            Some("fetch") => {
                self.advance();
                let (cursor, direction) = self.fetch_target()?;
                SessionStatement::Fetch { cursor, direction }
            }
            Some("move") => {
                self.advance();
                let (cursor, direction) = self.fetch_target()?;
                SessionStatement::Move { cursor, direction }
            }
            Some("close") => {
                self.advance();
                SessionStatement::Close(self.name_or_all()?)
            }
            Some("discard") => self.discard()?,
            Some("analyze" | "analyse" | "vacuum") => self.maintenance()?,
            Some("check") if self.next_is("check storage") => {
                self.expect("check storage")?;
                SessionStatement::CheckStorage
            }
            Some("checkpoint") => {
                self.advance();
                SessionStatement::NoOp("CHECKPOINT")
            }
            Some("unlisten") => {
                // LISTEN is refused, so there is nothing to undo: connection pools send this whenever a connection is
                // returned.
                self.advance();
                if !self.eat_operator("*") {
                    self.name()?;
                }
                SessionStatement::NoOp("UNLISTEN")
            }
            _ => return Ok(None),
        };
        Ok(Some(command))
    }

    fn name_or_all(&mut self) -> SqlResult<Option<String>> {
        if self.eat("all") { Ok(None) } else { self.name().map(|name| Some(name.value)) }
    }

    fn prepare(&mut self) -> SqlResult<SessionStatement> {
        self.expect("prepare")?;
        if self.next_is("transaction") && matches!(self.peek_at(1), Token::Text(_)) {
            return Err(self.unsupported("PREPARE TRANSACTION"));
        }
        let name = self.name()?.value;
        let types = if self.is_symbol('(') { self.parenthesized(Self::data_type)? } else { Vec::new() };
        self.expect("as")?;
        let preparable = self.is_symbol('(')
            || matches!(
                self.next_word(),
                Some("select" | "values" | "table" | "with" | "insert" | "update" | "delete" | "merge")
            );
        if !preparable {
            return Err(self.syntax_error());
        }
        let statement = self.inner_statement()?;
        Ok(SessionStatement::Prepare { name, types, statement })
    }

    fn execute(&mut self) -> SqlResult<SessionStatement> {
        self.expect("execute")?;
        let name = self.name()?.value;
        let arguments = if self.is_symbol('(') { self.parenthesized(Self::expr)? } else { Vec::new() };
        Ok(SessionStatement::Execute { name, arguments })
    }

    fn declare(&mut self) -> SqlResult<SessionStatement> {
        self.expect("declare")?;
        let name = self.name()?.value;
        let (mut binary, mut scroll) = (false, None);
        loop {
            if self.eat("no scroll") {
                scroll = Some(false);
                continue;
            }
            match self.eat_one_of(&["binary", "insensitive", "asensitive", "scroll"]) {
                Some("binary") => binary = true,
                Some("scroll") => scroll = Some(true),
                // Every cursor of Kiln is insensitive: it reads a snapshot.
                Some(_) => {}
                None => break,
            }
        }
        self.expect("cursor")?;
        let hold = self.eat("with hold");
        if !hold {
            self.eat("without hold");
        }
        self.expect("for")?;
        let query = self.query()?;
        Ok(SessionStatement::Declare(DeclareCursor { name, query, hold, scroll, binary }))
    }

    /// Parses the direction and the cursor name of FETCH and MOVE.
    fn fetch_target(&mut self) -> SqlResult<(String, FetchDirection)> {
        let direction = self.direction()?.unwrap_or(FetchDirection::Forward(1));
        if !self.eat("from") {
            self.eat("in");
        }
        Ok((self.name()?.value, direction))
    }

    fn direction(&mut self) -> SqlResult<Option<FetchDirection>> {
        let is_number = |token: &Token| match token {
            Token::Integer(_) => true,
            Token::Operator(sign) => matches!(sign.as_str(), "-" | "+"),
            _ => false,
        };
        if is_number(self.peek()) {
            return self.signed_integer().map(FetchDirection::Forward).map(Some);
        }
        // A word at the end of the statement is the cursor's name.
        if matches!(self.peek_at(1), Token::End | Token::Symbol(';')) {
            return Ok(None);
        }
        let words = ["next", "prior", "first", "last", "absolute", "relative", "all", "forward", "backward"];
        Ok(Some(match self.eat_one_of(&words) {
            Some("next") => FetchDirection::Forward(1),
            Some("prior") => FetchDirection::Forward(-1),
            Some("first") => FetchDirection::Absolute(1),
            Some("last") => FetchDirection::Absolute(-1),
            Some("absolute") => FetchDirection::Absolute(self.signed_integer()?),
            Some("relative") => FetchDirection::Relative(self.signed_integer()?),
            Some("all") => FetchDirection::ForwardAll,
            Some("forward") if self.eat("all") => FetchDirection::ForwardAll,
            Some("backward") if self.eat("all") => FetchDirection::BackwardAll,
            Some(word) => {
                let count = if is_number(self.peek()) { self.signed_integer()? } else { 1 };
                FetchDirection::Forward(if word == "backward" { -count } else { count })
            }
            None => return Ok(None),
        }))
    }

    fn discard(&mut self) -> SqlResult<SessionStatement> {
        self.expect("discard")?;
        let what = match self.eat_one_of(&["all", "plans", "sequences", "temp", "temporary"]) {
            Some("all") => Discard::All,
            Some("plans") => Discard::Plans,
            Some("sequences") => Discard::Sequences,
            Some(_) => Discard::Temporary,
            None => return Err(self.syntax_error()),
        };
        Ok(SessionStatement::Discard(what))
    }

    /// Parses ANALYZE or VACUUM, which have nothing to tune: statistics are always exact, and space is reclaimed in the
    /// background.
    fn maintenance(&mut self) -> SqlResult<SessionStatement> {
        let tag = if self.eat("vacuum") {
            if !self.is_symbol('(') {
                while self.eat_one_of(&["full", "freeze", "verbose", "analyze", "analyse"]).is_some() {}
            }
            "VACUUM"
        } else {
            self.advance();
            self.eat("verbose");
            "ANALYZE"
        };
        if self.is_symbol('(') {
            self.option_list()?;
        }
        let mut tables = Vec::new();
        if !self.is_at_end() {
            tables = self.list(|cursor| {
                let table = cursor.object_name()?;
                cursor.optional_names()?;
                Ok(table)
            })?;
        }
        Ok(SessionStatement::Maintain { command_tag: tag, tables })
    }
}
