//! `docs/reference/types.md`: every SQL type with its names, limits, literals and form in Parquet files.

use generated_docs::{check_page, inline_code, markdown_table};
use parquet::schema::printer::print_schema;
use types::SqlType;

use super::{INT32_DIGITS, INT64_DIGITS, node};

const INTRODUCTION: &str = "\
Types have PostgreSQL's names, OIDs and text forms. Every type of the first table can be the type of a column, and so can an array of it.

- A type that is not on this page fails with `0A000` if PostgreSQL has it, else with `42704`.
- `serial`, `bigserial` and `smallserial` are not types: they are `integer`, `bigint` and `smallint` with a sequence.
- How each type differs from PostgreSQL's is in [postgresql-differences.md](postgresql-differences.md#types).";

const PARQUET: &str = "\
The last column is the type in Parquet files that Kiln writes, in the notation of Parquet's schemas. A column that may be NULL is `OPTIONAL`, any other
`REQUIRED`. [load-data.md](../guide/load-data.md) says where the files are.";

const ARRAYS: &str = "\
`integer[]`, `integer[3]` and `integer ARRAY` are the same type: arrays have one dimension and no fixed length. Subscripts begin with 1.
A literal is `ARRAY[1, 2, NULL]` or `'{1,2,NULL}'::integer[]`. In Parquet an array is a `LIST` of the form of its elements.";

const SYSTEM: &str = "\
These occur in system views and in casts. A column of a table cannot have them (`0A000`).";

/// Text of the reference that the code does not contain.
struct Description {
    /// Other names that the grammar accepts, besides `pg_type.typname`. A test of the grammar checks them.
    aliases: &'static [&'static str],
    values: String,
    /// A constant, which a test against a server evaluates.
    literal: &'static str,
}

/// Describes a type that columns can have; `None` for a type of system views.
fn describe(sql_type: &SqlType) -> Option<Description> {
    let new = |aliases, values: &str, literal| Some(Description { aliases, values: values.to_owned(), literal });
    match sql_type {
        SqlType::Bool => new(&[], "true, false", "true"),
        SqlType::Int2 => new(&[], &range(i16::MIN, i16::MAX), "smallint '7'"),
        SqlType::Int4 => new(&["int"], &range(i32::MIN, i32::MAX), "7"),
        SqlType::Int8 => new(&[], &range(i64::MIN, i64::MAX), "bigint '7'"),
        // The table has the bare type, whose precision is the largest.
        SqlType::Numeric { precision, scale } => {
            let values = format!(
                "exact numbers of at most {precision} digits; `numeric(p)` has scale 0, bare `numeric` is ({precision},{scale})"
            );
            new(&["decimal", "dec"], &values, "12.50")
        }
        SqlType::Float4 => new(&[], "IEEE 754, 6 digits; `NaN`, `Infinity`", "real '1.5'"),
        SqlType::Float8 => new(&["float"], "IEEE 754, 15 digits; `NaN`, `Infinity`", "1.5e0::float8"),
        SqlType::Text => new(&[], "UTF-8 of less than 1 GB, without the character 0", "'Ghent'::text"),
        SqlType::Varchar(_) => {
            new(&[], "text of at most `n` characters; `varchar` alone has no limit", "varchar 'Ghent'")
        }
        SqlType::Char(_) => new(
            &["char", "nchar"],
            "text of exactly `n` characters, padded with blanks, which comparisons ignore; `char` alone is `char(1)`",
            "'Ghent'::char(8)",
        ),
        SqlType::Date => new(&[], "years 1 to 9999", "date '2026-01-31'"),
        SqlType::Time => new(&[], "00:00:00 to 24:00:00, in microseconds", "time '12:30:00'"),
        SqlType::Timestamp => new(&[], "years 1 to 9999, in microseconds", "timestamp '2026-01-31 12:30:00'"),
        SqlType::TimestampTz => new(
            &[],
            "years 1 to 9999 UTC, in microseconds; read and shown in the zone of the session",
            "timestamptz '2026-01-31 12:30:00+01'",
        ),
        SqlType::Interval => {
            new(&[], "months, days and microseconds, each of its own sign", "interval '1 month 2 days'")
        }
        SqlType::Bytea => new(&[], "bytes, less than 1 GB", r"'\x00ff'::bytea"),
        SqlType::Uuid => new(&[], "128 bits", "uuid '5b30857f-0bfa-48b5-ac0b-5c64e28078d1'"),
        SqlType::Json => new(&[], "JSON as it was written", "json '[1, {\"a\": true}]'"),
        SqlType::Jsonb => new(&[], "JSON without blanks, each key once; numbers as `numeric`", "jsonb '{\"a\": 1}'"),
        SqlType::Array(_)
        | SqlType::Oid
        | SqlType::Name
        | SqlType::InternalChar
        | SqlType::Regclass
        | SqlType::Regtype
        | SqlType::Regproc
        | SqlType::Regnamespace
        | SqlType::Regrole
        | SqlType::Regprocedure
        | SqlType::Regoperator
        | SqlType::Int2Vector
        | SqlType::OidVector
        | SqlType::Unknown => None,
    }
}

