//! Consequences of refusals: objects that Kiln lacks, or whose content differs from PostgreSQL's, by name.

use std::collections::{BTreeMap, BTreeSet};

use crate::answer::Failure;
use crate::reason::Reason;
use crate::sql::Effects;

#[cfg(test)]
mod tests;

/// Names of objects that differ between Kiln and PostgreSQL, each with the reason of the refusal behind it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OutOfStep {
    objects: BTreeMap<String, Reason>,
    columns: BTreeMap<String, Reason>,
}

impl OutOfStep {
    /// Notes that only PostgreSQL ran a statement.
    pub(crate) fn note_refused(&mut self, effects: &Effects, reason: &Reason) {
        let objects = effects.defines.iter().chain(&effects.writes).chain(&effects.drops);
        self.objects.extend(objects.map(|name| (name.clone(), reason.clone())));
        self.columns.extend(effects.columns.iter().map(|name| (name.clone(), reason.clone())));
    }

    /// Notes that both ran a statement. An object made from others that differ differs too; one made anew does not.
    pub(crate) fn note_accepted(&mut self, effects: &Effects, names: &BTreeSet<String>) {
        for defined in &effects.defines {
            match self.reason_behind(names.iter().filter(|name| *name != defined)) {
                Some(reason) => self.objects.insert(defined.clone(), reason),
                None => self.objects.remove(defined),
            };
        }
        for written in &effects.writes {
            if let Some(reason) = self.reason_behind(names.iter().filter(|name| *name != written)) {
                self.objects.entry(written.clone()).or_insert(reason);
            }
        }
        for dropped in &effects.drops {
            self.objects.remove(dropped);
        }
    }

    /// Returns the reason behind a refusal that misses an object or a column.
    pub(crate) fn reason_for_refusal(&self, failure: &Failure) -> Option<Reason> {
        if !failure.message.contains("does not exist") {
            return None;
        }
        let separators = |c: char| c.is_whitespace() || "\"(),;:.".contains(c);
        let mut names = failure.message.split(separators);
        names.find_map(|name| self.objects.get(name).or_else(|| self.columns.get(name))).cloned()
    }

    /// Returns the reason behind a difference, if the statement names an object that differs.
    pub(crate) fn reason_for_difference(&self, names: &BTreeSet<String>) -> Option<Reason> {
        self.reason_behind(names.iter())
    }

    fn reason_behind<'a>(&self, mut names: impl Iterator<Item = &'a String>) -> Option<Reason> {
        names.find_map(|name| self.objects.get(name)).cloned()
    }
}
