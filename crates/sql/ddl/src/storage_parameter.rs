//! `WITH (…)` of tables and indexes: Kiln's own parameters `storage` and `cache`, and PostgreSQL's, which are
//! validated, stored and displayed but have no effect.

use catalog::{Storage, Table};
use syntax::statement::{OptionValue, StatementOption};
use types::{CachePolicy, Condition, SqlError, SqlResult};

/// Range of values of a parameter.
enum ValueRange {
    Bool,
    Integer(i64, i64),
    Real(f64, f64),
    OneOf(&'static [&'static str]),
}

use ValueRange::{Bool, Integer, OneOf, Real};

const INDEX_PARAMETERS: &[(&str, ValueRange)] = &[("fillfactor", Integer(10, 100)), ("deduplicate_items", Bool)];

const TABLE_PARAMETERS: &[(&str, ValueRange)] = &[
    ("fillfactor", Integer(10, 100)),
    ("parallel_workers", Integer(0, 1024)),
    ("toast_tuple_target", Integer(128, 8160)),
    ("user_catalog_table", Bool),
];

/// Parameters of autovacuum, which can also be set for a table's TOAST table: `toast.…`.
const AUTOVACUUM_PARAMETERS: &[(&str, ValueRange)] = &[
    ("autovacuum_enabled", Bool),
    ("autovacuum_analyze_scale_factor", Real(0.0, 100.0)),
    ("autovacuum_analyze_threshold", Integer(0, INT_MAX)),
    ("autovacuum_freeze_max_age", Integer(100_000, 2_000_000_000)),
    ("autovacuum_freeze_min_age", Integer(0, 1_000_000_000)),
    ("autovacuum_freeze_table_age", Integer(0, 2_000_000_000)),
    ("autovacuum_multixact_freeze_max_age", Integer(10_000, 2_000_000_000)),
    ("autovacuum_multixact_freeze_min_age", Integer(0, 1_000_000_000)),
    ("autovacuum_multixact_freeze_table_age", Integer(0, 2_000_000_000)),
    ("autovacuum_vacuum_cost_delay", Real(0.0, 100.0)),
    ("autovacuum_vacuum_cost_limit", Integer(1, 10_000)),
    ("autovacuum_vacuum_insert_scale_factor", Real(0.0, 100.0)),
    ("autovacuum_vacuum_insert_threshold", Integer(-1, INT_MAX)),
    ("autovacuum_vacuum_scale_factor", Real(0.0, 100.0)),
    ("autovacuum_vacuum_threshold", Integer(0, INT_MAX)),
    ("log_autovacuum_min_duration", Integer(-1, INT_MAX)),
    ("vacuum_index_cleanup", OneOf(&["auto", "on", "off", "true", "false", "yes", "no", "1", "0"])),
    ("vacuum_truncate", Bool),
];

const INT_MAX: i64 = i32::MAX as i64;

/// Applies the parameters of a new table: storage and cache policy, and the others as `name=value`.
///
/// # Errors
/// `22023` for an unknown or duplicate parameter and for an invalid value.
pub(crate) fn apply_to_table(table: &mut Table, written: &[StatementOption]) -> SqlResult<()> {
    refuse_duplicates(written)?;
    for parameter in written {
        match parameter.name.value.as_str() {
            "storage" => table.storage = storage(parameter)?,
            "cache" => table.cache = cache(parameter)?,
            _ => table.options.extend(table_option(parameter)?),
        }
    }
    Ok(())
}

fn storage(parameter: &StatementOption) -> SqlResult<Storage> {
    match value_text(parameter).to_lowercase().as_str() {
        "hybrid" => Ok(Storage::Hybrid),
        "column" => Ok(Storage::Column),
        "row" => Ok(Storage::Row),
        other => Err(invalid_enum_value("storage", other, "\"hybrid\", \"column\", and \"row\"")),
    }
}

fn cache(parameter: &StatementOption) -> SqlResult<CachePolicy> {
    let word = value_text(parameter).to_lowercase();
    CachePolicy::from_name(&word)
        .ok_or_else(|| invalid_enum_value("cache", &word, "\"pin\", \"normal\", and \"never\""))
}

fn invalid_enum_value(name: &str, word: &str, words: &str) -> SqlError {
    invalid_parameter_error(format!("invalid value for enum option \"{name}\": {word}"))
        .with_detail(format!("Valid values are {words}."))
}

/// Checks the parameters of an index and returns them as `name=value`.
///
/// # Errors
/// The errors of [`apply_to_table`].
pub(super) fn index_options(written: &[StatementOption]) -> SqlResult<Vec<String>> {
    refuse_duplicates(written)?;
    written.iter().map(|parameter| check_parameter(parameter, &parameter.name.value, &[INDEX_PARAMETERS])).collect()
}

