//! MATERIALIZED and NOT MATERIALIZED of WITH queries, which are encoded in the names of the queries for the
//! optimizer.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Cte, CteAsMaterialized, ObjectName, ObjectNamePart, Query, VisitorMut, With};
use optimizer::common_subplans::MaterializeClause;
use syntax::Walk;

use super::resolve::quoted;

/// Renames WITH queries to encode whether they are materialized, if any of them says so. Names must be resolved.
pub(super) fn encode_materialization(query: &mut Query) {
    let mut found = WithNameCollector::default();
    let _ = query.walk_mut(&mut found);
    if found.is_asked {
        let _ = query.walk_mut(&mut WithRenamer { names: &found.names });
    }
}

/// Collector of the names of WITH queries, which are unique in the statement, and of their new names.
#[derive(Default)]
struct WithNameCollector {
    names: HashMap<String, String>,
    is_asked: bool,
}

impl VisitorMut for WithNameCollector {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let Some(With { cte_tables, recursive, .. }) = &query.with else { return ControlFlow::Continue(()) };
        for cte in cte_tables {
            // A recursive query is evaluated iteratively, as far as its rows are needed.
            if *recursive && reads_itself(cte) {
                continue;
            }
            let asked = match cte.materialized {
                Some(CteAsMaterialized::Materialized) => MaterializeClause::Materialized,
                Some(CteAsMaterialized::NotMaterialized) => MaterializeClause::NotMaterialized,
                None => MaterializeClause::Unspecified,
            };
            self.is_asked |= asked != MaterializeClause::Unspecified;
            let name = &cte.alias.name.value;
            self.names.insert(name.clone(), asked.encode_name(name));
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

struct WithRenamer<'a> {
    names: &'a HashMap<String, String>,
}

impl VisitorMut for WithRenamer<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        for cte in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            if let Some(name) = self.names.get(&cte.alias.name.value) {
                cte.alias.name = quoted(name);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<()> {
        if let Some(name) = unqualified_name(relation).and_then(|name| self.names.get(name)) {
            *relation = ObjectName::from(vec![quoted(name)]);
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
