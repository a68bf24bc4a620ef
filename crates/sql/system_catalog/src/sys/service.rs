//! Background services of the server.

use super::super::definition::TableDefinition;
use super::super::rows::{Rows, row};
use super::super::source::Source;
use super::view;

pub(super) const TABLES: &[TableDefinition] =
    &[view(15_011, "service", "name text, state text, started timestamptz, restarts int8, last_error text", services)];

fn services(source: &Source<'_>, rows: &mut Rows) {
    for service in source.context.activity.services() {
        row!(rows, name: service.name, state: service.state, started: service.started_us, restarts: service.restarts,
            last_error: service.last_error);
    }
}