/// Applies the parameters of ALTER TABLE … SET.
///
/// # Errors
/// The errors of [`apply_to_table`]; `0A000` for `storage`.
pub(super) fn set_parameters(table: &mut Table, written: &[StatementOption]) -> SqlResult<()> {
    refuse_duplicates(written)?;
    let options = &mut table.options;
    for parameter in written {
        refuse_storage(parameter)?;
        if parameter.name.value == "cache" {
            table.cache = cache(parameter)?;
            continue;
        }
        let Some(option) = table_option(parameter)? else { continue };
        match options.iter_mut().find(|known| option_name(known) == parameter.name.value) {
            Some(known) => *known = option,
            None => options.push(option),
        }
    }
    Ok(())
}

/// Applies ALTER TABLE … RESET; unknown parameters are ignored.
///
/// # Errors
/// `42601` for a parameter with a value, `0A000` for `storage`.
pub(super) fn reset_parameters(table: &mut Table, written: &[StatementOption]) -> SqlResult<()> {
    for parameter in written {
        refuse_storage(parameter)?;
        if parameter.value.is_some() {
            return Err(SqlError::new(Condition::SyntaxError, "RESET must not include values for parameters"));
        }
        if parameter.name.value == "cache" {
            table.cache = CachePolicy::default();
        }
        table.options.retain(|known| option_name(known) != parameter.name.value);
    }
    Ok(())
}

fn refuse_storage(parameter: &StatementOption) -> SqlResult<()> {
    if parameter.name.value != "storage" {
        return Ok(());
    }
    Err(SqlError::unsupported("changing the storage of an existing table")
        .with_hint("Make a new table with CREATE TABLE AS and rename it."))
}

fn option_name(option: &str) -> &str {
    option.split('=').next().unwrap_or(option)
}

/// Checks a table's parameter; `None` for one of its TOAST table, where PostgreSQL displays it.
fn table_option(parameter: &StatementOption) -> SqlResult<Option<String>> {
    let name = parameter.name.value.as_str();
    match name.split_once('.') {
        Some(("toast", name)) => check_parameter(parameter, name, &[AUTOVACUUM_PARAMETERS]).map(|_| None),
        Some((space, _)) => Err(invalid_parameter_error(format!("unrecognized parameter namespace \"{space}\""))),
        None => check_parameter(parameter, name, &[TABLE_PARAMETERS, AUTOVACUUM_PARAMETERS]).map(Some),
    }
}

fn refuse_duplicates(written: &[StatementOption]) -> SqlResult<()> {
    let names: Vec<&str> = written.iter().map(|parameter| parameter.name.value.as_str()).collect();
    match (1..names.len()).find(|&at| names[..at].contains(&names[at])) {
        Some(at) => Err(invalid_parameter_error(format!("parameter \"{}\" specified more than once", names[at]))),
        None => Ok(()),
    }
}

/// Checks the value against the parameter lists in `known` and returns `name=value`.
fn check_parameter(parameter: &StatementOption, name: &str, known: &[&[(&str, ValueRange)]]) -> SqlResult<String> {
    let (_, values) = known
        .iter()
        .flat_map(|list| list.iter())
        .find(|(known, _)| *known == name)
        .ok_or_else(|| invalid_parameter_error(format!("unrecognized parameter \"{name}\"")))?;
    let text = value_text(parameter);
    let wrong = |kind: &str| invalid_parameter_error(format!("invalid value for {kind} option \"{name}\": {text}"));
    let bounds = |is_within: bool, least: String, most: String| {
        if is_within {
            return Ok(());
        }
        Err(invalid_parameter_error(format!("value {text} out of bounds for option \"{name}\""))
            .with_detail(format!("Valid values are between \"{least}\" and \"{most}\".")))
    };
    match values {
        Bool => {
            types::text::parse_bool(&text).map_err(|_| wrong("boolean"))?;
        }
        Integer(least, most) => {
            let value: i64 = text.parse().map_err(|_| wrong("integer"))?;
            bounds((*least..=*most).contains(&value), least.to_string(), most.to_string())?;
        }
        Real(least, most) => {
            let value: f64 = text.parse().map_err(|_| wrong("floating point"))?;
            bounds((*least..=*most).contains(&value), format!("{least:.6}"), format!("{most:.6}"))?;
        }
        OneOf(words) => {
            if !words.contains(&text.to_lowercase().as_str()) {
                return Err(invalid_parameter_error(format!("invalid value for enum option \"{name}\": {text}"))
                    .with_detail("Valid values are \"on\", \"off\", and \"auto\"."));
            }
        }
    }
    Ok(format!("{}={text}", parameter.name.value))
}

/// Returns the value as PostgreSQL stores it; a parameter without a value is true.
fn value_text(parameter: &StatementOption) -> String {
    let value = parameter.value.as_ref().map(|value| value.text().unwrap_or("*"));
    let is_word = matches!(parameter.value, Some(OptionValue::Word(_)));
    let value = value.unwrap_or("true");
    if is_word { value.to_lowercase() } else { value.to_owned() }
}

fn invalid_parameter_error(message: String) -> SqlError {
    SqlError::new(Condition::InvalidParameterValue, message)
}
