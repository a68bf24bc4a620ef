//! Scope of one query level: the relations of a FROM clause and their columns.

use datafusion::common::{Column as DfColumn, TableReference};
use datafusion::sql::sqlparser::ast::{Expr, Ident};
use functions::error::missing_column;
use types::{ColumnId, Condition, Oid, SqlError, SqlResult};

/// Table and column of which a column is an unchanged copy.
pub(super) type Origin = Option<(Oid, ColumnId)>;

/// Column under its name in PostgreSQL.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: String,
    /// Reference to it in the plan.
    pub(super) expr: Expr,
    pub(super) origin: Origin,
}

/// Relation of a FROM clause.
#[derive(Debug, Clone)]
pub(super) struct Relation {
    pub(super) name: String,
    /// Schema that may qualify it: that of a table without an alias.
    pub(super) schema: Option<String>,
    pub(super) columns: Vec<Column>,
    /// Columns that can be referenced but are not part of `*`.
    pub(super) hidden: Vec<Column>,
}

/// Names defined by a FROM clause, or a part of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    pub(super) relations: Vec<Relation>,
    /// Columns that `*` expands to and unqualified names refer to: every relation's columns in order, common columns
    /// of USING first and once.
    pub(super) columns: Vec<Column>,
}

impl Scope {
    /// Creates the scope of one relation.
    pub(super) fn from_relation(relation: Relation) -> Self {
        Self { columns: relation.columns.clone(), relations: vec![relation] }
    }

    /// Adds the names of `other`.
    ///
    /// # Errors
    /// SQLSTATE 42712 for a duplicate relation name.
    pub(super) fn extend(&mut self, other: Scope) -> SqlResult<()> {
        for relation in &other.relations {
            let is_taken = self.relations.iter().any(|known| {
                known.name == relation.name && (known.schema.is_none() || known.schema == relation.schema)
            });
            if is_taken {
                let message = format!("table name \"{}\" specified more than once", relation.name);
                return Err(SqlError::new(Condition::DuplicateAlias, message));
            }
        }
        self.relations.extend(other.relations);
        self.columns.extend(other.columns);
        Ok(())
    }

    /// Returns the only column of that name, if there is one.
    ///
    /// # Errors
    /// SQLSTATE 42702 if there are several.
    pub(super) fn column(&self, name: &str) -> SqlResult<Option<&Column>> {
        match single_column(self.columns.iter().filter(|column| column.name == name), name)? {
            Some(column) => Ok(Some(column)),
            None => {
                let hidden = self.relations.iter().flat_map(|relation| &relation.hidden);
                single_column(hidden.filter(|column| column.name == name), name)
            }
        }
    }

    /// Finds the relation that a qualifier refers to.
    pub(super) fn relation(&self, schema: Option<&str>, name: &str) -> Option<&Relation> {
        self.relations.iter().find(|relation| {
            relation.name == name && schema.is_none_or(|schema| relation.schema.as_deref() == Some(schema))
        })
    }
}

impl Relation {
    /// Returns the only column of that name, if there is one.
    ///
    /// # Errors
    /// SQLSTATE 42702 if there are several.
    pub(super) fn column(&self, name: &str) -> SqlResult<Option<&Column>> {
        single_column(self.columns.iter().chain(&self.hidden).filter(|column| column.name == name), name)
    }
}

fn single_column<'a>(mut found: impl Iterator<Item = &'a Column>, name: &str) -> SqlResult<Option<&'a Column>> {
    let Some(first) = found.next() else { return Ok(None) };
    if found.any(|other| other.expr != first.expr) {
        let message = format!("column reference \"{name}\" is ambiguous");
        return Err(SqlError::new(Condition::AmbiguousColumn, message));
    }
    Ok(Some(first))
}

/// Resolves an unqualified name, from the innermost level outwards.
pub(super) fn resolve_unqualified(levels: &[Scope], name: &str) -> SqlResult<Expr> {
    for level in levels.iter().rev() {
        if let Some(column) = level.column(name)? {
            return Ok(column.expr.clone());
        }
    }
    if levels.iter().any(|level| level.relation(None, name).is_some()) {
        return Err(SqlError::unsupported(format_args!("the whole-row reference \"{name}\"")));
    }
    Err(missing_column(&DfColumn::new_unqualified(name), &visible_columns(levels)))
}

/// Resolves `relation.name`, from the innermost level outwards.
pub(super) fn resolve_qualified(levels: &[Scope], schema: Option<&str>, relation: &str, name: &str) -> SqlResult<Expr> {
    let found = find_relation(levels, schema, relation)?;
    match found.column(name)? {
        Some(column) => Ok(column.expr.clone()),
        None => {
            Err(missing_column(&DfColumn::new(Some(TableReference::bare(relation)), name), &visible_columns(levels)))
        }
    }
}

/// Finds the innermost relation of that name.
///
/// # Errors
/// SQLSTATE 42P01 if there is none.
pub(super) fn find_relation<'a>(levels: &'a [Scope], schema: Option<&str>, name: &str) -> SqlResult<&'a Relation> {
    levels.iter().rev().find_map(|level| level.relation(schema, name)).ok_or_else(|| {
        let message = format!("missing FROM-clause entry for table \"{name}\"");
        SqlError::new(Condition::UndefinedTable, message)
    })
}

/// Returns all visible columns, for hints.
fn visible_columns(levels: &[Scope]) -> Vec<DfColumn> {
    let relations = levels.iter().rev().flat_map(|level| &level.relations);
    relations
        .flat_map(|relation| {
            let qualifier = TableReference::bare(relation.name.as_str());
            relation.columns.iter().map(move |column| DfColumn::new(Some(qualifier.clone()), column.name.as_str()))
        })
        .collect()
}

/// Builds a quoted identifier.
pub(in crate::bind) fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

/// Builds a reference to a column of a relation of the plan.
pub(super) fn column_expr(relation: &str, column: &str) -> Expr {
    Expr::CompoundIdentifier(vec![quoted(relation), quoted(column)])
}
