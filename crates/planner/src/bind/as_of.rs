//! AS OF: relations as they were.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{Expr, TableVersion, Value};
use types::text::parse_timestamptz_in;
use types::{CommitTs, Condition, Moment, SqlError, SqlResult};

use crate::StatementContext;
use crate::past::Pin;

/// The moment that is written; a time without a zone is the session's.
pub(crate) fn moment(context: &StatementContext, written: &TableVersion) -> SqlResult<Moment> {
    match written {
        TableVersion::TimestampAsOf(Expr::Value(time)) => match &time.value {
            Value::SingleQuotedString(text) => {
                let dates = context.settings.date_context(context.transaction_us);
                match parse_timestamptz_in(text, &dates)? {
                    i64::MIN | i64::MAX => {
                        Err(SqlError::new(Condition::InvalidParameterValue, "AS OF needs a finite timestamp"))
                    }
                    us => Ok(Moment::Time(us)),
                }
            }
            _ => Err(SqlError::internal("AS OF TIMESTAMP has a text")),
        },
        TableVersion::VersionAsOf(Expr::Value(number)) => match &number.value {
            Value::Number(digits, _) => match digits.to_string().parse() {
                Ok(commit) => Ok(Moment::Commit(CommitTs(commit))),
                Err(_) => {
                    let message = format!("snapshot number \"{digits}\" is out of range");
                    Err(SqlError::new(Condition::NumericValueOutOfRange, message))
                }
            },
            _ => Err(SqlError::internal("AS OF SNAPSHOT has a number")),
        },
        other => Err(SqlError::unsupported(format_args!("{other}"))),
    }
}

/// The statement as it would be at the moment: names mean what they meant then. With what keeps the objects of then.
pub(crate) fn at(context: &StatementContext, moment: Moment) -> SqlResult<(Arc<StatementContext>, Pin)> {
    let past = context.past.state(moment);
    let past = past.ok_or_else(|| SqlError::internal("the state of an earlier moment is not at hand"))?;
    Ok((Arc::new(StatementContext { snapshot: past.state, ..context.clone() }), past.pin))
}
