//! Definitions of views: queries with all names resolved, so that renamed relations and columns can be replaced in
//! them.
//!
//! In a definition, each relation is written `schema.name AS alias` with a unique alias, and each column
//! `alias.column`.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use catalog::{CatalogState, Change, View};
use datafusion::sql::sqlparser::ast::{Expr, ObjectName, Query, TableFactor, VisitorMut};
use syntax::{Statement, Walk};
use types::{Oid, SqlError, SqlResult};

use super::name;

/// Schema and name of a relation.
pub(super) struct Place<'a> {
    pub(super) schema: &'a str,
    pub(super) name: &'a str,
}

/// Rewrites the views that read a relation for its new schema or name.
pub(super) fn with_relation_moved(state: &CatalogState, moved: Oid, to: &Place<'_>) -> SqlResult<Vec<Change>> {
    reworded(
        state,
        |view| view.depends_on.contains(&moved),
        |relation| (found(state, relation) == Some(moved)).then(|| name::qualified(to.schema, to.name)),
    )
}

/// Rewrites the views that read any of the relations for the new name of their schema.
pub(super) fn with_schema_renamed(state: &CatalogState, moved: &[Oid], from: &str, to: &str) -> SqlResult<Vec<Change>> {
    reworded(
        state,
        |view| view.depends_on.iter().any(|oid| moved.contains(oid)),
        |relation| match parts(relation) {
            Some((schema, name)) if schema == from => Some(name::qualified(to, name)),
            _ => None,
        },
    )
}

/// Rewrites the views that read a relation for the new name of one of its columns.
pub(super) fn with_column_renamed(state: &CatalogState, relation: Oid, from: &str, to: &str) -> SqlResult<Vec<Change>> {
    let readers = state.views().filter(|view| view.depends_on.contains(&relation));
    let changes = readers.map(|view| {
        let mut query = query(view)?;
        let mut aliases = Aliases { state, relation, found: HashSet::new() };
        let _: ControlFlow<()> = query.walk_mut(&mut aliases);
        let _: ControlFlow<()> = query.walk_mut(&mut Columns { of: &aliases.found, from, to });
        Ok(put(view, &query))
    });
    changes.collect()
}

/// Parses a view's definition.
///
/// # Errors
/// `XX000` if the text does not parse, although it parsed when it was stored.
pub(super) fn query(view: &View) -> SqlResult<Query> {
    match syntax::parse(&view.definition)?.into_iter().next().map(|parsed| parsed.statement) {
        Some(Statement::Query(query)) => Ok(*query),
        _ => Err(SqlError::internal(format!("the definition of view {} is not a query", view.name))),
    }
}

fn reworded(
    state: &CatalogState,
    is_affected: impl Fn(&View) -> bool,
    renamed: impl Fn(&ObjectName) -> Option<ObjectName>,
) -> SqlResult<Vec<Change>> {
    let affected = state.views().filter(|view| is_affected(view));
    let changes = affected.map(|view| {
        let mut query = query(view)?;
        let _: ControlFlow<()> = query.walk_mut(&mut Relations { renamed: &renamed });
        Ok(put(view, &query))
    });
    changes.collect()
}

fn put(view: &View, query: &Query) -> Change {
    Change::PutView(Arc::new(View { definition: syntax::text_of(query), ..View::clone(view) }))
}

fn parts(relation: &ObjectName) -> Option<(&str, &str)> {
    match relation.0.as_slice() {
        [schema, name] => Some((schema.as_ident()?.value.as_str(), name.as_ident()?.value.as_str())),
        _ => None,
    }
}

fn found(state: &CatalogState, relation: &ObjectName) -> Option<Oid> {
    let (schema, name) = parts(relation)?;
    let schema = state.schema_by_name(schema)?.oid;
    state.relation(schema, name).map(|relation| relation.oid())
}

struct Relations<'a, F> {
    renamed: &'a F,
}

impl<F: Fn(&ObjectName) -> Option<ObjectName>> VisitorMut for Relations<'_, F> {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<()> {
        if let Some(renamed) = (self.renamed)(relation) {
            *relation = renamed;
        }
        ControlFlow::Continue(())
    }
}

/// Visitor that collects the aliases of one relation.
struct Aliases<'a> {
    state: &'a CatalogState,
    relation: Oid,
    found: HashSet<String>,
}

impl VisitorMut for Aliases<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, alias: Some(alias), .. } = factor
            && found(self.state, name) == Some(self.relation)
        {
            self.found.insert(alias.name.value.clone());
        }
        ControlFlow::Continue(())
    }
}

/// Visitor that renames a column of the relations with these aliases.
struct Columns<'a> {
    of: &'a HashSet<String>,
    from: &'a str,
    to: &'a str,
}

impl VisitorMut for Columns<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let [relation, column] = parts.as_mut_slice()
            && self.of.contains(&relation.value)
            && column.value == self.from
        {
            *column = name::ident(self.to);
        }
        ControlFlow::Continue(())
    }
}
