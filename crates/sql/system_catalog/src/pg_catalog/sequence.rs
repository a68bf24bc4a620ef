//! `pg_sequence` and `pg_sequences`.

use super::super::row_builder::{RowBuilder, row};
use super::super::row_source::RowSource;
use super::super::table_definition::TableDefinition;
use super::definition_constructors::{catalog, view};

pub(super) const TABLES: &[TableDefinition] = &[
    catalog(
        2224,
        "pg_sequence",
        "Parameters of sequences.",
        "seqrelid oid, seqtypid oid, seqstart int8, seqincrement int8, seqmax int8, seqmin int8, seqcache int8, seqcycle bool",
        sequence,
    ),
    view(
        12_048,
        "pg_sequences",
        "Sequences with their parameters and last values.",
        "schemaname name, sequencename name, sequenceowner name, data_type regtype, start_value int8, min_value int8, \
         max_value int8, increment_by int8, cycle bool, cache_size int8, last_value int8",
        sequences,
    ),
];

fn sequence(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for sequence in source.state().sequences() {
        row!(rows, seqrelid: sequence.oid, seqtypid: sequence.sql_type.oid(), seqstart: sequence.start,
            seqincrement: sequence.increment, seqmax: sequence.max, seqmin: sequence.min, seqcache: sequence.cache,
            seqcycle: sequence.cycle);
    }
}

fn sequences(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for sequence in source.state().sequences() {
        let position = source.context.sequences.position(sequence);
        row!(rows, schemaname: source.schema_name(sequence.schema), sequencename: &sequence.name,
            sequenceowner: source.role_name(sequence.owner), data_type: sequence.sql_type.oid(),
            start_value: sequence.start, min_value: sequence.min, max_value: sequence.max,
            increment_by: sequence.increment, cycle: sequence.cycle, cache_size: sequence.cache,
            last_value: position.is_called.then_some(position.last_value));
    }
}
