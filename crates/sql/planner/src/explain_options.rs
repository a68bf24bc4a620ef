//! Options of EXPLAIN.

use binder::{ExplainFormat, ExplainPlan, StatementPlan};
use settings::parse_bool;
use syntax::statement::StatementOption;
use types::{Condition, SqlError, SqlResult};

#[cfg(test)]
mod tests;

/// Builds the plan of an EXPLAIN of `inner` from its options.
///
/// # Errors
/// `42601` for an unknown option or an invalid value, `22023` for options that contradict each other, `0A000` for
/// options that Kiln does not support.
pub(crate) fn plan_explain(options: &[StatementOption], inner: StatementPlan) -> SqlResult<ExplainPlan> {
    let is_explained = matches!(
        inner,
        StatementPlan::Query(_)
            | StatementPlan::Write(_)
            | StatementPlan::Modify(_)
            | StatementPlan::CopyFrom(_)
            | StatementPlan::CopyTo(_)
    );
    if !is_explained {
        return Err(SqlError::unsupported("EXPLAIN of this statement"));
    }
    let (mut analyze, mut verbose, mut costs) = (false, false, true);
    let (mut timing, mut summary) = (None, None);
    let mut format = ExplainFormat::Text;
    for option in options {
        let name = option.name.value.as_str();
        match name {
            "analyze" | "analyse" => analyze = parse_switch(option)?,
            "verbose" => verbose = parse_switch(option)?,
            "costs" => costs = parse_switch(option)?,
            "timing" => timing = Some(parse_switch(option)?),
            "summary" => summary = Some(parse_switch(option)?),
            "format" => format = parse_format(option)?,
            "buffers" | "wal" | "settings" | "generic_plan" | "memory" | "serialize" => {
                if option.value.is_none() || parse_switch(option).unwrap_or(true) {
                    return Err(SqlError::unsupported(format_args!("EXPLAIN option {}", name.to_uppercase())));
                }
            }
            unknown => {
                let message = format!("unrecognized EXPLAIN option \"{unknown}\"");
                return Err(SqlError::new(Condition::SyntaxError, message));
            }
        }
    }
    if timing == Some(true) && !analyze {
        let message = "EXPLAIN option TIMING requires ANALYZE";
        return Err(SqlError::new(Condition::InvalidParameterValue, message));
    }
    Ok(ExplainPlan {
        inner: Box::new(inner),
        analyze,
        verbose,
        costs,
        timing: timing.unwrap_or(analyze),
        summary: summary.unwrap_or(analyze),
        format,
    })
}

/// Reads a Boolean option; without a value it is on.
fn parse_switch(option: &StatementOption) -> SqlResult<bool> {
    let Some(value) = &option.value else { return Ok(true) };
    value
        .text()
        .and_then(parse_bool)
        .ok_or_else(|| SqlError::new(Condition::SyntaxError, format!("{} requires a Boolean value", option.name.value)))
}

fn parse_format(option: &StatementOption) -> SqlResult<ExplainFormat> {
    let value = option
        .value
        .as_ref()
        .and_then(|value| value.text())
        .ok_or_else(|| SqlError::new(Condition::SyntaxError, "format requires a parameter"))?;
    match value.to_ascii_lowercase().as_str() {
        "text" => Ok(ExplainFormat::Text),
        "json" => Ok(ExplainFormat::Json),
        "xml" | "yaml" => Err(SqlError::unsupported(format_args!("EXPLAIN format {}", value.to_uppercase()))),
        _ => Err(SqlError::new(
            Condition::InvalidParameterValue,
            format!("unrecognized value for EXPLAIN option \"format\": \"{value}\""),
        )),
    }
}
