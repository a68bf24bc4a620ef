//! `pg_sleep`, the only asynchronous function: it releases its thread while it waits, and cancelling the statement
//! drops it.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Float64Type};
use async_trait::async_trait;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::async_udf::{AsyncScalarUDF, AsyncScalarUDFImpl};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use types::Clock;

/// Maximum duration of a sleep in seconds: one year.
const SLEEP_SECONDS_MAX: f64 = 366.0 * 86_400.0;

/// Builds `pg_sleep(seconds)` on `clock`, which sleeps once for each row. It returns empty text, as clients display the
/// `void` of PostgreSQL's function.
pub(super) fn pg_sleep(clock: &Arc<dyn Clock>) -> Arc<ScalarUDF> {
    let sleep = Sleep { signature: Signature::any(1, Volatility::Volatile), clock: Arc::clone(clock) };
    Arc::new(AsyncScalarUDF::new(Arc::new(sleep)).into_scalar_udf())
}

#[derive(Debug)]
struct Sleep {
    signature: Signature,
    clock: Arc<dyn Clock>,
}

/// All instances in one plan have the statement's clock.
impl PartialEq for Sleep {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Sleep {}

impl std::hash::Hash for Sleep {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl ScalarUDFImpl for Sleep {
    fn name(&self) -> &str {
        "pg_sleep"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        datafusion::common::internal_err!("pg_sleep was invoked synchronously")
    }
}

#[async_trait]
impl AsyncScalarUDFImpl for Sleep {
    async fn invoke_async_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let seconds = args.args[0].cast_to(&DataType::Float64, None)?.into_array(args.number_rows)?;
        for seconds in seconds.as_primitive::<Float64Type>().iter().flatten() {
            self.clock.sleep(duration_of(seconds)).await;
        }
        let slept = |row| (!seconds.is_null(row)).then_some("");
        let values: arrow::array::StringViewArray = (0..seconds.len()).map(slept).collect();
        match seconds.len() {
            1 => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?)),
            _ => Ok(ColumnarValue::Array(Arc::new(values))),
        }
    }
}

/// Converts seconds to a duration; negative numbers and NaN become zero.
fn duration_of(seconds: f64) -> Duration {
    let seconds = if seconds.is_nan() { 0.0 } else { seconds.clamp(0.0, SLEEP_SECONDS_MAX) };
    Duration::from_secs_f64(seconds)
}
