//! Inputs that relations need beyond the current catalog snapshot: historical snapshots, and file lists of external
//! tables, which views may read too.

use std::collections::HashSet;

use catalog::Relation;
use session_context::MissingInputs;
use syntax::RelationRead;
use types::Oid;

use super::context_provider::may_read;
use super::relation_lookup::{self, RelationName, ResolvedRelation};
use super::{Binder, time_travel_target};

impl Binder<'_> {
    /// Adds the inputs that the relations of the statement need and that are not fetched yet. Invalid moments and
    /// names are reported when they are bound.
    pub fn add_missing_inputs(&self, relations: &[RelationRead], missing: &mut MissingInputs) {
        let fetched = &self.context.inputs;
        let moments = relations.iter().filter_map(|relation| time_travel_target(self, relation.version.as_ref()?).ok());
        missing.moments.extend(moments.filter(|moment| !fetched.states.contains_key(moment)));
        let state = &self.context.snapshot;
        if !self.context.has_rows || !state.has_external_tables() {
            return;
        }
        let of_now = relations.iter().filter(|relation| relation.version.is_none());
        let mut pending: Vec<(Oid, Relation)> = of_now
            .filter_map(|written| {
                match relation_lookup::find_relation(
                    self.context,
                    &RelationName::parse(&written.name, self.context).ok()?,
                ) {
                    Ok(ResolvedRelation::Catalog(found)) => Some((self.reader_role, found)),
                    Ok(ResolvedRelation::System(..)) | Err(_) => None,
                }
            })
            .collect();
        let mut views = HashSet::new();
        while let Some((reader, found)) = pending.pop() {
            match found {
                Relation::Table(table) if table.external.is_some() => {
                    // Files of tables that the role may not read are not listed.
                    if may_read(self.context, reader, table.owner) && !fetched.files.contains_key(&table.oid) {
                        missing.external_tables.insert(table.oid, table);
                    }
                }
                Relation::View(view) => {
                    if may_read(self.context, reader, view.owner) && views.insert(view.oid) {
                        let read = view.depends_on.iter().filter_map(|oid| state.relation_by_oid(*oid));
                        pending.extend(read.map(|found| (view.owner, found)));
                    }
                }
                Relation::Table(_) | Relation::Sequence(_) => {}
            }
        }
    }
}
