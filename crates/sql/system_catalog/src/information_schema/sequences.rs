//! View of sequences, without those of identity columns, which the standard describes with their columns.

use types::SqlType;

use super::super::row_builder::{RowBuilder, row};
use super::super::row_source::RowSource;
use super::super::table_definition::TableDefinition;
use super::{view, yes_or_no};

pub(super) const TABLES: &[TableDefinition] = &[view(
    13_386,
    "sequences",
    "Sequences.",
    "sequence_catalog name, sequence_schema name, sequence_name name, data_type varchar, numeric_precision int4, \
     numeric_precision_radix int4 = 2, numeric_scale int4 = 0, start_value varchar, minimum_value varchar, \
     maximum_value varchar, increment varchar, cycle_option char3",
    sequences,
)];

fn sequences(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for sequence in source.state().sequences() {
        let column = sequence.owned_by.and_then(|owner| source.state().table(owner.table)?.column(owner.column));
        if column.is_some_and(|column| column.identity.is_some_and(|identity| identity.sequence == sequence.oid)) {
            continue;
        }
        let bits = match sequence.sql_type {
            SqlType::Int2 => 16,
            SqlType::Int4 => 32,
            _ => 64,
        };
        row!(rows, sequence_catalog: &source.context.database, sequence_schema: source.schema_name(sequence.schema),
            sequence_name: &sequence.name, data_type: sequence.sql_type.to_string(), numeric_precision: bits,
            start_value: sequence.start.to_string(), minimum_value: sequence.min.to_string(),
            maximum_value: sequence.max.to_string(), increment: sequence.increment.to_string(),
            cycle_option: yes_or_no(sequence.cycle));
    }
}
