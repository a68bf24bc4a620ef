//! Options of sequences, applied and checked as in PostgreSQL's `init_params`.

use catalog::Sequence;
use session_context::StatementContext;
use syntax::sql_type;
use syntax::statement::SequenceOption;
use types::{Condition, Oid, SqlError, SqlResult, SqlType};

/// Kind of a sequence, by its creator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SequenceUse {
    Plain,
    Identity,
}

/// Builds a sequence with these options, without name, schema and owner.
pub(super) fn new_sequence(oid: Oid, options: &[SequenceOption], usage: SequenceUse) -> SqlResult<Sequence> {
    let options = UniqueOptions::collect(options, usage)?;
    let sql_type = options.sql_type.clone().unwrap_or(SqlType::Int8);
    let increment = options.increment()?.unwrap_or(1);
    let (min, max) = default_limits(&sql_type, increment);
    let mut sequence = Sequence {
        oid,
        schema: Oid::default(),
        name: String::new(),
        owner: Oid::default(),
        sql_type,
        start: 0,
        increment,
        min: options.min.flatten().unwrap_or(min),
        max: options.max.flatten().unwrap_or(max),
        cache: options.cache.unwrap_or(1),
        cycle: options.cycle.unwrap_or(false),
        owned_by: None,
        counter: oid,
        begins: 0,
        comment: None,
    };
    check_limits(&sequence)?;
    sequence.start = options.start.unwrap_or(if increment > 0 { sequence.min } else { sequence.max });
    check_within(&sequence, "START", sequence.start)?;
    sequence.begins = options.restart.flatten().unwrap_or(sequence.start);
    check_within(&sequence, "RESTART", sequence.begins)?;
    check_cache(&sequence)?;
    Ok(sequence)
}

/// Applies changed options to a sequence.
pub(super) fn apply_options(
    context: &StatementContext,
    old: &Sequence,
    options: &[SequenceOption],
    usage: SequenceUse,
) -> SqlResult<Sequence> {
    let options = UniqueOptions::collect(options, usage)?;
    let mut sequence = old.clone();
    sequence.increment = options.increment()?.unwrap_or(old.increment);
    sequence.sql_type = options.sql_type.clone().unwrap_or_else(|| old.sql_type.clone());
    let (min, max) = default_limits(&sequence.sql_type, sequence.increment);
    // A limit equal to the old type's range is replaced by that of the new type.
    let (type_min, type_max) = type_range(&old.sql_type);
    let is_retyped = sequence.sql_type != old.sql_type;
    sequence.max = match options.max {
        Some(given) => given.unwrap_or(max),
        None if is_retyped && old.max == type_max => max,
        None => old.max,
    };
    sequence.min = match options.min {
        Some(given) => given.unwrap_or(min),
        None if is_retyped && old.min == type_min => min,
        None => old.min,
    };
    sequence.cycle = options.cycle.unwrap_or(old.cycle);
    sequence.cache = options.cache.unwrap_or(old.cache);
    check_limits(&sequence)?;
    sequence.start = options.start.unwrap_or(old.start);
    check_within(&sequence, "START", sequence.start)?;
    match options.restart {
        Some(at) => {
            sequence.begins = at.unwrap_or(sequence.start);
            sequence.counter = (context.new_oid)();
            check_within(&sequence, "RESTART", sequence.begins)?;
        }
        None => {
            check_within(&sequence, "RESTART", context.sequences.position(old).last_value)?;
            // The start of the counter may lie outside the new limits; nothing reads it any more.
            sequence.begins = sequence.begins.clamp(sequence.min, sequence.max);
        }
    }
    check_cache(&sequence)?;
    Ok(sequence)
}

/// Options of a statement, each at most once.
#[derive(Debug, Default)]
struct UniqueOptions {
    sql_type: Option<SqlType>,
    increment: Option<i64>,
    min: Option<Option<i64>>,
    max: Option<Option<i64>>,
    start: Option<i64>,
    restart: Option<Option<i64>>,
    cache: Option<i64>,
    cycle: Option<bool>,
}

