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

use crate::bind::moment;
use crate::bind::relation::{Found, Name, find};

/// Collects the column names of all relations and SELECT lists of a query.
pub(super) fn of(query: &Query, context: &Arc<StatementContext>) -> HashSet<String> {
    let mut names = Names { context, found: HashSet::new() };
    // The visitor never breaks.
    let _: ControlFlow<()> = query.walk(&mut names);
    names.found
}

struct Names<'a> {
    context: &'a Arc<StatementContext>,
    found: HashSet<String>,
}

impl Names<'_> {
    fn alias(&mut self, alias: Option<&TableAlias>) {
        let columns = alias.into_iter().flat_map(|alias| &alias.columns);
        self.found.extend(columns.map(|column| column.name.value.clone()));
    }

    fn add(&mut self, name: &Ident) {
        self.found.insert(name.value.clone());
    }
}

impl Visitor for Names<'_> {
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
                let moment = version.as_ref().and_then(|version| moment::decided(version).ok());
                let past = moment.and_then(|moment| moment::statement_at(self.context, moment).ok());
                let context = past.as_ref().map_or(self.context, |(context, _)| context);
                // Relations that do not exist are reported when they are resolved.
                let found = Name::of(name, context).and_then(|name| find(context, &name));
                match found {
                    Ok(Found::Catalog(Relation::Table(table))) => {
                        self.found.extend(table.columns.iter().map(|column| column.name.clone()));
                    }
                    Ok(Found::Catalog(Relation::View(view))) => {
                        self.found.extend(view.columns.iter().map(|(name, _)| name.clone()));
                    }
                    Ok(Found::Catalog(Relation::Sequence(_))) => {
                        self.found.extend(SEQUENCE_COLUMNS.iter().map(|(name, _)| (*name).to_owned()));
                    }
                    Ok(Found::System(schema, name)) => {
                        if let Some(table) = system_catalog::table(schema, &name, self.context) {
                            self.found.extend(table.schema().fields().iter().map(|field| field.name().clone()));
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
