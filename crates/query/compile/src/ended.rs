//! Ends of a program that has not given its rows.

use datafusion::common::DataFusionError;
use functions::error::to_datafusion;
use types::{Condition, SqlError};

use crate::spill::SpillFailed;

/// The end of a program that has not ended well.
pub(super) enum Ended {
    /// The engine does not decide.
    Undecided(engine::Error),
    /// An operator or source outside the program has failed.
    Failed(DataFusionError),
}

impl From<engine::Error> for Ended {
    fn from(error: engine::Error) -> Self {
        match error {
            engine::Error::Foreign(found) => match found.downcast::<SpillFailed>() {
                Ok(failed) => Self::Failed(failed.0),
                Err(found) => match refusal(found.as_ref()) {
                    Some(error) => Self::Failed(to_datafusion(error.clone())),
                    None => Self::Undecided(engine::Error::Foreign(found)),
                },
            },
            other => Self::Undecided(other),
        }
    }
}

/// The refusal to make more values, if it is one: operators would make the same, many of them without asking.
fn refusal<'a>(found: &'a (dyn std::error::Error + Send + Sync + 'static)) -> Option<&'a SqlError> {
    let error = found.downcast_ref::<SqlError>().or_else(|| {
        let DataFusionError::External(inner) = found.downcast_ref::<DataFusionError>()?.find_root() else {
            return None;
        };
        inner.downcast_ref::<SqlError>()
    })?;
    matches!(error.condition, Condition::OutOfMemory | Condition::QueryCanceled).then_some(error)
}
