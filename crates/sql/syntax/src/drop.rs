//! DROP, TRUNCATE and COMMENT.

use sqlparser::ast::{Ident, ObjectName};
use types::SqlResult;

use super::lex::Token;
use super::token_cursor::Cursor;

/// `DROP kind names`.
#[derive(Debug, Clone)]
pub struct Drop {
    pub kind: DropKind,
    pub names: Vec<ObjectName>,
    pub if_exists: bool,
    pub cascade: bool,
    /// DROP INDEX CONCURRENTLY.
    pub concurrently: bool,
}

/// Kind of object that DROP drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropKind {
    Table,
    /// DROP EXTERNAL TABLE.
    ExternalTable,
    View,
    Schema,
    /// DROP ROLE, DROP USER and DROP GROUP.
    Role,
    /// An index, including those of keys.
    Index,
    Sequence,
}

/// `TRUNCATE [TABLE] names`.
#[derive(Debug, Clone)]
pub struct Truncate {
    pub names: Vec<ObjectName>,
    /// RESTART IDENTITY.
    pub restart_identity: bool,
    pub cascade: bool,
}

/// `COMMENT ON … IS 'text'`; `None` is `IS NULL`, which removes the comment.
#[derive(Debug, Clone)]
pub struct Comment {
    pub target: CommentTarget,
    pub text: Option<String>,
}

/// Object that a comment describes.
#[derive(Debug, Clone)]
pub enum CommentTarget {
    Table(ObjectName),
    View(ObjectName),
    Sequence(ObjectName),
    Column { relation: ObjectName, column: Ident },
    Constraint { name: Ident, table: ObjectName },
    Schema(Ident),
    Role(Ident),
    Database(Ident),
}

impl Cursor<'_> {
    /// Parses a DROP statement of any kind but DROP CLUSTER.
    pub(super) fn drop(&mut self) -> SqlResult<Drop> {
        let start = self.next_index;
        self.expect("drop")?;
        let kind = match self.next_word() {
            Some("table") => DropKind::Table,
            Some("external") => {
                self.expect("external")?;
                if !self.next_is("table") {
                    return Err(self.syntax_error());
                }
                DropKind::ExternalTable
            }
            Some("view") => DropKind::View,
            Some("schema") => DropKind::Schema,
            Some("role" | "user" | "group") if !self.next_is("user mapping") => DropKind::Role,
            Some("index") => DropKind::Index,
            Some("sequence") => DropKind::Sequence,
            _ => return Err(self.unsupported_kind(start, "DROP")),
        };
        self.advance();
        let concurrently = kind == DropKind::Index && self.eat("concurrently");
        let if_exists = self.eat("if exists");
        let names = match kind {
            DropKind::Table | DropKind::ExternalTable | DropKind::View | DropKind::Index | DropKind::Sequence => {
                self.list(Self::object_name)?
            }
            DropKind::Schema | DropKind::Role => self.list(|cursor| Ok(ObjectName::from(vec![cursor.name()?])))?,
        };
        let cascade = kind != DropKind::Role && self.cascade();
        Ok(Drop { kind, names, if_exists, cascade, concurrently })
    }

    pub(super) fn truncate(&mut self) -> SqlResult<Truncate> {
        self.expect("truncate")?;
        self.eat("table");
        let names = self.list(|cursor| {
            cursor.eat("only");
            let name = cursor.object_name()?;
            cursor.eat_operator("*");
            Ok(name)
        })?;
        let restart = self.eat("restart identity");
        if !restart {
            self.eat("continue identity");
        }
        let cascade = self.cascade();
        Ok(Truncate { names, restart_identity: restart, cascade })
    }

    pub(super) fn comment(&mut self) -> SqlResult<Comment> {
        let start = self.next_index;
        self.expect("comment on")?;
        let kinds = ["table", "view", "sequence", "column", "constraint", "schema", "role", "database"];
        let Some(kind) = self.eat_one_of(&kinds) else {
            return Err(self.unsupported_kind(start, "COMMENT ON"));
        };
        let on = match kind {
            "table" => CommentTarget::Table(self.object_name()?),
            "view" => CommentTarget::View(self.object_name()?),
            "sequence" => CommentTarget::Sequence(self.object_name()?),
            "schema" => CommentTarget::Schema(self.name()?),
            "role" => CommentTarget::Role(self.name()?),
            "database" => CommentTarget::Database(self.name()?),
            "constraint" => {
                let name = self.name()?;
                self.expect("on")?;
                if self.next_is("domain") && matches!(self.peek_at(1), Token::Word(_) | Token::Quoted(_)) {
                    return Err(self.unsupported("COMMENT ON CONSTRAINT ON DOMAIN"));
                }
                CommentTarget::Constraint { name, table: self.object_name()? }
            }
            _ => self.commented_column()?,
        };
        self.expect("is")?;
        let text = if self.eat("null") { None } else { Some(self.text()?) };
        Ok(Comment { target: on, text })
    }

    /// Parses `[schema.]table.column`.
    fn commented_column(&mut self) -> SqlResult<CommentTarget> {
        let mut parts = vec![self.name()?];
        while self.eat_symbol('.') {
            parts.push(self.label()?);
        }
        let Some(column) = parts.pop().filter(|_| !parts.is_empty()) else {
            let error = types::SqlError::new(types::Condition::SyntaxError, "column name must be qualified");
            return Err(self.with_next_position(error));
        };
        Ok(CommentTarget::Column { relation: ObjectName::from(parts), column })
    }
}
