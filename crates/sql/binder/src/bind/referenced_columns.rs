//! Column names in a query: tables are planned with these columns only, because every rule visits all columns of
//! every operator.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use catalog::{Distribution, Table, TableOrder};
use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, Select, SelectItem, SetExpr, Visitor};
use syntax::Walk;
use types::ColumnId;

/// Superset of the names of all columns that a query reads.
#[derive(Debug, Clone, Default)]
pub(super) struct ReferencedColumns(HashSet<String>);

impl ReferencedColumns {
    /// Collects the names of a query whose names are resolved; `None` if it reads columns that it does not name.
    pub(super) fn collect(query: &Query) -> Option<Self> {
        let mut names = NameCollector::default();
        match query.walk(&mut names) {
            ControlFlow::Continue(()) => Some(Self(names.names)),
            ControlFlow::Break(()) => None,
        }
    }

    /// Removes the columns of the table that are neither named nor part of a key, the distribution or the sort order.
    pub(super) fn prune_table(&self, table: &Arc<Table>) -> Arc<Table> {
        let lasting = columns_of_keys(table);
        let mut wanted: Vec<bool> =
            table.columns.iter().map(|column| self.0.contains(&column.name) || lasting.contains(&column.id)).collect();
        if let Some(first) = wanted.first_mut()
            && !table.columns.iter().any(|column| self.0.contains(&column.name))
        {
            // Counting rows needs a column.
            *first = true;
        }
        if wanted.iter().all(|wanted| *wanted) {
            return Arc::clone(table);
        }
        let mut narrow = Table::clone(table);
        let mut wanted = wanted.into_iter();
        narrow.columns.retain(|_| wanted.next().unwrap_or(true));
        Arc::new(narrow)
    }
}

fn columns_of_keys(table: &Table) -> HashSet<ColumnId> {
    let of_constraints = table.constraints.iter().flat_map(|constraint| constraint.kind.columns());
    let mut columns: HashSet<ColumnId> = of_constraints.copied().collect();
    columns.extend(table.indexes.iter().flat_map(|index| index.all_columns()));
    if let Distribution::On(keys) = &table.distribution {
        columns.extend(keys);
    }
    match &table.order {
        TableOrder::None => {}
        TableOrder::Sort(keys) => columns.extend(keys.iter().map(|key| key.column)),
        TableOrder::Cluster(keys) => columns.extend(keys),
    }
    columns
}

#[derive(Default)]
struct NameCollector {
    names: HashSet<String>,
}

impl NameCollector {
    fn add(&mut self, name: &Ident) {
        if !self.names.contains(&name.value) {
            self.names.insert(name.value.clone());
        }
    }
}

impl Visitor for NameCollector {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        match query.body.as_ref() {
            SetExpr::Table(_) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let is_star = |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
        if select.projection.iter().any(is_star) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(name) => self.add(name),
            Expr::CompoundIdentifier(names) => names.iter().for_each(|name| self.add(name)),
            Expr::QualifiedWildcard(..) => return ControlFlow::Break(()),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
