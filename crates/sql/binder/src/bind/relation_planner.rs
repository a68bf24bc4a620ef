//! Planner of the relations of a query that refer to a [`RelationSource`], as DataFusion's planner calls it.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::{Result, TableReference};
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::{LogicalPlanBuilder, TableSource};
use datafusion::sql::sqlparser::ast::{ObjectName, Query, TableFactor, Visitor};
use functions::error::to_datafusion;
use optimizer::common_subplans::{WithQuery, WithQueryReference};
use syntax::Walk;
use types::{SqlError, SqlResult, interrupt};

use super::relation_source::{RelationSource, RelationSources, source_number};

/// Planner of the relations with a source of one query. It also checks for cancellation, because planning a deeply
/// nested query visits its text again at each level.
#[derive(Debug, Default)]
pub(super) struct SourcePlanner {
    /// Relations by the numbers of their sources.
    relations: HashMap<usize, SourceRelation>,
}

/// Relation with a source.
enum SourceRelation {
    /// Scan of a table or a plan; the name only shows in plans.
    Scan(TableReference, Arc<dyn TableSource>),
    WithQuery(Arc<WithQuery>),
}

impl std::fmt::Debug for SourceRelation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Scan(name, _) => f.debug_tuple("Scan").field(name).finish(),
            Self::WithQuery(query) => f.debug_tuple("WithQuery").field(query).finish(),
        }
    }
}

impl SourcePlanner {
    /// Creates the planner of `query`; `scan` returns what to scan for a relation of this schema and name.
    ///
    /// # Errors
    /// Those of `scan`.
    pub(super) fn for_query(
        query: &Query,
        sources: &RelationSources,
        scan: impl Fn(&RelationSource, &TableReference) -> SqlResult<Arc<dyn TableSource>>,
    ) -> SqlResult<Self> {
        if sources.is_empty() {
            return Ok(Self::default());
        }
        let mut found = SourceCollector { sources, relations: Vec::new() };
        let _ = query.walk(&mut found);
        let relations = found.relations.into_iter().map(|(number, source, name)| {
            let relation = match source {
                RelationSource::WithQuery(query) => SourceRelation::WithQuery(query),
                source => {
                    let name = table_reference(&name)?;
                    let scanned = scan(&source, &name)?;
                    SourceRelation::Scan(name, scanned)
                }
            };
            Ok((number, relation))
        });
        Ok(Self { relations: relations.collect::<SqlResult<_>>()? })
    }
}

impl RelationPlanner for SourcePlanner {
    fn plan_relation(
        &self,
        mut relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        interrupt::check().map_err(to_datafusion)?;
        let TableFactor::Table { alias, version, .. } = &mut relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let number = version.as_ref().and_then(source_number);
        let Some(source) = number.and_then(|number| self.relations.get(&number)) else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let alias = alias.take();
        *version = None;
        let plan = match source {
            SourceRelation::Scan(name, source) => {
                LogicalPlanBuilder::scan(name.clone(), Arc::clone(source), None)?.build()?
            }
            SourceRelation::WithQuery(query) => {
                WithQueryReference::into_plan(Arc::clone(query), context.plan(relation)?)
            }
        };
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
    }
}

/// Collector of relations with a source.
struct SourceCollector<'a> {
    sources: &'a RelationSources,
    relations: Vec<(usize, RelationSource, ObjectName)>,
}

impl Visitor for SourceCollector<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, version: Some(version), .. } = factor
            && let (Some(number), Some(source)) = (source_number(version), self.sources.get(version))
        {
            self.relations.push((number, source, name.clone()));
        }
        ControlFlow::Continue(())
    }
}

/// Returns the schema and name of a resolved relation.
fn table_reference(name: &ObjectName) -> SqlResult<TableReference> {
    let parts: Vec<&str> = name.0.iter().filter_map(|part| part.as_ident()).map(|part| part.value.as_str()).collect();
    match parts.as_slice() {
        [schema, name] => Ok(TableReference::partial(*schema, *name)),
        _ => Err(SqlError::internal(format!(
            "relation {name} has a relation source, but its name is not schema-qualified"
        ))),
    }
}
