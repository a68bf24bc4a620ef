//! Dependent objects of DROP, with the error and notice texts that PostgreSQL lists them in.

use std::collections::HashSet;

use catalog::Dependant;
use session_context::StatementContext;
use types::{Condition, Oid, SqlError};

use super::name;

/// Maximum number of dependent objects that a message lists.
const SHOWN_MAX: usize = 100;

/// An object that depends on a dropped one.
#[derive(Debug)]
pub(super) struct Dependency {
    pub(super) dependant: Dependant,
    /// Description of the dependent object in messages: `view v`.
    what: String,
    /// Description of the object that it depends on: `table t`.
    needs: String,
}

/// Returns the objects that depend on the named schemas, tables and views, without these, oldest first and each before
/// its own dependants.
pub(super) fn of_objects(context: &StatementContext, named: &[Oid]) -> Vec<Dependency> {
    let mut walk = Walk::new(context, named);
    for &oid in named {
        walk.visit(oid);
    }
    walk.finish()
}

/// Returns the objects that depend on a part of a table, which messages call `on`, with their own dependants; `direct`
/// are the direct ones.
pub(super) fn of_part(context: &StatementContext, direct: Vec<Dependant>, on: &str) -> Vec<Dependency> {
    let mut walk = Walk::new(context, &[]);
    walk.follow(direct, on);
    walk.finish()
}

/// Returns the error of a DROP without CASCADE (`2BP01`).
pub(super) fn refusal(what: &str, dependencies: &[Dependency]) -> SqlError {
    let lines = dependencies.iter().map(|found| format!("{} depends on {}", found.what, found.needs));
    let message = format!("cannot drop {what} because other objects depend on it");
    SqlError::new(Condition::DependentObjectsStillExist, message)
        .with_detail(listed(lines))
        .with_hint("Use DROP ... CASCADE to drop the dependent objects too.")
}

/// Returns the notice about the objects that CASCADE drops; `None` for none.
pub(super) fn cascade_notice(dependencies: &[Dependency]) -> Option<SqlError> {
    let lines = || dependencies.iter().map(|found| format!("drop cascades to {}", found.what));
    match dependencies.len() {
        0 => None,
        1 => lines().next().map(|line| SqlError::new(Condition::SuccessfulCompletion, line)),
        count => {
            let message = format!("drop cascades to {count} other objects");
            Some(SqlError::new(Condition::SuccessfulCompletion, message).with_detail(listed(lines())))
        }
    }
}

fn listed(lines: impl Iterator<Item = String>) -> String {
    let mut lines: Vec<String> = lines.collect();
    if lines.len() > SHOWN_MAX {
        let rest = lines.split_off(SHOWN_MAX).len();
        lines.push(format!("and {rest} other objects (see server log for list)"));
    }
    lines.join("\n")
}

/// Depth-first search of dependants, newest first; the result is reversed at the end.
struct Walk<'a> {
    context: &'a StatementContext,
    named: HashSet<Oid>,
    seen: HashSet<Oid>,
    found: Vec<Dependency>,
}

impl<'a> Walk<'a> {
    fn new(context: &'a StatementContext, named: &[Oid]) -> Self {
        Self { context, named: named.iter().copied().collect(), seen: HashSet::new(), found: Vec::new() }
    }

    fn visit(&mut self, oid: Oid) {
        if !self.seen.insert(oid) {
            return;
        }
        let on = object(self.context, oid);
        self.follow(self.context.snapshot.dependants(oid), &on);
    }

    fn follow(&mut self, mut dependants: Vec<Dependant>, on: &str) {
        dependants.sort_by_key(|dependant| std::cmp::Reverse(identity(dependant)));
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
                let what = described(self.context, &dependant);
                self.found.push(Dependency { dependant, what, needs: on.to_owned() });
            }
        }
    }

    fn finish(mut self) -> Vec<Dependency> {
        // A constraint or default is not listed if its table is dropped too.
        let seen = &self.seen;
        self.found
            .retain(|found| !matches!(&found.dependant, Dependant::Constraint { table, .. } | Dependant::Default { table, .. } if seen.contains(table)));
        self.found.reverse();
        self.found
    }
}

fn identity(dependant: &Dependant) -> Oid {
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
pub(super) fn object(context: &StatementContext, oid: Oid) -> String {
    match context.snapshot.schema(oid) {
        Some(schema) => format!("schema {}", schema.name),
        None if context.snapshot.view(oid).is_some() => format!("view {}", name::shown(context, oid)),
        None if context.snapshot.sequence(oid).is_some() => format!("sequence {}", name::shown(context, oid)),
        None => format!("table {}", name::shown(context, oid)),
    }
}

fn described(context: &StatementContext, dependant: &Dependant) -> String {
    match dependant {
        Dependant::Table { oid, .. } | Dependant::View { oid, .. } | Dependant::Sequence { oid, .. } => {
            object(context, *oid)
        }
        Dependant::Default { table, name, .. } => {
            format!("default value for column {name} of table {}", name::shown(context, *table))
        }
        Dependant::Constraint { table, name, .. } => {
            format!("constraint {name} on table {}", name::shown(context, *table))
        }
        other => other.to_string(),
    }
}
