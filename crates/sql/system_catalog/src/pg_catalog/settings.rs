//! `pg_settings` and other views of the session: time zones, cursors, prepared statements.

use chrono::{Offset, TimeZone};
use chrono_tz::{OffsetComponents, OffsetName};

use super::super::row_builder::{RowBuilder, row};
use super::super::row_source::RowSource;
use super::super::table_definition::{TableDefinition, no_rows};
use super::definition_constructors::view;

pub(super) const TABLES: &[TableDefinition] = &[
    view(
        12_104,
        "pg_settings",
        "Settings of the session.",
        "name text, setting text, unit text, category text = Kiln, short_desc text, extra_desc text, context text, vartype text, \
         source text, min_val text, max_val text, enumvals text[], boot_val text, reset_val text, sourcefile text, \
         sourceline int4, pending_restart bool = f",
        settings,
    ),
    view(
        12_126,
        "pg_timezone_names",
        "Time zones.",
        "name text, abbrev text, utc_offset interval, is_dst bool",
        time_zones,
    ),
    view(
        12_122,
        "pg_timezone_abbrevs",
        "Abbreviations of time zones; always empty.",
        "abbrev text, utc_offset interval, is_dst bool",
        no_rows,
    ),
    view(
        12_077,
        "pg_cursors",
        "Cursors of the session; always empty, also while cursors are open.",
        "name text, statement text, is_holdable bool, is_binary bool, is_scrollable bool, creation_time timestamptz",
        no_rows,
    ),
    view(
        12_095,
        "pg_prepared_statements",
        "Prepared statements of the session; always empty, also where statements are prepared.",
        "name text, statement text, prepare_time timestamptz, parameter_types regtype[], from_sql bool, generic_plans int8, custom_plans int8",
        no_rows,
    ),
];

fn settings(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for setting in source.context.settings.all() {
        row!(rows, name: setting.name, setting: setting.value, unit: setting.unit, short_desc: setting.description,
            context: setting.context, vartype: setting.vartype, source: setting.source, boot_val: setting.boot_value,
            reset_val: setting.reset_value);
    }
}

/// Microseconds per second; cells of interval columns are in microseconds.
const SECOND_US: i64 = 1_000_000;

fn time_zones(source: &RowSource<'_>, rows: &mut RowBuilder) {
    let Some(now) = chrono::DateTime::from_timestamp_micros(source.context.statement_us) else { return };
    for zone in chrono_tz::TZ_VARIANTS {
        let offset = zone.offset_from_utc_datetime(&now.naive_utc());
        row!(rows, name: zone.name(), abbrev: offset.abbreviation(),
            utc_offset: i64::from(offset.fix().local_minus_utc()) * SECOND_US, is_dst: !offset.dst_offset().is_zero());
    }
}
