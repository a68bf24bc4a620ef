//! Who goes along with what is dropped, told as PostgreSQL tells it.

use std::collections::HashSet;

use catalog::Dependant;
use session_context::StatementContext;
use types::{Condition, Oid, SqlError};

use super::name;

/// How many dependants a message names.
const SHOWN_MAX: usize = 100;

/// Something that needs what is dropped.
#[derive(Debug)]
pub(super) struct Dependency {
    pub(super) dependant: Dependant,
    /// As messages name the dependant: `view v`.
    what: String,
    /// What it needs, as messages name that: `table t`.
    needs: String,
}

/// What depends on the named schemas, tables and views and is none of them, oldest first, each before what depends on it.
pub(super) fn of_objects(context: &StatementContext, named: &[Oid]) -> Vec<Dependency> {
    let mut walk = Walk::new(context, named);
    for &oid in named {
        walk.visit(oid);
    }
    walk.finish()
}

/// What depends on something that `direct` depend on, which messages name `on`, with what depends on those.
pub(super) fn of_part(context: &StatementContext, direct: Vec<Dependant>, on: &str) -> Vec<Dependency> {
    let mut walk = Walk::new(context, &[]);
    walk.follow(direct, on);
    walk.finish()
}

/// `2BP01`: `what` cannot be dropped.
pub(super) fn refusal(what: &str, dependencies: &[Dependency]) -> SqlError {
    let lines = dependencies.iter().map(|found| format!("{} depends on {}", found.what, found.needs));
    let message = format!("cannot drop {what} because other objects depend on it");
    SqlError::new(Condition::DependentObjectsStillExist, message)
        .with_detail(listed(lines))
        .with_hint("Use DROP ... CASCADE to drop the dependent objects too.")
}

/// The notice of what CASCADE takes along; `None` for nothing.
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

/// Depth first with the newest dependants first; what comes out is turned round.
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
        // A constraint goes unmentioned with its table.
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

/// As messages name the schema, table or view.
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
