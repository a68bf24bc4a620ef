//! CREATE [OR REPLACE] VIEW.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use binder::{Binder, DefinePlan, QueryPlan};
use catalog::{CatalogState, Change, Relation, View};
use datafusion::sql::sqlparser::ast::{Expr, ObjectName, Query, TableFactor, Visitor};
use syntax::to_sql_text;
use syntax::{Walk, statement::CreateView};
use system_catalog::SEQUENCE_COLUMNS;
use types::{ColumnId, Condition, Oid, SqlError, SqlResult, SqlType};

use super::name_resolution::{self, ResolvedRelation};
use super::{column_definition, view_text};

/// Creates a view whose definition has all names resolved, so that it reads the same relations whatever is created or
/// renamed later.
///
/// # Errors
/// `42P07` for an existing name, `42809` if another kind of relation has it, `42P16` for a replacement that changes
/// existing columns, `42701` for a duplicate column, and errors of the query.
pub fn create_view(binder: &Binder<'_>, create: &CreateView) -> SqlResult<DefinePlan> {
    let context = binder.context();
    if uses_time_travel(&create.query) {
        return Err(SqlError::unsupported("AS OF in a view"));
    }
    let query = binder.plan_query(&create.query, &[])?;
    if !query.parameters.is_empty() {
        return Err(SqlError::new(Condition::UndefinedParameter, "there is no parameter $1"));
    }
    let columns = columns(create, &query)?;
    let resolved = binder.resolve_query_names(&create.query)?;
    let used = ViewDependencies::collect(&context.snapshot, &resolved);
    let reads_temporary = used.relations.iter().any(|relation| is_temporary(&context.snapshot, *relation));
    let temporary = create.temporary || reads_temporary;
    let name_resolution::CreationTarget { schema, name, schema_change: made, .. } =
        name_resolution::creation_target(context, &create.name, temporary)?;
    let old = match name_resolution::find_relation_in(&context.snapshot, &schema.name, name) {
        None => None,
        Some(_) if !create.or_replace => return Err(name_resolution::duplicate_relation(name)),
        Some(ResolvedRelation::View(view)) => Some(view),
        Some(_) => return Err(name_resolution::wrong_kind_error(name, "view")),
    };
    let mut view = View {
        oid: Oid(0),
        schema: schema.oid,
        name: name.to_owned(),
        owner: context.role.oid,
        columns,
        definition: to_sql_text(&resolved),
        depends_on: used.relations.into_iter().collect(),
        columns_used: used.columns.into_iter().collect(),
        comment: None,
        column_comments: BTreeMap::new(),
    };
    match old {
        None => view.oid = (context.new_oid)(),
        Some(old) => {
            name_resolution::check_owner(context, old.owner, "view", &old.name)?;
            check_replacement(&old, &view)?;
            refuse_recursion(&context.snapshot, &old, &view)?;
            view.oid = old.oid;
            view.owner = old.owner;
            view.comment.clone_from(&old.comment);
            view.column_comments.clone_from(&old.column_comments);
        }
    }
    // The definition must parse to the query that was planned.
    view_text::parse_definition(&view)?;
    let mut plan = DefinePlan { command_tag: "CREATE VIEW".to_owned(), ..DefinePlan::default() };
    if reads_temporary && !create.temporary {
        let message = format!("view \"{}\" will be a temporary view", view.name);
        plan.notices.push(SqlError::new(Condition::SuccessfulCompletion, message));
    }
    plan.changes.extend(made);
    plan.changes.push(Change::PutView(Arc::new(view)));
    Ok(plan)
}

fn is_temporary(state: &CatalogState, relation: Oid) -> bool {
    let schema = state.relation_by_oid(relation).and_then(|relation| state.schema(relation.schema()));
    schema.is_some_and(|schema| schema.is_temporary())
}

