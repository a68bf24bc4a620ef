//! ALTER TABLE, VIEW, SCHEMA, ROLE and DATABASE.

use sqlparser::ast::{DataType, Expr, Ident, ObjectName};
use types::{Condition, SqlError, SqlResult};

use super::create_table::{ColumnDefinition, DistributionClause, OrderClause, TableConstraint};
use super::lex::Token;
use super::role::{RoleOption, RoleSpec};
use super::sequence::{IdentityDefinition, SequenceOption};
use super::statement::Statement;
use super::statement_option::StatementOption;
use super::token_cursor::Cursor;

/// `ALTER TABLE` or `ALTER VIEW`; the actions are applied atomically.
#[derive(Debug, Clone)]
pub struct AlterTable {
    pub name: ObjectName,
    pub if_exists: bool,
    /// True for ALTER VIEW.
    pub is_view: bool,
    pub actions: Vec<AlterAction>,
}

/// One action of ALTER TABLE or ALTER VIEW.
#[derive(Debug, Clone)]
pub enum AlterAction {
    AddColumn {
        column: ColumnDefinition,
        if_not_exists: bool,
    },
    DropColumn {
        name: Ident,
        if_exists: bool,
        cascade: bool,
    },
    /// SET DEFAULT; `None` is DROP DEFAULT.
    SetDefault {
        column: Ident,
        default: Option<Box<Expr>>,
    },
    SetNotNull {
        column: Ident,
        not_null: bool,
    },
    SetType {
        column: Ident,
        data_type: DataType,
        collation: Option<ObjectName>,
        using: Option<Box<Expr>>,
    },
    /// ADD GENERATED … AS IDENTITY.
    AddIdentity {
        column: Ident,
        identity: IdentityDefinition,
    },
    /// SET GENERATED, SET with an option of the sequence, or RESTART.
    SetIdentity {
        column: Ident,
        always: Option<bool>,
        options: Vec<SequenceOption>,
    },
    DropIdentity {
        column: Ident,
        if_exists: bool,
    },
    AddConstraint(TableConstraint),
    DropConstraint {
        name: Ident,
        if_exists: bool,
        cascade: bool,
    },
    /// `ALTER CONSTRAINT name [NOT] ENFORCED`.
    SetEnforced {
        name: Ident,
        enforced: bool,
    },
    RenameColumn {
        from: Ident,
        to: Ident,
    },
    RenameConstraint {
        from: Ident,
        to: Ident,
    },
    RenameTo(Ident),
    SetSchema(Ident),
    OwnerTo(RoleSpec),
    /// `SET DISTRIBUTE ON (c) | REPLICATE | RANDOM`.
    SetDistribution(DistributionClause),
    /// `SET SORT ON (c)`, `SET CLUSTER ON (a, b)`; `None` is `SET WITHOUT SORT` or `SET WITHOUT CLUSTER`.
    SetOrder(Option<OrderClause>),
    /// `SET (fillfactor = 70)`.
    SetParameters(Vec<StatementOption>),
    /// `RESET (fillfactor)`.
    ResetParameters(Vec<StatementOption>),
}

/// `ALTER SCHEMA`.
#[derive(Debug, Clone)]
pub struct AlterSchema {
    pub name: Ident,
    pub action: AlterSchemaAction,
}

/// Action of ALTER SCHEMA.
#[derive(Debug, Clone)]
pub enum AlterSchemaAction {
    RenameTo(Ident),
    OwnerTo(RoleSpec),
}

/// `ALTER ROLE` or `ALTER USER`.
#[derive(Debug, Clone)]
pub struct AlterRole {
    pub role: RoleSpec,
    pub action: AlterRoleAction,
}

/// Action of ALTER ROLE.
#[derive(Debug, Clone)]
pub enum AlterRoleAction {
    Options(Vec<RoleOption>),
    RenameTo(Ident),
    /// `SET name = value`; `None` is SET … TO DEFAULT or RESET.
    Set {
        name: String,
        value: Option<String>,
    },
    ResetAll,
}

/// `ALTER DATABASE name SET …`.
#[derive(Debug, Clone)]
pub struct AlterDatabase {
    pub name: Ident,
    /// Setting and its value, where `None` is DEFAULT or RESET; no setting at all is RESET ALL.
    pub setting: Option<(String, Option<String>)>,
}

