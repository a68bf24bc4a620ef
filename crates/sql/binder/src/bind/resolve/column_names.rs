//! Collects all column names of a query, which its relations must not have in the plan.
//!
//! DataFusion interprets `a.id` as a field of a column `a` before it considers the column `id` of an outer relation
//! `a`.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use catalog::Relation;
use datafusion::sql::sqlparser::ast::{Ident, Query, Select, SelectItem, TableAlias, TableFactor, Visitor};
use session_context::StatementContext;
use syntax::Walk;
use system_catalog::SEQUENCE_COLUMNS;

use crate::bind::relation_lookup::{RelationName, ResolvedRelation, find_relation};
use crate::bind::relation_source::{RelationSource, RelationSources};
use crate::bind::time_travel;

/// Collects the column names of all relations and SELECT lists of a query.
pub(super) fn collect_column_names(
    query: &Query,
    context: &Arc<StatementContext>,
    sources: &RelationSources,
) -> HashSet<String> {
    let mut names = ColumnNameCollector { context, sources, names: HashSet::new() };
    // The visitor never breaks.
    let _: ControlFlow<()> = query.walk(&mut names);
    names.names
}

struct ColumnNameCollector<'a> {
    context: &'a Arc<StatementContext>,
    sources: &'a RelationSources,
    names: HashSet<String>,
}

impl ColumnNameCollector<'_> {
    fn alias(&mut self, alias: Option<&TableAlias>) {
        let columns = alias.into_iter().flat_map(|alias| &alias.columns);
        self.names.extend(columns.map(|column| column.name.value.clone()));
    }

    fn add(&mut self, name: &Ident) {
        self.names.insert(name.value.clone());
    }
}

impl Visitor for ColumnNameCollector<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.alias(Some(&cte.alias));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { alias, .. } = item {
                self.add(alias);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { name, alias, version, .. } => {
                self.alias(alias.as_ref());
                let moment = match version.as_ref().and_then(|version| self.sources.get(version)) {
                    Some(RelationSource::Snapshot(moment)) => Some(moment),
                    _ => None,
                };
                let past = moment.and_then(|moment| time_travel::context_at_snapshot(self.context, moment).ok());
                let context = past.as_ref().map_or(self.context, |(context, _)| context);
                // Relations that do not exist are reported when they are resolved.
                let found = RelationName::parse(name, context).and_then(|name| find_relation(context, &name));
                match found {
                    Ok(ResolvedRelation::Catalog(Relation::Table(table))) => {
                        self.names.extend(table.columns.iter().map(|column| column.name.clone()));
                    }
                    Ok(ResolvedRelation::Catalog(Relation::View(view))) => {
                        self.names.extend(view.columns.iter().map(|(name, _)| name.clone()));
                    }
                    Ok(ResolvedRelation::Catalog(Relation::Sequence(_))) => {
                        self.names.extend(SEQUENCE_COLUMNS.iter().map(|(name, _)| (*name).to_owned()));
                    }
                    Ok(ResolvedRelation::System(schema, name)) => {
                        if let Some(table) = system_catalog::table(schema, &name, self.context) {
                            self.names.extend(table.schema().fields().iter().map(|field| field.name().clone()));
                        }
                    }
                    Err(_) => {}
                }
            }
            TableFactor::Derived { alias, .. } => self.alias(alias.as_ref()),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
