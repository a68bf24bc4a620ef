//! MATERIALIZED and NOT MATERIALIZED of WITH queries: their references become [`RelationSource::WithQuery`].

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{
    Cte, CteAsMaterialized, ObjectName, ObjectNamePart, Query, TableFactor, VisitorMut, With,
};
use optimizer::common_subplans::{MaterializeClause, WithQuery};
use syntax::Walk;

use super::relation_source::{RelationSource, RelationSources};

/// Makes the references to WITH queries refer to their clauses, if a WITH query has one. Names must be resolved.
pub(super) fn refer_to_clauses(query: &mut Query, sources: &RelationSources) {
    let mut found = ClauseCollector::default();
    let _ = query.walk_mut(&mut found);
    if found.has_clause {
        let _ = query.walk_mut(&mut ReferenceMarker { queries: &found.queries, sources });
    }
}

/// Collector of WITH queries by their names, which are unique in the statement.
#[derive(Default)]
struct ClauseCollector {
    queries: HashMap<String, Arc<WithQuery>>,
    has_clause: bool,
}

impl VisitorMut for ClauseCollector {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let Some(With { cte_tables, recursive, .. }) = &query.with else { return ControlFlow::Continue(()) };
        for cte in cte_tables {
            // A recursive query is evaluated iteratively, as far as its rows are needed.
            if *recursive && reads_itself(cte) {
                continue;
            }
            let clause = match cte.materialized {
                Some(CteAsMaterialized::Materialized) => MaterializeClause::Materialized,
                Some(CteAsMaterialized::NotMaterialized) => MaterializeClause::NotMaterialized,
                None => MaterializeClause::Unspecified,
            };
            self.has_clause |= clause != MaterializeClause::Unspecified;
            let name = cte.alias.name.value.clone();
            self.queries.insert(name.clone(), Arc::new(WithQuery { name, clause }));
        }
        ControlFlow::Continue(())
    }
}

fn reads_itself(cte: &Cte) -> bool {
    let found = cte.query.walk_relations(|name| {
        if unqualified_name(name) == Some(&cte.alias.name.value) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    found.is_break()
}

struct ReferenceMarker<'a> {
    queries: &'a HashMap<String, Arc<WithQuery>>,
    sources: &'a RelationSources,
}

impl VisitorMut for ReferenceMarker<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, version: version @ None, .. } = factor
            && let Some(query) = unqualified_name(name).and_then(|name| self.queries.get(name))
        {
            *version = Some(self.sources.refer_to(RelationSource::WithQuery(Arc::clone(query))));
        }
        ControlFlow::Continue(())
    }
}

/// Returns the name of a WITH query; relations of the catalog have two parts, schema and name.
pub(super) fn unqualified_name(name: &ObjectName) -> Option<&String> {
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(name)] => Some(&name.value),
        _ => None,
    }
}
