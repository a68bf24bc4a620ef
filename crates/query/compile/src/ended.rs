//! Ends of a program that has not given all its rows.

use datafusion::common::DataFusionError;
use functions::error::{from_datafusion, to_datafusion};
use types::SqlError;

/// The end of a program that has not ended well. What it stands for is not run again: its reader learns what has happened.
#[derive(Debug)]
pub(super) enum Ended {
    /// Nobody wants its rows.
    Stopped,
    Failed(DataFusionError),
}

impl Ended {
    /// The same for a worker, whose steps end with it.
    pub(super) fn of_worker(self) -> engine::Error {
        match self {
            Self::Stopped => engine::Error::Stopped,
            Self::Failed(error) => from_datafusion(error).into(),
        }
    }
}

impl From<engine::Error> for Ended {
    fn from(error: engine::Error) -> Self {
        Self::Failed(match error {
            engine::Error::Stopped | engine::Error::Enough => return Self::Stopped,
            engine::Error::Memory(what) => DataFusionError::ResourcesExhausted(format!("No memory left for {what}")),
            engine::Error::Sql(error) => to_datafusion(*error),
            engine::Error::Arrow(error) => DataFusionError::ArrowError(Box::new(error), None),
            fault @ (engine::Error::Value(_) | engine::Error::Form(_)) => {
                let error = SqlError::internal(fault.to_string());
                to_datafusion(error.with_hint("SET kiln.engine = off runs the query by operators alone."))
            }
        })
    }
}

impl From<DataFusionError> for Ended {
    fn from(error: DataFusionError) -> Self {
        Self::Failed(error)
    }
}