fn uses_time_travel(query: &Query) -> bool {
    struct AsOfFinder;
    impl Visitor for AsOfFinder {
        type Break = ();

        fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
            match factor {
                TableFactor::Table { version: Some(_), .. } => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    query.walk(&mut AsOfFinder).is_break()
}

/// Returns the names and types of the view's columns; the statement's column names replace the first ones of the query.
fn columns(create: &CreateView, query: &QueryPlan) -> SqlResult<Vec<(String, SqlType)>> {
    if create.columns.len() > query.columns.len() {
        let message = "CREATE VIEW specifies more column names than columns";
        return Err(SqlError::new(Condition::SyntaxError, message));
    }
    column_definition::refuse_too_many(query.columns.len())?;
    let mut columns: Vec<(String, SqlType)> = Vec::with_capacity(query.columns.len());
    for (index, output) in query.columns.iter().enumerate() {
        let name = create.columns.get(index).map_or(&output.name, |name| &name.value);
        if columns.iter().any(|(known, _)| known == name) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(SqlError::new(Condition::DuplicateColumn, message));
        }
        columns.push((name.clone(), output.sql_type.clone()));
    }
    Ok(columns)
}

/// Checks that a replacement only adds columns at the end.
fn check_replacement(old: &View, new: &View) -> SqlResult<()> {
    let refused = |message: String| SqlError::new(Condition::InvalidTableDefinition, message);
    if new.columns.len() < old.columns.len() {
        return Err(refused("cannot drop columns from view".to_owned()));
    }
    for ((old_name, old_type), (new_name, new_type)) in old.columns.iter().zip(&new.columns) {
        if old_name != new_name {
            let message = format!("cannot change name of view column \"{old_name}\" to \"{new_name}\"");
            return Err(refused(message)
                .with_hint("Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead."));
        }
        if old_type != new_type {
            let message =
                format!("cannot change data type of view column \"{old_name}\" from {old_type} to {new_type}");
            return Err(refused(message));
        }
    }
    Ok(())
}

/// Refuses a replacement that would read itself, directly or through other views (`42P17`).
fn refuse_recursion(state: &CatalogState, old: &View, new: &View) -> SqlResult<()> {
    let mut waiting = new.depends_on.clone();
    let mut seen: BTreeSet<Oid> = BTreeSet::new();
    while let Some(oid) = waiting.pop() {
        if oid == old.oid {
            let message = format!("infinite recursion detected in rules for relation \"{}\"", old.name);
            return Err(SqlError::new(Condition::InvalidObjectDefinition, message));
        }
        if seen.insert(oid)
            && let Some(view) = state.view(oid)
        {
            waiting.extend(&view.depends_on);
        }
    }
    Ok(())
}

/// Relations that a query with resolved names reads, and their columns that it mentions.
struct ViewDependencies<'a> {
    state: &'a CatalogState,
    aliases: HashMap<String, Relation>,
    relations: BTreeSet<Oid>,
    columns: BTreeSet<(Oid, ColumnId)>,
}

impl<'a> ViewDependencies<'a> {
    fn collect(state: &'a CatalogState, query: &Query) -> Self {
        let mut used = Self { state, aliases: HashMap::new(), relations: BTreeSet::new(), columns: BTreeSet::new() };
        let _: ControlFlow<()> = query.walk(&mut RelationCollector(&mut used));
        let _: ControlFlow<()> = query.walk(&mut ColumnCollector(&mut used));
        used
    }

    fn relation(&self, name: &ObjectName) -> Option<Relation> {
        let [schema, name] = name.0.as_slice() else { return None };
        let schema = self.state.schema_by_name(&schema.as_ident()?.value)?;
        self.state.relation(schema.oid, &name.as_ident()?.value)
    }
}

struct RelationCollector<'u, 'a>(&'u mut ViewDependencies<'a>);

impl Visitor for RelationCollector<'_, '_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, alias, .. } = factor
            && let Some(relation) = self.0.relation(name)
        {
            self.0.relations.insert(relation.oid());
            if let Some(alias) = alias {
                self.0.aliases.insert(alias.name.value.clone(), relation);
            }
        }
        ControlFlow::Continue(())
    }
}

struct ColumnCollector<'u, 'a>(&'u mut ViewDependencies<'a>);

impl Visitor for ColumnCollector<'_, '_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let [alias, column] = parts.as_slice()
            && let Some(relation) = self.0.aliases.get(&alias.value)
            && let Some(id) = column_id(relation, &column.value)
        {
            self.0.columns.insert((relation.oid(), id));
        }
        ControlFlow::Continue(())
    }
}

fn column_id(relation: &Relation, name: &str) -> Option<ColumnId> {
    match relation {
        Relation::Table(table) => table.column_by_name(name).map(|(_, column)| column.id),
        Relation::View(view) => view.columns.iter().position(|(known, _)| known == name).map(View::column_id),
        Relation::Sequence(_) => SEQUENCE_COLUMNS.iter().position(|(known, _)| *known == name).map(View::column_id),
    }
}
