//! Background services of the server.

use super::super::row_builder::{RowBuilder, row};
use super::super::row_source::RowSource;
use super::super::table_definition::TableDefinition;
use super::view;

pub(super) const TABLES: &[TableDefinition] = &[view(
    15_011,
    "service",
    "A background service of the server.",
    &[
        ("name text", "Name."),
        ("state text", "State: `running`, `failing`, `restarting` or `done`."),
        ("started timestamptz", "Time of its last start."),
        ("restarts int8", "Starts after the first."),
        ("last_error text", "Failure of its work now; if it succeeds, the cause of the last restart."),
    ],
    services,
)];

fn services(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for service in source.context.activity.services() {
        row!(rows, name: service.name, state: service.state, started: service.started_us, restarts: service.restarts,
            last_error: service.last_error);
    }
}
