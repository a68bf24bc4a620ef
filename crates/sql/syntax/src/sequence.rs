//! CREATE SEQUENCE, ALTER SEQUENCE, and the options of an identity column's sequence.

use sqlparser::ast::{DataType, Ident, ObjectName};
use types::{Condition, SqlError, SqlResult};

use super::lex::Token;
use super::role::RoleSpec;
use super::token_cursor::Cursor;

/// `CREATE SEQUENCE [IF NOT EXISTS] name options`.
#[derive(Debug, Clone)]
pub struct CreateSequence {
    pub temporary: bool,
    pub name: ObjectName,
    pub if_not_exists: bool,
    pub options: Vec<SequenceOption>,
}

/// `ALTER SEQUENCE [IF EXISTS] name …`.
#[derive(Debug, Clone)]
pub struct AlterSequence {
    pub name: ObjectName,
    pub if_exists: bool,
    pub action: AlterSequenceAction,
}

/// Action of ALTER SEQUENCE.
#[derive(Debug, Clone)]
pub enum AlterSequenceAction {
    Options(Vec<SequenceOption>),
    RenameTo(Ident),
    SetSchema(Ident),
    OwnerTo(RoleSpec),
}

/// One option of a sequence.
#[derive(Debug, Clone)]
pub enum SequenceOption {
    As(DataType),
    Increment(i64),
    /// MINVALUE; `None` is NO MINVALUE.
    Min(Option<i64>),
    /// MAXVALUE; `None` is NO MAXVALUE.
    Max(Option<i64>),
    Start(i64),
    /// New next value; `None` is the sequence's start value.
    Restart(Option<i64>),
    Cache(i64),
    Cycle(bool),
    /// `table.column`, or NONE, which is a name with one part.
    OwnedBy(ObjectName),
    /// SEQUENCE NAME, for an identity column.
    SequenceName(ObjectName),
}

/// `GENERATED {ALWAYS | BY DEFAULT} AS IDENTITY [(options)]`.
#[derive(Debug, Clone)]
pub struct IdentityDefinition {
    pub always: bool,
    pub options: Vec<SequenceOption>,
}

impl Cursor<'_> {
    /// Parses CREATE SEQUENCE, after CREATE.
    pub(super) fn create_sequence(&mut self, temporary: bool) -> SqlResult<CreateSequence> {
        self.expect("sequence")?;
        let if_not_exists = self.eat("if not exists");
        let name = self.object_name()?;
        let options = self.sequence_options()?;
        Ok(CreateSequence { temporary, name, if_not_exists, options })
    }

    /// Parses ALTER SEQUENCE, after ALTER.
    pub(super) fn alter_sequence(&mut self) -> SqlResult<AlterSequence> {
        self.expect("sequence")?;
        let if_exists = self.eat("if exists");
        let name = self.object_name()?;
        let action = if self.eat("rename to") {
            AlterSequenceAction::RenameTo(self.name()?)
        } else if self.eat("set schema") {
            AlterSequenceAction::SetSchema(self.name()?)
        } else if self.eat("owner to") {
            AlterSequenceAction::OwnerTo(self.role_spec()?)
        } else if self.next_is("set logged") || self.next_is("set unlogged") {
            return Err(self.unsupported("an unlogged sequence"));
        } else {
            let options = self.sequence_options()?;
            if options.is_empty() {
                return Err(self.syntax_error());
            }
            AlterSequenceAction::Options(options)
        };
        Ok(AlterSequence { name, if_exists, action })
    }

    /// Parses `ALWAYS | BY DEFAULT`, AS IDENTITY and the options, after GENERATED.
    pub(super) fn identity_definition(&mut self) -> SqlResult<IdentityDefinition> {
        let always = self.identity_always()?;
        self.expect("as")?;
        if self.is_symbol('(') {
            return Err(self.unsupported("a generated column"));
        }
        self.expect("identity")?;
        let options = self.identity_options()?;
        Ok(IdentityDefinition { always, options })
    }

    /// Parses `ALWAYS` or `BY DEFAULT`; true for ALWAYS.
    pub(super) fn identity_always(&mut self) -> SqlResult<bool> {
        let always = self.eat("always");
        if !always {
            self.expect("by default")?;
        }
        Ok(always)
    }

    fn identity_options(&mut self) -> SqlResult<Vec<SequenceOption>> {
        if !self.eat_symbol('(') {
            return Ok(Vec::new());
        }
        let options = self.sequence_options()?;
        if options.is_empty() {
            return Err(self.syntax_error());
        }
        self.expect_symbol(')')?;
        Ok(options)
    }

    fn sequence_options(&mut self) -> SqlResult<Vec<SequenceOption>> {
        let mut options = Vec::new();
        while let Some(option) = self.sequence_option()? {
            options.push(option);
        }
        Ok(options)
    }

    /// Parses an option of a sequence; `None` if none comes next.
    pub(super) fn sequence_option(&mut self) -> SqlResult<Option<SequenceOption>> {
        Ok(Some(if self.eat("as") {
            SequenceOption::As(self.data_type()?)
        } else if self.eat("increment") {
            self.eat("by");
            SequenceOption::Increment(self.whole_number()?)
        } else if self.eat("minvalue") {
            SequenceOption::Min(Some(self.whole_number()?))
        } else if self.eat("maxvalue") {
            SequenceOption::Max(Some(self.whole_number()?))
        } else if self.eat("no minvalue") {
            SequenceOption::Min(None)
        } else if self.eat("no maxvalue") {
            SequenceOption::Max(None)
        } else if self.eat("no cycle") {
            SequenceOption::Cycle(false)
        } else if self.eat("cycle") {
            SequenceOption::Cycle(true)
        } else if self.eat("start") {
            self.eat("with");
            SequenceOption::Start(self.whole_number()?)
        } else if self.eat("restart") {
            let is_number = self.eat("with") || self.begins_number();
            SequenceOption::Restart(if is_number { Some(self.whole_number()?) } else { None })
        } else if self.eat("cache") {
            SequenceOption::Cache(self.whole_number()?)
        } else if self.eat("owned by") {
            let first = self.label()?;
            SequenceOption::OwnedBy(self.qualified_name(first)?)
        } else if self.eat("sequence name") {
            SequenceOption::SequenceName(self.object_name()?)
        } else if self.next_is("logged") || self.next_is("unlogged") {
            return Err(self.unsupported("an unlogged sequence"));
        } else {
            return Ok(None);
        }))
    }

    fn begins_number(&self) -> bool {
        matches!(self.peek(), Token::Integer(_) | Token::Decimal(_)) || matches!(self.operator(), Some("-" | "+"))
    }

    /// Parses a signed integer of up to 64 bits.
    fn whole_number(&mut self) -> SqlResult<i64> {
        let sign = if self.eat_operator("-") {
            "-"
        } else {
            self.eat_operator("+");
            ""
        };
        let (Token::Integer(digits) | Token::Decimal(digits)) = self.peek() else { return Err(self.syntax_error()) };
        let text = format!("{sign}{digits}");
        self.advance();
        text.parse().map_err(|_| {
            let message = format!("value \"{text}\" is out of range for type bigint");
            SqlError::new(Condition::NumericValueOutOfRange, message)
        })
    }
}
