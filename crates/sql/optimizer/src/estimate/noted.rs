//! The estimates of a plan's parts, noted while they are made.

use std::collections::HashMap;

use datafusion::logical_expr::LogicalPlan;

use super::{noting, relation_of};

/// The rows of parts of a plan, by their addresses, where somebody asks for them.
#[derive(Debug, Default)]
pub(crate) struct Noted(Option<HashMap<*const LogicalPlan, f64>>);

impl Noted {
    /// The estimates of all parts of `plan`.
    pub(crate) fn of(plan: &LogicalPlan) -> Self {
        let mut noted = Self(Some(HashMap::new()));
        noting(plan, &mut noted);
        noted
    }

    pub(super) fn add(&mut self, part: &LogicalPlan, rows: f64) {
        if let Some(noted) = &mut self.0 {
            noted.insert(std::ptr::from_ref(part), rows);
        }
    }

    pub(crate) fn rows(&self, part: &LogicalPlan) -> f64 {
        let known = self.0.as_ref().and_then(|noted| noted.get(&std::ptr::from_ref(part)).copied());
        // Of a scan below a filter that was asked about before, nothing was found out again.
        known.unwrap_or_else(|| relation_of(part).rows)
    }
}
