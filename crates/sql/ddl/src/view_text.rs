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

use super::name_resolution;

/// Schema and name of a relation.
pub(super) struct RelationName<'a> {
    pub(super) schema: &'a str,
    pub(super) name: &'a str,
}

/// Rewrites the views that read a relation for its new schema or name.
pub(super) fn rewrite_for_moved_relation(
    state: &CatalogState,
    moved: Oid,
    to: &RelationName<'_>,
) -> SqlResult<Vec<Change>> {
    rewrite_views(
        state,
        |view| view.depends_on.contains(&moved),
        |relation| {
            (find_relation(state, relation) == Some(moved)).then(|| name_resolution::qualified(to.schema, to.name))
        },
    )
}

/// Rewrites the views that read any of the relations for the new name of their schema.
pub(super) fn rewrite_for_renamed_schema(
    state: &CatalogState,
    moved: &[Oid],
    from: &str,
    to: &str,
) -> SqlResult<Vec<Change>> {
    rewrite_views(
        state,
        |view| view.depends_on.iter().any(|oid| moved.contains(oid)),
        |relation| match split_qualified(relation) {
            Some((schema, name)) if schema == from => Some(name_resolution::qualified(to, name)),
            _ => None,
        },
    )
}

/// Rewrites the views that read a relation for the new name of one of its columns.
pub(super) fn rewrite_for_renamed_column(
    state: &CatalogState,
    relation: Oid,
    from: &str,
    to: &str,
) -> SqlResult<Vec<Change>> {
    let readers = state.views().filter(|view| view.depends_on.contains(&relation));
    let changes = readers.map(|view| {
        let mut query = parse_definition(view)?;
        let mut aliases = AliasCollector { state, relation, aliases: HashSet::new() };
        let _: ControlFlow<()> = query.walk_mut(&mut aliases);
        let _: ControlFlow<()> = query.walk_mut(&mut ColumnRenamer { aliases: &aliases.aliases, from, to });
        Ok(put_view(view, &query))
    });
    changes.collect()
}

/// Parses a view's definition.
///
/// # Errors
/// `XX000` if the text does not parse, although it parsed when it was stored.
pub(super) fn parse_definition(view: &View) -> SqlResult<Query> {
    match syntax::parse(&view.definition)?.into_iter().next().map(|parsed| parsed.statement) {
        Some(Statement::Query(query)) => Ok(*query),
        _ => Err(SqlError::internal(format!("the definition of view {} is not a query", view.name))),
    }
}

fn rewrite_views(
    state: &CatalogState,
    is_affected: impl Fn(&View) -> bool,
    renamed: impl Fn(&ObjectName) -> Option<ObjectName>,
) -> SqlResult<Vec<Change>> {
    let affected = state.views().filter(|view| is_affected(view));
    let changes = affected.map(|view| {
        let mut query = parse_definition(view)?;
        let _: ControlFlow<()> = query.walk_mut(&mut RelationRenamer { renamed: &renamed });
        Ok(put_view(view, &query))
    });
    changes.collect()
}

fn put_view(view: &View, query: &Query) -> Change {
    Change::PutView(Arc::new(View { definition: syntax::to_sql_text(query), ..View::clone(view) }))
}

fn split_qualified(relation: &ObjectName) -> Option<(&str, &str)> {
    match relation.0.as_slice() {
        [schema, name] => Some((schema.as_ident()?.value.as_str(), name.as_ident()?.value.as_str())),
        _ => None,
    }
}

fn find_relation(state: &CatalogState, relation: &ObjectName) -> Option<Oid> {
    let (schema, name) = split_qualified(relation)?;
    let schema = state.schema_by_name(schema)?.oid;
    state.relation(schema, name).map(|relation| relation.oid())
}

struct RelationRenamer<'a, F> {
    renamed: &'a F,
}

impl<F: Fn(&ObjectName) -> Option<ObjectName>> VisitorMut for RelationRenamer<'_, F> {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<()> {
        if let Some(renamed) = (self.renamed)(relation) {
            *relation = renamed;
        }
        ControlFlow::Continue(())
    }
}

/// Visitor that collects the aliases of one relation.
struct AliasCollector<'a> {
    state: &'a CatalogState,
    relation: Oid,
    aliases: HashSet<String>,
}

impl VisitorMut for AliasCollector<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, alias: Some(alias), .. } = factor
            && find_relation(self.state, name) == Some(self.relation)
        {
            self.aliases.insert(alias.name.value.clone());
        }
        ControlFlow::Continue(())
    }
}

/// Visitor that renames a column of the relations with these aliases.
struct ColumnRenamer<'a> {
    aliases: &'a HashSet<String>,
    from: &'a str,
    to: &'a str,
}

impl VisitorMut for ColumnRenamer<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let [relation, column] = parts.as_mut_slice()
            && self.aliases.contains(&relation.value)
            && column.value == self.from
        {
            *column = name_resolution::ident(self.to);
        }
        ControlFlow::Continue(())
    }
}
