//! Role names, and CREATE ROLE with its options.

use std::fmt;

use sqlparser::ast::Ident;
use types::{Condition, SqlError, SqlResult};

use super::lex::Token;
use super::token_cursor::Cursor;

/// Role as a statement names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoleSpec {
    Name(Ident),
    /// CURRENT_USER and CURRENT_ROLE.
    CurrentUser,
    SessionUser,
}

/// `CREATE ROLE`, `CREATE USER`, `CREATE GROUP`.
#[derive(Debug, Clone)]
pub struct CreateRole {
    pub name: Ident,
    /// Whether CREATE USER was written: the role may log in unless an option says otherwise.
    pub is_user: bool,
    pub options: Vec<RoleOption>,
}

/// One option of CREATE ROLE or ALTER ROLE.
#[derive(Clone, PartialEq, Eq)]
pub enum RoleOption {
    Superuser(bool),
    CreateDb(bool),
    CreateRole(bool),
    Inherit(bool),
    Login(bool),
    Replication(bool),
    BypassRls(bool),
    ConnectionLimit(i64),
    /// Password; `None` is PASSWORD NULL.
    Password(Option<String>),
    /// Timestamp as text.
    ValidUntil(String),
}

/// Omits the password, so that it does not appear in logs.
impl fmt::Debug for RoleOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Superuser(on) => write!(f, "Superuser({on})"),
            Self::CreateDb(on) => write!(f, "CreateDb({on})"),
            Self::CreateRole(on) => write!(f, "CreateRole({on})"),
            Self::Inherit(on) => write!(f, "Inherit({on})"),
            Self::Login(on) => write!(f, "Login({on})"),
            Self::Replication(on) => write!(f, "Replication({on})"),
            Self::BypassRls(on) => write!(f, "BypassRls({on})"),
            Self::ConnectionLimit(limit) => write!(f, "ConnectionLimit({limit})"),
            Self::Password(_) => f.write_str("Password"),
            Self::ValidUntil(text) => write!(f, "ValidUntil({text})"),
        }
    }
}

impl Cursor<'_> {
    /// Parses CREATE ROLE, USER or GROUP, after CREATE.
    pub(super) fn create_role(&mut self) -> SqlResult<CreateRole> {
        let user = self.eat_one_of(&["role", "user", "group"]) == Some("user");
        let name = self.name()?;
        self.refuse_reserved_role(&name)?;
        self.eat("with");
        let options = self.role_options()?;
        Ok(CreateRole { name, is_user: user, options })
    }

    /// Parses a role name or a keyword that stands for one.
    pub(super) fn role_spec(&mut self) -> SqlResult<RoleSpec> {
        match self.eat_one_of(&["current_user", "current_role", "session_user"]) {
            Some("session_user") => return Ok(RoleSpec::SessionUser),
            Some(_) => return Ok(RoleSpec::CurrentUser),
            None => {}
        }
        let name = self.name()?;
        self.refuse_reserved_role(&name)?;
        Ok(RoleSpec::Name(name))
    }

    fn refuse_reserved_role(&self, name: &Ident) -> SqlResult<()> {
        if name.quote_style.is_some() || !matches!(name.value.as_str(), "public" | "none") {
            return Ok(());
        }
        let message = format!("role name \"{}\" is reserved", name.value);
        let position = super::lex::char_position(self.sql, self.previous_lexeme().start);
        Err(SqlError::new(Condition::ReservedName, message).with_position(position))
    }

    /// Parses role options up to the end of the statement.
    pub(super) fn role_options(&mut self) -> SqlResult<Vec<RoleOption>> {
        let mut options: Vec<RoleOption> = Vec::new();
        while !self.is_at_end() {
            // SYSID is accepted and ignored, as in PostgreSQL.
            if self.eat("sysid") {
                self.integer()?;
                continue;
            }
            let option = self.role_option()?;
            let is_duplicate =
                options.iter().any(|other| std::mem::discriminant(other) == std::mem::discriminant(&option));
            if is_duplicate {
                self.next_index -= 1;
                let error = SqlError::new(Condition::SyntaxError, "conflicting or redundant options");
                return Err(self.with_next_position(error));
            }
            options.push(option);
        }
        Ok(options)
    }

    fn role_option(&mut self) -> SqlResult<RoleOption> {
        let Token::Word(word) = self.peek() else { return Err(self.syntax_error()) };
        let option = match word.as_str() {
            "superuser" => RoleOption::Superuser(true),
            "nosuperuser" => RoleOption::Superuser(false),
            "createdb" => RoleOption::CreateDb(true),
            "nocreatedb" => RoleOption::CreateDb(false),
            "createrole" => RoleOption::CreateRole(true),
            "nocreaterole" => RoleOption::CreateRole(false),
            "inherit" => RoleOption::Inherit(true),
            "noinherit" => RoleOption::Inherit(false),
            "login" => RoleOption::Login(true),
            "nologin" => RoleOption::Login(false),
            "replication" => RoleOption::Replication(true),
            "noreplication" => RoleOption::Replication(false),
            "bypassrls" => RoleOption::BypassRls(true),
            "nobypassrls" => RoleOption::BypassRls(false),
            "connection" => {
                self.expect("connection limit")?;
                return self.signed_integer().map(RoleOption::ConnectionLimit);
            }
            "encrypted" | "password" => {
                self.eat("encrypted");
                self.expect("password")?;
                if self.eat("null") {
                    return Ok(RoleOption::Password(None));
                }
                return self.text().map(|text| RoleOption::Password(Some(text)));
            }
            "unencrypted" => {
                let error =
                    SqlError::new(Condition::FeatureNotSupported, "UNENCRYPTED PASSWORD is no longer supported");
                return Err(self.with_next_position(
                    error.with_hint("Remove UNENCRYPTED to store the password in encrypted form instead."),
                ));
            }
            "valid" => {
                self.expect("valid until")?;
                return self.text().map(RoleOption::ValidUntil);
            }
            "in" | "role" | "admin" | "user" => return Err(self.unsupported("membership of roles")),
            unknown => {
                let error = SqlError::new(Condition::SyntaxError, format!("unrecognized role option \"{unknown}\""));
                return Err(self.with_next_position(error));
            }
        };
        self.advance();
        Ok(option)
    }
}
