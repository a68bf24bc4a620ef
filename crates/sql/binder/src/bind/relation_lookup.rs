//! Resolution of relation names by the search path.

use std::sync::Arc;

use catalog::Relation;
use datafusion::sql::sqlparser::ast::ObjectName;
use session_context::StatementContext;
use types::{Condition, SqlError, SqlResult};

/// Relation that a name resolves to.
#[derive(Debug, Clone)]
pub(super) enum ResolvedRelation {
    Catalog(Relation),
    /// System table, by its schema and name.
    System(&'static str, String),
}

/// Name of a relation, with its schema if written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RelationName {
    pub(super) schema: Option<String>,
    pub(super) name: String,
}

impl RelationName {
    /// Parses a written name.
    ///
    /// # Errors
    /// SQLSTATE 0A000 for a relation of another database, 42601 for too many parts.
    pub(super) fn parse(written: &ObjectName, context: &StatementContext) -> SqlResult<Self> {
        let parts: Vec<&str> =
            written.0.iter().filter_map(|part| part.as_ident()).map(|ident| ident.value.as_str()).collect();
        match parts.as_slice() {
            [name] => Ok(Self { schema: None, name: (*name).to_owned() }),
            [schema, name] => Ok(Self { schema: Some((*schema).to_owned()), name: (*name).to_owned() }),
            [database, schema, name] if *database == context.database => {
                Ok(Self { schema: Some((*schema).to_owned()), name: (*name).to_owned() })
            }
            [_, _, _] => Err(SqlError::new(
                Condition::FeatureNotSupported,
                format!("cross-database references are not implemented: \"{}\"", parts.join(".")),
            )),
            _ => Err(SqlError::new(
                Condition::SyntaxError,
                format!("improper qualified name (too many dotted names): {}", parts.join(".")),
            )),
        }
    }

    fn undefined_error(&self) -> SqlError {
        let name = match &self.schema {
            Some(schema) => format!("{schema}.{}", self.name),
            None => self.name.clone(),
        };
        SqlError::new(Condition::UndefinedTable, format!("relation \"{name}\" does not exist"))
    }
}

/// Finds the relation of a name.
///
/// # Errors
/// SQLSTATE 42P01 if there is none.
pub(super) fn find_relation(context: &Arc<StatementContext>, name: &RelationName) -> SqlResult<ResolvedRelation> {
    let found = match &name.schema {
        Some(schema) => in_schema(context, &context.schema_name(schema), &name.name),
        None => context.search_path().iter().find_map(|schema| in_schema(context, schema, &name.name)),
    };
    let found = found.ok_or_else(|| name.undefined_error())?;
    if let ResolvedRelation::Catalog(relation) = &found {
        context.check_not_foreign_temporary(relation.schema())?;
    }
    Ok(found)
}

fn in_schema(context: &Arc<StatementContext>, schema: &str, name: &str) -> Option<ResolvedRelation> {
    if let Some(system) = system_catalog::SCHEMAS.iter().find(|system| **system == schema) {
        return system_catalog::table(system, name, context).map(|_| ResolvedRelation::System(system, name.to_owned()));
    }
    let schema = context.snapshot.schema_by_name(schema)?;
    context.snapshot.relation(schema.oid, name).map(ResolvedRelation::Catalog)
}

/// Finds the table, view or sequence of a name.
///
/// # Errors
/// SQLSTATE 42P01 if there is none; 42501 for a system table.
pub(super) fn find_user_relation(context: &Arc<StatementContext>, written: &ObjectName) -> SqlResult<Relation> {
    match find_relation(context, &RelationName::parse(written, context)?)? {
        ResolvedRelation::Catalog(relation) => Ok(relation),
        ResolvedRelation::System(_, name) => Err(SqlError::new(
            Condition::InsufficientPrivilege,
            format!("permission denied: \"{name}\" is a system catalog"),
        )),
    }
}
