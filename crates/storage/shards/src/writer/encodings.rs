//! Choice of each column's encoding: numbers by dictionary or delta encoding without a codec, so that a scan decodes
//! them at memory speed; text by dictionary if it repeats, else compressed.

#![deny(clippy::wildcard_enum_match_arm, reason = "a new type must not compile until it has an encoding")]

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::Result;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use types::SqlType;

use super::WriteOptions;
use super::column_writer::ColumnWriter;

/// Number of rows from which on a dictionary saves space.
const DICTIONARY_ROWS_MIN: u64 = 64;
/// Average repetitions from which on a dictionary pays for numbers.
const NUMBER_REPEATS_MIN: u64 = 8;
/// Average repetitions from which on a dictionary pays for text.
const TEXT_REPEATS_MIN: u64 = 3;
/// Size up to which a text dictionary is not worth a codec.
const UNCOMPRESSED_DICTIONARY_BYTES_MAX: u64 = 1_024;
/// Largest size of a dictionary; further values are written without it.
pub(super) const DICTIONARY_BYTES_MAX: usize = 4 << 20;
/// Largest size of a page: pages normally end at their number of rows; only giant values end one earlier.
pub(super) const PAGE_BYTES_MAX: usize = 256 << 20;
pub(super) const ZSTD_LEVEL: i32 = 1;

/// Encoding of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ColumnEncoding {
    pub(super) dictionary: bool,
    /// Encoding of values that are not in the dictionary.
    pub(super) encoding: Encoding,
    pub(super) compressed: bool,
    /// True if pages have bounds. Floats have none: bounds exclude NaN and could not be used.
    pub(super) page_bounds: bool,
}

/// Statistics of a column's first page.
#[derive(Debug, Clone, Copy)]
struct FirstPageStats {
    rows: u64,
    distinct: u64,
    ascending: bool,
}

/// Chooses the encodings of all columns, which have collected statistics of a first page of `rows` rows.
pub(super) fn choose_encodings(columns: &[ColumnWriter], rows: usize) -> Vec<ColumnEncoding> {
    let seen = |column: &ColumnWriter| {
        let stats_collector = column.stats_collector();
        FirstPageStats {
            rows: rows as u64,
            distinct: stats_collector.distinct(),
            ascending: stats_collector.is_ascending(),
        }
    };
    columns.iter().map(|column| choose_encoding(column.sql_type(), seen(column))).collect()
}

/// Converts the encodings to properties of Parquet's own writer.
pub(super) fn writer_properties(
    columns: &[ColumnWriter],
    column_encodings: &[ColumnEncoding],
    options: WriteOptions,
) -> Result<WriterProperties> {
    let mut writer_properties = WriterProperties::builder()
        .set_created_by(concat!("kiln ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_data_page_row_count_limit(options.page_rows)
        .set_data_page_size_limit(PAGE_BYTES_MAX)
        .set_dictionary_page_size_limit(DICTIONARY_BYTES_MAX)
        .set_max_row_group_row_count(None);
    for (column, column_encoding) in columns.iter().zip(column_encodings) {
        writer_properties = set_column_properties(writer_properties, column, *column_encoding)?;
    }
    Ok(writer_properties.build())
}

fn set_column_properties(
    writer_properties: WriterPropertiesBuilder,
    column: &ColumnWriter,
    column_encoding: ColumnEncoding,
) -> Result<WriterPropertiesBuilder> {
    let mut path = vec![column.column_def.name.clone()];
    if column.sql_type().element().is_some() {
        path.extend(["list".to_owned(), "element".to_owned()]);
    }
    let path = ColumnPath::new(path);
    let codec = match column_encoding.compressed {
        true => Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?),
        false => Compression::UNCOMPRESSED,
    };
    let statistics = if column_encoding.page_bounds { EnabledStatistics::Page } else { EnabledStatistics::None };
    Ok(writer_properties
        .set_column_dictionary_enabled(path.clone(), column_encoding.dictionary)
        .set_column_encoding(path.clone(), column_encoding.encoding)
        .set_column_compression(path.clone(), codec)
        .set_column_statistics_enabled(path, statistics))
}

/// Chooses the encoding of a column.
fn choose_encoding(sql_type: &SqlType, seen: FirstPageStats) -> ColumnEncoding {
    let repeats = |times: u64| DICTIONARY_ROWS_MIN <= seen.rows && seen.distinct * times <= seen.rows;
    let plain = ColumnEncoding { dictionary: false, encoding: Encoding::PLAIN, compressed: false, page_bounds: true };
    match sql_type {
        SqlType::Bool => plain,
        SqlType::Int2
        | SqlType::Int4
        | SqlType::Int8
        | SqlType::Date
        | SqlType::Time
        | SqlType::Timestamp
        | SqlType::TimestampTz
        | SqlType::Oid
        | SqlType::Regclass
        | SqlType::Regtype
        | SqlType::Regproc
        | SqlType::Regnamespace
        | SqlType::Regrole
        | SqlType::Regprocedure
        | SqlType::Regoperator
        | SqlType::Numeric { precision: ..=18, .. } => ColumnEncoding {
            // Deltas of ordered numbers take fewer bits than dictionary indices.
            dictionary: !seen.ascending && repeats(NUMBER_REPEATS_MIN),
            encoding: Encoding::DELTA_BINARY_PACKED,
            ..plain
        },
        SqlType::Float4 | SqlType::Float8 => {
            ColumnEncoding { dictionary: repeats(NUMBER_REPEATS_MIN), page_bounds: false, ..plain }
        }
        SqlType::Uuid => plain,
        SqlType::Numeric { .. } | SqlType::Interval => {
            let dictionary = repeats(NUMBER_REPEATS_MIN);
            // Most of the sixteen bytes are the same in all values.
            ColumnEncoding { dictionary, compressed: !dictionary, page_bounds: *sql_type != SqlType::Interval, ..plain }
        }
        SqlType::Text
        | SqlType::Varchar(_)
        | SqlType::Char(_)
        | SqlType::Json
        | SqlType::Jsonb
        | SqlType::Bytea
        | SqlType::Name
        | SqlType::InternalChar
        | SqlType::Unknown => {
            let dictionary = repeats(TEXT_REPEATS_MIN);
            ColumnEncoding {
                dictionary,
                compressed: !dictionary || UNCOMPRESSED_DICTIONARY_BYTES_MAX < seen.distinct,
                page_bounds: !matches!(sql_type, SqlType::Json | SqlType::Jsonb),
                ..plain
            }
        }
        // It is unknown how often elements repeat.
        SqlType::Array(_) | SqlType::Int2Vector | SqlType::OidVector => ColumnEncoding {
            dictionary: DICTIONARY_ROWS_MIN <= seen.rows,
            compressed: true,
            page_bounds: false,
            ..plain
        },
    }
}
