//! Dependent objects of DROP, with the error and notice texts that PostgreSQL lists them in.

use std::collections::HashSet;

use catalog::Dependant;
use session_context::StatementContext;
use types::{Condition, Oid, SqlError};

use super::name_resolution;

/// Maximum number of dependent objects that a message lists.
const LISTED_OBJECTS_MAX: usize = 100;

/// An object that depends on a dropped one.
#[derive(Debug)]
pub(super) struct Dependency {
    pub(super) dependant: Dependant,
    /// Description of the dependent object in messages: `view v`.
    description: String,
    /// Description of the object that it depends on: `table t`.
    depends_on: String,
}

/// Returns the objects that depend on the named schemas, tables and views, without these, oldest first and each before
/// its own dependants.
pub(super) fn dependants_of_objects(context: &StatementContext, named: &[Oid]) -> Vec<Dependency> {
    let mut walk = DependantSearch::new(context, named);
    for &oid in named {
        walk.visit(oid);
    }
    walk.finish()
}

/// Returns the objects that depend on a part of a table, which messages call `on`, with their own dependants; `direct`
/// are the direct ones.
pub(super) fn dependants_of_part(context: &StatementContext, direct: Vec<Dependant>, on: &str) -> Vec<Dependency> {
    let mut walk = DependantSearch::new(context, &[]);
    walk.follow(direct, on);
    walk.finish()
}

/// Returns the error of a DROP without CASCADE (`2BP01`).
pub(super) fn drop_refusal(what: &str, dependencies: &[Dependency]) -> SqlError {
    let lines = dependencies.iter().map(|found| format!("{} depends on {}", found.description, found.depends_on));
    let message = format!("cannot drop {what} because other objects depend on it");
    SqlError::new(Condition::DependentObjectsStillExist, message)
        .with_detail(join_limited(lines))
        .with_hint("Use DROP ... CASCADE to drop the dependent objects too.")
}

/// Returns the notice about the objects that CASCADE drops; `None` for none.
pub(super) fn cascade_notice(dependencies: &[Dependency]) -> Option<SqlError> {
    let lines = || dependencies.iter().map(|found| format!("drop cascades to {}", found.description));
    match dependencies.len() {
        0 => None,
        1 => lines().next().map(|line| SqlError::new(Condition::SuccessfulCompletion, line)),
        count => {
            let message = format!("drop cascades to {count} other objects");
            Some(SqlError::new(Condition::SuccessfulCompletion, message).with_detail(join_limited(lines())))
        }
    }
}

fn join_limited(lines: impl Iterator<Item = String>) -> String {
    let mut lines: Vec<String> = lines.collect();
    if lines.len() > LISTED_OBJECTS_MAX {
        let rest = lines.split_off(LISTED_OBJECTS_MAX).len();
        lines.push(format!("and {rest} other objects (see server log for list)"));
    }
    lines.join("\n")
}

/// Depth-first search of dependants, newest first; the result is reversed at the end.
struct DependantSearch<'a> {
    context: &'a StatementContext,
    named: HashSet<Oid>,
    seen: HashSet<Oid>,
    dependencies: Vec<Dependency>,
}

impl<'a> DependantSearch<'a> {
    fn new(context: &'a StatementContext, named: &[Oid]) -> Self {
        Self { context, named: named.iter().copied().collect(), seen: HashSet::new(), dependencies: Vec::new() }
    }

    fn visit(&mut self, oid: Oid) {
        if !self.seen.insert(oid) {
            return;
        }
        let on = describe_object(self.context, oid);
        self.follow(self.context.snapshot.dependants(oid), &on);
    }

    fn follow(&mut self, mut dependants: Vec<Dependant>, on: &str) {
        dependants.sort_by_key(|dependant| std::cmp::Reverse(sort_key(dependant)));
        for dependant in dependants {
            let known = match dependant.oid() {
                Some(oid) => {
                    let known = self.seen.contains(&oid) || self.named.contains(&oid);
                    self.visit(oid);
                    known
                }
                None => false,
            };
            if !known {
                let what = describe_dependant(self.context, &dependant);
                self.dependencies.push(Dependency { dependant, description: what, depends_on: on.to_owned() });
            }
        }
    }

    fn finish(mut self) -> Vec<Dependency> {
        // A constraint or default is not listed if its table is dropped too.
        let seen = &self.seen;
        self.dependencies
            .retain(|found| !matches!(&found.dependant, Dependant::Constraint { table, .. } | Dependant::Default { table, .. } if seen.contains(table)));
        self.dependencies.reverse();
        self.dependencies
    }
}

fn sort_key(dependant: &Dependant) -> Oid {
    match dependant {
        Dependant::Constraint { oid, .. }
        | Dependant::Default { table: oid, .. }
        | Dependant::Sequence { oid, .. }
        | Dependant::Schema { oid, .. }
        | Dependant::Table { oid, .. }
        | Dependant::View { oid, .. } => *oid,
        Dependant::Database { .. } => Oid(0),
    }
}

/// Describes a schema, table, view or sequence as messages name it.
pub(super) fn describe_object(context: &StatementContext, oid: Oid) -> String {
    match context.snapshot.schema(oid) {
        Some(schema) => format!("schema {}", schema.name),
        None if context.snapshot.view(oid).is_some() => format!("view {}", name_resolution::display_name(context, oid)),
        None if context.snapshot.sequence(oid).is_some() => {
            format!("sequence {}", name_resolution::display_name(context, oid))
        }
        None => format!("table {}", name_resolution::display_name(context, oid)),
    }
}

fn describe_dependant(context: &StatementContext, dependant: &Dependant) -> String {
    match dependant {
        Dependant::Table { oid, .. } | Dependant::View { oid, .. } | Dependant::Sequence { oid, .. } => {
            describe_object(context, *oid)
        }
        Dependant::Default { table, name, .. } => {
            format!("default value for column {name} of table {}", name_resolution::display_name(context, *table))
        }
        Dependant::Constraint { table, name, .. } => {
            format!("constraint {name} on table {}", name_resolution::display_name(context, *table))
        }
        other => other.to_string(),
    }
}