fn range(min: impl ToString, max: impl ToString) -> String {
    format!("{} to {}", grouped(&min.to_string()), grouped(&max.to_string()))
}

/// Inserts a comma before every third digit from the right.
fn grouped(number: &str) -> String {
    let (sign, digits) = number.strip_prefix('-').map_or(("", number), |digits| ("-", digits));
    let mut text = sign.to_owned();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats the Parquet type of a column, as `INT64 (TIMESTAMP(MICROS,true))`.
fn parquet_form(sql_type: &SqlType) -> String {
    const NAME: &str = "kiln_column";
    let mut printed = Vec::new();
    print_schema(&mut printed, &node(NAME, sql_type, true, None).expect("a scalar type has a Parquet type"));
    let printed = String::from_utf8(printed).expect("a schema prints as text");
    let form = printed.trim().trim_end_matches(';').replacen("OPTIONAL ", "", 1);
    let words: Vec<&str> = form.split_whitespace().filter(|word| *word != NAME).collect();
    inline_code(&words.join(" "))
}

/// Formats the Parquet types of `numeric`, which depend on the precision.
fn parquet_forms_of_numeric() -> String {
    let form = |precision| parquet_form(&SqlType::Numeric { precision, scale: 2 });
    let larger = INT64_DIGITS + 1;
    format!(
        "up to {INT32_DIGITS} digits {}, up to {INT64_DIGITS} {}, more {}",
        form(INT32_DIGITS),
        form(INT64_DIGITS),
        form(larger)
    )
}

fn size(sql_type: &SqlType) -> String {
    match sql_type.typlen() {
        1 => "1 byte".to_owned(),
        bytes if bytes > 0 => format!("{bytes} bytes"),
        _ => "variable".to_owned(),
    }
}

#[test]
fn the_page_of_types_is_that_of_the_code() {
    let column_types = SqlType::scalars().filter_map(|sql_type| Some((describe(&sql_type)?, sql_type)));
    let rows = column_types.map(|(description, sql_type)| {
        let mut name = sql_type.to_string();
        if matches!(sql_type, SqlType::Varchar(_) | SqlType::Char(_)) {
            name.push_str("(n)");
        } else if matches!(sql_type, SqlType::Numeric { .. }) {
            name.push_str("(p,s)");
        }
        let typname =
            Some(sql_type.typname()).filter(|typname| *typname != sql_type.to_string() && typname != "bpchar");
        let aliases = typname.into_iter().chain(description.aliases.iter().map(|alias| (*alias).to_owned()));
        let is_numeric = matches!(sql_type, SqlType::Numeric { .. });
        let parquet = if is_numeric { parquet_forms_of_numeric() } else { parquet_form(&sql_type) };
        vec![
            inline_code(&name),
            aliases.map(|alias| inline_code(&alias)).collect::<Vec<_>>().join(", "),
            size(&sql_type),
            description.values,
            inline_code(description.literal),
            parquet,
        ]
    });
    let header = ["type", "other names", "size in PostgreSQL's formats", "values", "literal", "in Parquet"];
    let system_types =
        SqlType::scalars().filter(|sql_type| describe(sql_type).is_none() && *sql_type != SqlType::Unknown);
    let page = [
        format!("{INTRODUCTION}\n\n## Types of columns\n\n{PARQUET}\n"),
        markdown_table(&header, rows),
        format!("## Arrays\n\n{ARRAYS}\n"),
        format!("## Types of system views\n\n{SYSTEM}\n"),
        markdown_table(
            &["type", "OID", "size in PostgreSQL's formats"],
            system_types
                .map(|sql_type| vec![inline_code(&sql_type.to_string()), sql_type.oid().to_string(), size(&sql_type)]),
        ),
    ];
    check_page("reference/types.md", "Types", &page.join("\n"));
}
