//! Errors of running fragments, as readers get them.

use datafusion::common::DataFusionError;
use functions::error::{from_datafusion, to_datafusion};
use types::SqlError;

/// Reason why a fragment ends before its last row. Its operators are not run instead: the reader gets the error.
#[derive(Debug)]
pub(super) enum RunError {
    /// The reader wants no more rows.
    Stopped,
    Failed(DataFusionError),
}

impl RunError {
    /// Converts it to an error of the engine.
    pub(super) fn into_engine_error(self) -> engine::Error {
        match self {
            Self::Stopped => engine::Error::Stopped,
            Self::Failed(error) => from_datafusion(error).into(),
        }
    }
}

impl From<engine::Error> for RunError {
    fn from(error: engine::Error) -> Self {
        Self::Failed(match error {
            engine::Error::Stopped | engine::Error::LimitReached => return Self::Stopped,
            engine::Error::OutOfMemory(what) => {
                DataFusionError::ResourcesExhausted(format!("No memory left for {what}"))
            }
            engine::Error::Sql(error) => to_datafusion(*error),
            engine::Error::Arrow(error) => DataFusionError::ArrowError(Box::new(error), None),
            fault @ (engine::Error::UncomputableValue(_) | engine::Error::Internal(_)) => {
                let error = SqlError::internal(fault.to_string());
                to_datafusion(error.with_hint("SET kiln.engine = off runs the query without the engine."))
            }
        })
    }
}

impl From<DataFusionError> for RunError {
    fn from(error: DataFusionError) -> Self {
        Self::Failed(error)
    }
}