impl UniqueOptions {
    fn collect(written: &[SequenceOption], of: SequenceUse) -> SqlResult<Self> {
        let mut options = Self::default();
        let (mut owners, mut names) = (0, 0);
        for option in written {
            let is_duplicate = match option {
                SequenceOption::As(data_type) => {
                    let sql_type = sql_type(data_type)?;
                    refuse_non_integer_type(&sql_type, of)?;
                    options.sql_type.replace(sql_type).is_some()
                }
                SequenceOption::Increment(by) => options.increment.replace(*by).is_some(),
                SequenceOption::Min(min) => options.min.replace(*min).is_some(),
                SequenceOption::Max(max) => options.max.replace(*max).is_some(),
                SequenceOption::Start(at) => options.start.replace(*at).is_some(),
                SequenceOption::Restart(at) => options.restart.replace(*at).is_some(),
                SequenceOption::Cache(count) => options.cache.replace(*count).is_some(),
                SequenceOption::Cycle(cycle) => options.cycle.replace(*cycle).is_some(),
                SequenceOption::OwnedBy(_) => {
                    owners += 1;
                    owners > 1
                }
                SequenceOption::SequenceName(_) if of == SequenceUse::Plain => {
                    return Err(SqlError::new(Condition::SyntaxError, "invalid sequence option SEQUENCE NAME"));
                }
                SequenceOption::SequenceName(_) => {
                    names += 1;
                    names > 1
                }
            };
            if is_duplicate {
                return Err(SqlError::new(Condition::SyntaxError, "conflicting or redundant options"));
            }
        }
        Ok(options)
    }

    fn increment(&self) -> SqlResult<Option<i64>> {
        if self.increment == Some(0) {
            Err(invalid_parameter_error("INCREMENT must not be zero"))
        } else {
            Ok(self.increment)
        }
    }
}

/// Checks that the type is an integer type (`22023`).
pub(super) fn refuse_non_integer_type(sql_type: &SqlType, of: SequenceUse) -> SqlResult<()> {
    if matches!(sql_type, SqlType::Int2 | SqlType::Int4 | SqlType::Int8) {
        return Ok(());
    }
    let what = match of {
        SequenceUse::Plain => "sequence type",
        SequenceUse::Identity => "identity column type",
    };
    Err(invalid_parameter_error(format!("{what} must be smallint, integer, or bigint")))
}

/// Returns the minimum and maximum value of an integer type.
fn type_range(sql_type: &SqlType) -> (i64, i64) {
    match sql_type {
        SqlType::Int2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        SqlType::Int4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    }
}

fn default_limits(sql_type: &SqlType, increment: i64) -> (i64, i64) {
    let (min, max) = type_range(sql_type);
    if increment > 0 { (1, max) } else { (min, -1) }
}

fn check_limits(sequence: &Sequence) -> SqlResult<()> {
    let (min, max) = type_range(&sequence.sql_type);
    for (word, limit) in [("MAXVALUE", sequence.max), ("MINVALUE", sequence.min)] {
        if !(min..=max).contains(&limit) {
            let sql_type = &sequence.sql_type;
            return Err(invalid_parameter_error(format!(
                "{word} ({limit}) is out of range for sequence data type {sql_type}"
            )));
        }
    }
    if sequence.min >= sequence.max {
        let message = format!("MINVALUE ({}) must be less than MAXVALUE ({})", sequence.min, sequence.max);
        return Err(invalid_parameter_error(message));
    }
    Ok(())
}

fn check_within(sequence: &Sequence, word: &str, value: i64) -> SqlResult<()> {
    if value < sequence.min {
        return Err(invalid_parameter_error(format!(
            "{word} value ({value}) cannot be less than MINVALUE ({})",
            sequence.min
        )));
    }
    if value > sequence.max {
        return Err(invalid_parameter_error(format!(
            "{word} value ({value}) cannot be greater than MAXVALUE ({})",
            sequence.max
        )));
    }
    Ok(())
}

fn check_cache(sequence: &Sequence) -> SqlResult<()> {
    if sequence.cache > 0 {
        return Ok(());
    }
    Err(invalid_parameter_error(format!("CACHE ({}) must be greater than zero", sequence.cache)))
}

fn invalid_parameter_error(message: impl Into<String>) -> SqlError {
    SqlError::new(Condition::InvalidParameterValue, message)
}
