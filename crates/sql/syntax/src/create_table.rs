//! CREATE TABLE and CREATE TABLE AS.

use sqlparser::ast::{DataType, Expr, Ident, ObjectName, Query, ReferentialAction, TableVersion};
use types::{Condition, OnCommit, SqlError, SqlResult};

use super::lex::Token;
use super::sequence::IdentityDefinition;
use super::statement_option::StatementOption;
use super::token_cursor::Cursor;

/// `CREATE TABLE` or `CREATE TABLE AS`.
#[derive(Debug, Clone)]
pub struct CreateTable {
    pub name: ObjectName,
    pub if_not_exists: bool,
    pub source: TableSource,
    /// `DISTRIBUTE ON (c) | REPLICATE | RANDOM`.
    pub distribution: Option<DistributionClause>,
    /// `SORT ON (c)` or `CLUSTER ON (a, b)`.
    pub order: Option<OrderClause>,
    /// `WITH (storage = word, fillfactor = 70)`.
    pub parameters: Vec<StatementOption>,
    pub temporary: bool,
    /// `ON COMMIT …`.
    pub on_commit: Option<OnCommit>,
}

/// Source of a new table's columns.
#[derive(Debug, Clone)]
pub enum TableSource {
    Columns {
        /// Columns in order; `LikeTable::position` says where the columns of a LIKE go among them.
        columns: Vec<ColumnDefinition>,
        like_tables: Vec<LikeTable>,
        constraints: Vec<TableConstraint>,
    },
    /// `CLONE table [AS OF …]`.
    Clone { table: ObjectName, version: Option<Box<TableVersion>> },
    /// CREATE TABLE AS.
    Query {
        /// Names for the first columns of the query; may be empty.
        column_names: Vec<Ident>,
        query: Box<Query>,
        with_data: bool,
    },
}

/// Definition of one column.
#[derive(Debug, Clone)]
pub struct ColumnDefinition {
    pub name: Ident,
    pub data_type: DataType,
    pub collation: Option<ObjectName>,
    pub constraints: Vec<ColumnConstraint>,
}

/// `[CONSTRAINT name]` and a constraint on a column.
#[derive(Debug, Clone)]
pub struct ColumnConstraint {
    pub name: Option<Ident>,
    pub kind: ColumnConstraintKind,
    /// ENFORCED or NOT ENFORCED.
    pub enforced: Option<bool>,
}

/// Kind of a column constraint.
#[derive(Debug, Clone)]
pub enum ColumnConstraintKind {
    Null,
    NotNull,
    Default(Box<Expr>),
    Check(Box<Expr>),
    PrimaryKey,
    Unique,
    References(References),
    Identity(IdentityDefinition),
}

/// `[CONSTRAINT name]` and a constraint on the row.
#[derive(Debug, Clone)]
pub struct TableConstraint {
    pub name: Option<Ident>,
    pub kind: TableConstraintKind,
    /// ENFORCED or NOT ENFORCED.
    pub enforced: Option<bool>,
}

/// Kind of a table constraint.
#[derive(Debug, Clone)]
pub enum TableConstraintKind {
    Check(Box<Expr>),
    PrimaryKey(Vec<Ident>),
    Unique(Vec<Ident>),
    ForeignKey { columns: Vec<Ident>, references: References },
}

/// `REFERENCES table [(columns)]`.
#[derive(Debug, Clone)]
pub struct References {
    pub table: ObjectName,
    /// Referenced columns; if empty, the table's primary key.
    pub columns: Vec<Ident>,
    pub on_delete: Option<ReferentialAction>,
    /// `ON DELETE SET NULL (columns)`.
    pub delete_columns: Vec<Ident>,
    pub on_update: Option<ReferentialAction>,
}

/// `LIKE table [INCLUDING …]`.
#[derive(Debug, Clone)]
pub struct LikeTable {
    pub table: ObjectName,
    /// Number of column definitions before the LIKE.
    pub position: usize,
    pub defaults: bool,
    pub constraints: bool,
    /// INCLUDING INDEXES: primary and unique keys.
    pub indexes: bool,
    pub comments: bool,
    pub identity: bool,
}