impl Cursor<'_> {
    /// Parses an ALTER statement of any kind.
    pub(super) fn alter(&mut self) -> SqlResult<Statement> {
        let start = self.next_index;
        self.expect("alter")?;
        match self.next_word() {
            Some("table") => self.alter_relation(false),
            Some("view") => self.alter_relation(true),
            Some("schema") => self.alter_schema(),
            Some("cluster") => self.alter_cluster(),
            Some("sequence") => self.alter_sequence().map(|it| Statement::AlterSequence(Box::new(it))),
            Some("role" | "user") if !self.next_is("user mapping") => self.alter_role(),
            Some("database") => self.alter_database(start),
            _ => Err(self.unsupported_kind(start, "ALTER")),
        }
    }

    fn alter_relation(&mut self, view: bool) -> SqlResult<Statement> {
        self.advance();
        if self.next_is("all in tablespace") {
            return Err(self.unsupported("a tablespace"));
        }
        let if_exists = self.eat("if exists");
        if !view {
            self.eat("only");
        }
        let name = self.object_name()?;
        if !view {
            self.eat_operator("*");
        }
        let actions = match self.rename_action()? {
            Some(rename) => vec![rename],
            None => self.list(Self::alter_action)?,
        };
        Ok(Statement::AlterTable(Box::new(AlterTable { name, if_exists, is_view: view, actions })))
    }

    /// Parses RENAME, which cannot be combined with other actions.
    fn rename_action(&mut self) -> SqlResult<Option<AlterAction>> {
        if !self.eat("rename") {
            return Ok(None);
        }
        if self.eat("to") {
            return Ok(Some(AlterAction::RenameTo(self.name()?)));
        }
        let constraint = self.eat("constraint");
        if !constraint {
            self.eat("column");
        }
        let from = self.name()?;
        self.expect("to")?;
        let to = self.name()?;
        Ok(Some(if constraint {
            AlterAction::RenameConstraint { from, to }
        } else {
            AlterAction::RenameColumn { from, to }
        }))
    }

    fn alter_action(&mut self) -> SqlResult<AlterAction> {
        if self.eat("add") {
            return self.add_action();
        }
        if self.eat("drop constraint") {
            let if_exists = self.eat("if exists");
            let name = self.name()?;
            return Ok(AlterAction::DropConstraint { name, if_exists, cascade: self.cascade() });
        }
        if self.eat("drop") {
            self.eat("column");
            let if_exists = self.eat("if exists");
            let name = self.name()?;
            return Ok(AlterAction::DropColumn { name, if_exists, cascade: self.cascade() });
        }
        if self.eat("alter") {
            if self.next_is("constraint") && *self.peek_at(1) != Token::Word("type".to_owned()) {
                return self.alter_constraint();
            }
            self.eat("column");
            return self.alter_column();
        }
        if self.eat("owner to") {
            return self.role_spec().map(AlterAction::OwnerTo);
        }
        if self.eat("set schema") {
            return self.name().map(AlterAction::SetSchema);
        }
        if self.eat("set without sort") || self.eat("set without cluster") {
            return Ok(AlterAction::SetOrder(None));
        }
        let set = usize::from(self.next_is("set"));
        if self.word_at(set) == Some("distribute") {
            self.next_index += set;
            return self.distribution().map(AlterAction::SetDistribution);
        }
        if matches!(self.word_at(set), Some("sort" | "cluster")) && *self.peek_at(set + 2) == Token::Symbol('(') {
            self.next_index += set;
            return self.order().map(|order| AlterAction::SetOrder(Some(order)));
        }
        if self.word_at(0).is_some_and(|word| word == "set" || word == "reset")
            && *self.peek_at(1) == Token::Symbol('(')
        {
            let set = self.next_is("set");
            self.advance();
            let parameters = self.storage_parameters()?;
            return Ok(if set {
                AlterAction::SetParameters(parameters)
            } else {
                AlterAction::ResetParameters(parameters)
            });
        }
        let others = [
            "set", "reset", "cluster", "enable", "disable", "force", "no", "inherit", "of", "not", "replica",
            "validate", "attach", "detach", "options",
        ];
        match self.next_word() {
            Some(word) if others.contains(&word) => {
                Err(self.unsupported(&format!("ALTER TABLE … {}", word.to_uppercase())))
            }
            _ => Err(self.syntax_error()),
        }
    }

    /// Parses ADD COLUMN or ADD CONSTRAINT, after ADD.
    fn add_action(&mut self) -> SqlResult<AlterAction> {
        if !self.next_is("column")
            && let Some(constraint) = self.table_constraint()?
        {
            return Ok(AlterAction::AddConstraint(constraint));
        }
        self.eat("column");
        let if_not_exists = self.eat("if not exists");
        let column = self.column_definition()?;
        Ok(AlterAction::AddColumn { column, if_not_exists })
    }

    /// Parses `ALTER CONSTRAINT name [NOT] ENFORCED`, after ALTER.
    fn alter_constraint(&mut self) -> SqlResult<AlterAction> {
        self.expect("constraint")?;
        let name = self.name()?;
        match self.constraint_attributes()? {
            Some(enforced) => Ok(AlterAction::SetEnforced { name, enforced }),
            None => Err(self.unsupported("this change of a constraint")),
        }
    }

    /// Parses an action of ALTER COLUMN, after ALTER [COLUMN].
    fn alter_column(&mut self) -> SqlResult<AlterAction> {
        let column = self.name()?;
        if self.eat("set default") {
            return Ok(AlterAction::SetDefault { column, default: Some(Box::new(self.expr()?)) });
        }
        if self.eat("drop default") {
            return Ok(AlterAction::SetDefault { column, default: None });
        }
        if self.eat("set not null") {
            return Ok(AlterAction::SetNotNull { column, not_null: true });
        }
        if self.eat("drop not null") {
            return Ok(AlterAction::SetNotNull { column, not_null: false });
        }
        if self.eat("set data type") || self.eat("type") {
            let data_type = self.data_type()?;
            let collation = if self.eat("collate") {
                let first = self.label()?;
                Some(self.qualified_name(first)?)
            } else {
                None
            };
            let using = if self.eat("using") { Some(Box::new(self.expr()?)) } else { None };
            return Ok(AlterAction::SetType { column, data_type, collation, using });
        }
        if self.eat("add generated") {
            return Ok(AlterAction::AddIdentity { column, identity: self.identity_definition()? });
        }
        if self.eat("drop identity") {
            return Ok(AlterAction::DropIdentity { column, if_exists: self.eat("if exists") });
        }
        if let Some((always, options)) = self.identity_changes()? {
            return Ok(AlterAction::SetIdentity { column, always, options });
        }
        match self.next_word() {
            Some("set" | "reset" | "add" | "drop" | "restart" | "options") => {
                Err(self.unsupported("this change of a column"))
            }
            _ => Err(self.syntax_error()),
        }
    }

    /// Parses one or more of `SET GENERATED ALWAYS`, `SET INCREMENT 5` and `RESTART`; `None` if none of them comes
    /// next.
    fn identity_changes(&mut self) -> SqlResult<Option<(Option<bool>, Vec<SequenceOption>)>> {
        let (mut always, mut options) = (None, Vec::new());
        loop {
            if self.eat("set generated") {
                if always.replace(self.identity_always()?).is_some() {
                    return Err(SqlError::new(Condition::SyntaxError, "conflicting or redundant options"));
                }
            } else if self.next_is("restart") {
                options.extend(self.sequence_option()?);
            } else if self.next_is("set") {
                let set = self.next_index;
                self.advance();
                match self.sequence_option()? {
                    Some(option) => options.push(option),
                    None => {
                        self.next_index = set;
                        break;
                    }
                }
            } else {
                break;
            }
        }
        Ok((always.is_some() || !options.is_empty()).then_some((always, options)))
    }

    fn alter_schema(&mut self) -> SqlResult<Statement> {
        self.expect("schema")?;
        let name = self.name()?;
        let action = if self.eat("owner to") {
            AlterSchemaAction::OwnerTo(self.role_spec()?)
        } else {
            self.expect("rename to")?;
            AlterSchemaAction::RenameTo(self.name()?)
        };
        Ok(Statement::AlterSchema(AlterSchema { name, action }))
    }

    fn alter_role(&mut self) -> SqlResult<Statement> {
        self.advance();
        if self.next_is("all") {
            return Err(self.unsupported("ALTER ROLE ALL"));
        }
        let role = self.role_spec()?;
        if self.next_is("in database") {
            return Err(self.unsupported("settings of a role in one database"));
        }
        if let Some(statement) = self.default_cluster(&role)? {
            return Ok(statement);
        }
        let action = if self.eat("rename to") {
            AlterRoleAction::RenameTo(self.name()?)
        } else if self.next_is("set") || self.next_is("reset") {
            match self.set_or_reset()? {
                Some((name, value)) => AlterRoleAction::Set { name, value },
                None => AlterRoleAction::ResetAll,
            }
        } else {
            self.eat("with");
            AlterRoleAction::Options(self.role_options()?)
        };
        Ok(Statement::AlterRole(Box::new(AlterRole { role, action })))
    }

    fn alter_database(&mut self, start: usize) -> SqlResult<Statement> {
        self.expect("database")?;
        let name = self.name()?;
        if !self.next_is("set") && !self.next_is("reset") || self.next_is("set tablespace") {
            self.next_index = start;
            return Err(self.unsupported("this ALTER DATABASE"));
        }
        let setting = self.set_or_reset()?;
        Ok(Statement::AlterDatabase(AlterDatabase { name, setting }))
    }

    /// Parses `SET name = value` or `RESET name`; `None` is RESET ALL.
    fn set_or_reset(&mut self) -> SqlResult<Option<(String, Option<String>)>> {
        if self.eat("reset") {
            if self.eat("all") {
                return Ok(None);
            }
            return Ok(Some((self.setting_name()?, None)));
        }
        self.expect("set")?;
        self.assignment().map(Some)
    }
}