/// Distribution of a table's rows over the workers.
#[derive(Debug, Clone)]
pub enum DistributionClause {
    Random,
    Replicate,
    HashColumns(Vec<Ident>),
}

/// Order of the rows in a shard.
#[derive(Debug, Clone)]
pub enum OrderClause {
    Sort(Vec<SortKey>),
    Cluster(Vec<Ident>),
}

/// One column of a SORT key.
#[derive(Debug, Clone)]
pub struct SortKey {
    pub column: Ident,
    pub descending: bool,
    /// Position of NULLs, as written or by PostgreSQL's default: last for ASC, first for DESC.
    pub nulls_first: bool,
}

impl Cursor<'_> {
    /// Parses CREATE TABLE, after CREATE.
    pub(super) fn create_table(&mut self, temporary: bool) -> SqlResult<CreateTable> {
        self.expect("table")?;
        let if_not_exists = self.eat("if not exists");
        let name = self.object_name()?;
        if self.next_is("partition of") || self.next_is("of") {
            return Err(self.unsupported("CREATE TABLE OF"));
        }
        if self.eat("clone") {
            if temporary {
                return Err(self.unsupported("CREATE TEMPORARY TABLE … CLONE"));
            }
            let source = self.object_name()?;
            let source = TableSource::Clone { table: source, version: self.as_of()?.map(Box::new) };
            let (distribution, order, parameters) = (None, None, Vec::new());
            let (temporary, on_commit) = (false, None);
            let table =
                CreateTable { name, if_not_exists, source, distribution, order, parameters, temporary, on_commit };
            return Ok(table);
        }
        let mut column_names = Vec::new();
        let mut defined = None;
        if self.is_symbol('(') {
            if self.is_name_list() {
                column_names = self.parenthesized(Self::name)?;
            } else {
                defined = Some(self.table_elements()?);
            }
        }
        let mut table = CreateTable {
            name,
            if_not_exists,
            source: TableSource::Columns { columns: Vec::new(), like_tables: Vec::new(), constraints: Vec::new() },
            distribution: None,
            order: None,
            parameters: Vec::new(),
            temporary,
            on_commit: None,
        };
        self.table_clauses(&mut table)?;
        table.source = match defined {
            Some(elements) => elements,
            None => {
                self.expect("as")?;
                if self.next_is("execute") {
                    return Err(self.unsupported("CREATE TABLE AS EXECUTE"));
                }
                self.clauses_follow_query = true;
                let query = self.query()?;
                self.clauses_follow_query = false;
                self.table_clauses(&mut table)?;
                let with_data = !self.eat("with no data");
                if with_data {
                    self.eat("with data");
                }
                TableSource::Query { column_names, query, with_data }
            }
        };
        Ok(table)
    }

    /// Whether the next parentheses contain only names, which then name a query's columns.
    fn is_name_list(&self) -> bool {
        let mut ahead = 1;
        loop {
            if !matches!(self.peek_at(ahead), Token::Word(_) | Token::Quoted(_)) {
                return false;
            }
            match self.peek_at(ahead + 1) {
                Token::Symbol(',') => ahead += 2,
                Token::Symbol(')') => return true,
                _ => return false,
            }
        }
    }

    /// Parses `(columns and constraints)`, which may be empty.
    fn table_elements(&mut self) -> SqlResult<TableSource> {
        let (mut columns, mut like_tables, mut constraints) = (Vec::new(), Vec::new(), Vec::new());
        self.expect_symbol('(')?;
        if !self.is_symbol(')') {
            loop {
                if self.eat("like") {
                    like_tables.push(self.like_table(columns.len())?);
                } else if let Some(constraint) = self.table_constraint()? {
                    constraints.push(constraint);
                } else {
                    columns.push(self.column_definition()?);
                }
                if !self.eat_symbol(',') {
                    break;
                }
            }
        }
        self.expect_symbol(')')?;
        Ok(TableSource::Columns { columns, like_tables, constraints })
    }

    /// Parses the clauses after the columns: Kiln's own, and those of PostgreSQL that are refused.
    fn table_clauses(&mut self, table: &mut CreateTable) -> SqlResult<()> {
        loop {
            if table.distribution.is_none() && self.next_is("distribute") {
                table.distribution = Some(self.distribution()?);
            } else if table.order.is_none() && (self.next_is("sort") || self.next_is("cluster")) {
                table.order = Some(self.order()?);
            } else if self.next_is("inherits")
                || self.next_is("partition by")
                || self.next_is("using")
                || self.next_is("tablespace")
            {
                let clause = self.next_word().unwrap_or_default().to_uppercase();
                return Err(self.unsupported(&format!("{clause} of a table")));
            } else if table.on_commit.is_none() && self.eat("on commit") {
                let actions = [
                    ("preserve rows", OnCommit::PreserveRows),
                    ("delete rows", OnCommit::DeleteRows),
                    ("drop", OnCommit::Drop),
                ];
                let action = actions.into_iter().find(|(words, _)| self.eat(words)).map(|(_, action)| action);
                table.on_commit = Some(action.ok_or_else(|| self.syntax_error())?);
            } else if table.parameters.is_empty() && self.next_is("with") && *self.peek_at(1) == Token::Symbol('(') {
                self.advance();
                table.parameters = self.storage_parameters()?;
            } else if !self.eat("without oids") {
                return Ok(());
            }
        }
    }

    /// Whether a DISTRIBUTE, SORT or CLUSTER clause comes next.
    pub(super) fn begins_table_clause(&self) -> bool {
        self.next_is("distribute on")
            || self.next_is("distribute replicate")
            || self.next_is("distribute random")
            || self.next_is("sort on")
            || self.next_is("cluster on")
    }

    /// Parses `DISTRIBUTE ON (c) | REPLICATE | RANDOM`.
    pub(super) fn distribution(&mut self) -> SqlResult<DistributionClause> {
        self.expect("distribute")?;
        self.eat("on");
        match self.eat_one_of(&["replicate", "random"]) {
            Some("replicate") => Ok(DistributionClause::Replicate),
            Some(_) => Ok(DistributionClause::Random),
            None => self.parenthesized(Self::name).map(DistributionClause::HashColumns),
        }
    }

    /// Parses `SORT ON (c)` or `CLUSTER ON (a, b)`.
    pub(super) fn order(&mut self) -> SqlResult<OrderClause> {
        if self.eat("cluster") {
            self.expect("on")?;
            return self.parenthesized(Self::name).map(OrderClause::Cluster);
        }
        self.expect("sort on")?;
        self.parenthesized(Self::sort_key).map(OrderClause::Sort)
    }

    fn sort_key(&mut self) -> SqlResult<SortKey> {
        let column = self.name()?;
        let descending = self.eat_one_of(&["asc", "desc"]) == Some("desc");
        let nulls_first = self.eat("nulls first") || (!self.eat("nulls last") && descending);
        Ok(SortKey { column, descending, nulls_first })
    }

    /// Parses `name type constraints`.
    pub(super) fn column_definition(&mut self) -> SqlResult<ColumnDefinition> {
        let name = self.name()?;
        let data_type = self.data_type()?;
        let mut column = ColumnDefinition { name, data_type, collation: None, constraints: Vec::new() };
        if self.next_is("storage") || self.next_is("compression") || self.next_is("options") {
            return Err(self.unsupported("an option of a column"));
        }
        loop {
            if self.eat("collate") {
                let first = self.label()?;
                column.collation = Some(self.qualified_name(first)?);
                continue;
            }
            match self.column_constraint()? {
                Some(constraint) => column.constraints.push(constraint),
                None => return Ok(column),
            }
        }
    }

    fn column_constraint(&mut self) -> SqlResult<Option<ColumnConstraint>> {
        let name = self.constraint_name()?;
        let kind = if self.eat("not null") {
            ColumnConstraintKind::NotNull
        } else if self.eat("null") {
            ColumnConstraintKind::Null
        } else if self.eat("default") {
            ColumnConstraintKind::Default(Box::new(self.restricted_expr()?))
        } else if self.eat("check") {
            ColumnConstraintKind::Check(self.check_expression()?)
        } else if self.eat("primary key") {
            self.refuse_index_options()?;
            ColumnConstraintKind::PrimaryKey
        } else if self.eat("unique") {
            self.refuse_index_options()?;
            ColumnConstraintKind::Unique
        } else if self.next_is("references") {
            ColumnConstraintKind::References(self.references()?)
        } else if self.eat("generated") {
            ColumnConstraintKind::Identity(self.identity_definition()?)
        } else if name.is_some() || self.next_is("not") {
            self.eat("not");
            return Err(self.syntax_error());
        } else {
            return Ok(None);
        };
        let start = self.next_index;
        let enforced = self.constraint_attributes()?;
        let takes_enforced = !matches!(
            kind,
            ColumnConstraintKind::Null | ColumnConstraintKind::NotNull | ColumnConstraintKind::Default(_)
        );
        if enforced.is_some() && !takes_enforced {
            self.next_index = start;
            return Err(self.with_next_position(SqlError::new(Condition::SyntaxError, "misplaced ENFORCED clause")));
        }
        let is_check = matches!(kind, ColumnConstraintKind::Check(_));
        self.refuse_unenforced_check(is_check, enforced)?;
        Ok(Some(ColumnConstraint { name, kind, enforced }))
    }

    /// Parses a table constraint; `None` if none comes next.
    pub(super) fn table_constraint(&mut self) -> SqlResult<Option<TableConstraint>> {
        let name = self.constraint_name()?;
        let opens = *self.peek_at(1) == Token::Symbol('(');
        let kind = if opens && self.eat("check") {
            TableConstraintKind::Check(self.check_expression()?)
        } else if self.eat("primary key") {
            self.refuse_using_index()?;
            let columns = self.parenthesized(Self::name)?;
            self.refuse_index_options()?;
            TableConstraintKind::PrimaryKey(columns)
        } else if self.eat("unique") {
            self.refuse_using_index()?;
            self.refuse_index_options()?;
            let columns = self.parenthesized(Self::name)?;
            self.refuse_index_options()?;
            TableConstraintKind::Unique(columns)
        } else if self.eat("foreign key") {
            let columns = self.parenthesized(Self::name)?;
            TableConstraintKind::ForeignKey { columns, references: self.references()? }
        } else if self.next_is("exclude") && (opens || self.next_is("exclude using")) {
            return Err(self.unsupported("an exclusion constraint"));
        } else if name.is_some() {
            return Err(self.syntax_error());
        } else {
            return Ok(None);
        };
        let enforced = self.constraint_attributes()?;
        if self.next_is("not valid") {
            return Err(self.unsupported("NOT VALID"));
        }
        self.refuse_unenforced_check(matches!(kind, TableConstraintKind::Check(_)), enforced)?;
        Ok(Some(TableConstraint { name, kind, enforced }))
    }

    fn constraint_name(&mut self) -> SqlResult<Option<Ident>> {
        if self.eat("constraint") { self.name().map(Some) } else { Ok(None) }
    }

    fn check_expression(&mut self) -> SqlResult<Box<Expr>> {
        self.expect_symbol('(')?;
        let condition = self.expr()?;
        self.expect_symbol(')')?;
        // Without inheritance, NO INHERIT has no effect.
        self.eat("no inherit");
        Ok(Box::new(condition))
    }

    fn references(&mut self) -> SqlResult<References> {
        self.expect("references")?;
        let table = self.object_name()?;
        let columns = self.optional_names()?;
        let mut references =
            References { table, columns, on_delete: None, delete_columns: Vec::new(), on_update: None };
        if self.eat("match") && !self.eat("simple") {
            return Err(self.unsupported("MATCH FULL and MATCH PARTIAL"));
        }
        loop {
            if self.eat("on delete") {
                let action = self.referential_action()?;
                if matches!(action, ReferentialAction::SetNull | ReferentialAction::SetDefault) {
                    references.delete_columns = self.optional_names()?;
                }
                references.on_delete = Some(action);
            } else if self.eat("on update") {
                references.on_update = Some(self.referential_action()?);
                if self.is_symbol('(') {
                    let message = "a column list with SET NULL and SET DEFAULT is only supported for ON DELETE actions";
                    return Err(self.with_next_position(SqlError::new(Condition::FeatureNotSupported, message)));
                }
            } else {
                return Ok(references);
            }
        }
    }

    fn referential_action(&mut self) -> SqlResult<ReferentialAction> {
        let actions = [
            ("no action", ReferentialAction::NoAction),
            ("restrict", ReferentialAction::Restrict),
            ("cascade", ReferentialAction::Cascade),
            ("set null", ReferentialAction::SetNull),
            ("set default", ReferentialAction::SetDefault),
        ];
        let action = actions.into_iter().find(|(words, _)| self.eat(words)).map(|(_, action)| action);
        action.ok_or_else(|| self.syntax_error())
    }

    fn refuse_unenforced_check(&self, is_check: bool, enforced: Option<bool>) -> SqlResult<()> {
        if is_check && enforced == Some(false) { Err(self.unsupported("a CHECK that is not enforced")) } else { Ok(()) }
    }

    /// Parses the attributes of a constraint; returns whether it is ENFORCED or NOT ENFORCED, if written. Constraints
    /// are always checked immediately: attributes that request it are accepted, deferrable ones are refused.
    pub(super) fn constraint_attributes(&mut self) -> SqlResult<Option<bool>> {
        let mut enforced = None;
        loop {
            let attribute = if self.eat("enforced") {
                Some(true)
            } else if self.eat("not enforced") {
                Some(false)
            } else {
                None
            };
            if attribute.is_some() {
                if enforced.is_some() {
                    let message = "multiple ENFORCED/NOT ENFORCED clauses not allowed";
                    return Err(self.with_next_position(SqlError::new(Condition::SyntaxError, message)));
                }
                enforced = attribute;
                continue;
            }
            if self.next_is("deferrable") || self.next_is("initially deferred") {
                return Err(self.unsupported("a deferrable constraint"));
            }
            if !self.eat("not deferrable") && !self.eat("initially immediate") {
                return Ok(enforced);
            }
        }
    }

    fn refuse_index_options(&self) -> SqlResult<()> {
        if self.next_is("include") || self.next_is("nulls not distinct") || self.next_is("using index tablespace") {
            return Err(self.unsupported("an option of a key's index"));
        }
        if self.next_is("with") && *self.peek_at(1) == Token::Symbol('(') {
            return Err(self.unsupported("a storage parameter"));
        }
        Ok(())
    }

    fn refuse_using_index(&self) -> SqlResult<()> {
        if self.next_is("using index") { Err(self.unsupported("USING INDEX")) } else { Ok(()) }
    }

    /// Parses `LIKE table INCLUDING …`, after LIKE.
    fn like_table(&mut self, position: usize) -> SqlResult<LikeTable> {
        let table = self.object_name()?;
        let mut like = LikeTable {
            table,
            position,
            defaults: false,
            constraints: false,
            indexes: false,
            comments: false,
            identity: false,
        };
        while let Some(word) = self.eat_one_of(&["including", "excluding"]) {
            let on = word == "including";
            let parts = [
                "defaults",
                "constraints",
                "indexes",
                "comments",
                "all",
                "identity",
                "generated",
                "storage",
                "statistics",
                "compression",
            ];
            match self.eat_one_of(&parts) {
                Some("defaults") => like.defaults = on,
                Some("constraints") => like.constraints = on,
                Some("indexes") => like.indexes = on,
                Some("comments") => like.comments = on,
                Some("identity") => like.identity = on,
                Some("all") => {
                    (like.defaults, like.constraints, like.indexes) = (on, on, on);
                    (like.comments, like.identity) = (on, on);
                }
                // Kiln's tables have no generated columns, storage options or extended statistics to copy.
                Some(_) => {}
                None => return Err(self.syntax_error()),
            }
        }
        Ok(like)
    }
}
