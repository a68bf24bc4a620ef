//! Expressions as plain data where DataFusion's message is incomplete: it drops the metadata of fields, by which jsonb,
//! json and char(n) are recognized.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::compute::CastOptions;
use arrow::datatypes::{Field, FieldRef, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::format::DEFAULT_CAST_OPTIONS;
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::{Result as DfResult, ScalarValue};
use datafusion::physical_expr::expressions::{CastExpr, Literal, TryCastExpr};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion_proto::protobuf;
use functions::function_codec::SerializedScalar;
use plan::cancellation::is_wrapped;
use prost::Message;
use serde::{Deserialize, Serialize};

use super::{EncodedMessage, RecordError, decode_message, malformed_error, unportable_error};

/// Encoded form of an expression, without its inputs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ExpressionRecord {
    /// Condition that measures its cost and selectivity, encoded as the plain condition: the receiver adds the
    /// measuring again.
    Watched,
    /// Cast with a target field or options that DataFusion's message drops.
    Cast {
        field: EncodedMessage,
        /// True if the field describes the result completely, false if only its type counts.
        is_field: bool,
        /// True if values that cannot be cast become NULL.
        is_safe: bool,
    },
    TryCast {
        field: EncodedMessage,
    },
    Literal {
        value: EncodedMessage,
        metadata: BTreeMap<String, String>,
    },
    Function {
        function: SerializedScalar,
        field: EncodedMessage,
    },
}

impl ExpressionRecord {
    /// Returns the encoded form of an expression; `None` if DataFusion's message is complete.
    pub(super) fn from_expression(expr: &Arc<dyn PhysicalExpr>) -> DfResult<Option<Self>> {
        if is_wrapped(expr) {
            return Ok(Some(Self::Watched));
        }
        if let Some(cast) = expr.downcast_ref::<CastExpr>() {
            let options = cast.cast_options();
            if options.format_options != DEFAULT_CAST_OPTIONS.format_options {
                return Err(malformed_error(&format!(
                    "{expr} cannot be sent to another process: it has format options"
                ))
                .into());
            }
            let (is_field, is_safe) = (cast.has_explicit_metadata(), options.safe);
            let is_plain = !is_field && !is_safe;
            return (!is_plain)
                .then(|| Ok(Self::Cast { field: encode_field(cast.target_field())?, is_field, is_safe }))
                .transpose();
        }
        if let Some(cast) = expr.downcast_ref::<TryCastExpr>() {
            let is_plain = cast.target_field().metadata().is_empty();
            return (!is_plain).then(|| Ok(Self::TryCast { field: encode_field(cast.target_field())? })).transpose();
        }
        if let Some(literal) = expr.downcast_ref::<Literal>() {
            let metadata = literal.return_field(&Schema::empty())?.metadata().clone();
            if metadata.is_empty() {
                return Ok(None);
            }
            let value = protobuf::ScalarValue::try_from(literal.value())
                .map_err(|error| malformed_error(&error.to_string()))?;
            return Ok(Some(Self::Literal { value: value.encode_to_vec(), metadata: metadata.into_iter().collect() }));
        }
        if let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>() {
            let result = call.return_field(&Schema::empty())?;
            let function = SerializedScalar::encode(call.fun()).ok_or_else(|| unportable_error(call.fun().name()))?;
            return Ok(Some(Self::Function { function, field: encode_field(&result)? }));
        }
        Ok(None)
    }

    /// Returns the expression over its inputs; functions get the receiver's options.
    pub(super) fn into_expression(
        self,
        mut inputs: Vec<Arc<dyn PhysicalExpr>>,
        options: &Arc<ConfigOptions>,
    ) -> DfResult<Arc<dyn PhysicalExpr>> {
        if let Self::Function { function, field } = self {
            let (field, unknown) = (decode_field(&field)?, || malformed_error("no function has the encoded form"));
            let function = function.decode().ok_or_else(unknown)?;
            let name = function.name().to_owned();
            return Ok(Arc::new(ScalarFunctionExpr::new(&name, function, inputs, field, Arc::clone(options))));
        }
        if let Self::Literal { value, metadata } = self {
            let value: protobuf::ScalarValue = decode_message(&value)?;
            let value = ScalarValue::try_from(&value).map_err(|error| malformed_error(&error.to_string()))?;
            return Ok(Arc::new(Literal::new_with_metadata(value, Some(FieldMetadata::from(metadata)))));
        }
        let (Some(input), true) = (inputs.pop(), inputs.is_empty()) else {
            return Err(malformed_error("an encoded expression has the wrong number of inputs").into());
        };
        Ok(match self {
            Self::Cast { field, is_field, is_safe } => {
                let (field, options) = (decode_field(&field)?, CastOptions { safe: is_safe, ..DEFAULT_CAST_OPTIONS });
                if is_field {
                    Arc::new(CastExpr::new_with_target_field(input, field, Some(options)))
                } else {
                    Arc::new(CastExpr::new(input, field.data_type().clone(), Some(options)))
                }
            }
            Self::TryCast { field } => Arc::new(TryCastExpr::new_with_target_field(input, decode_field(&field)?)),
            Self::Watched | Self::Literal { .. } | Self::Function { .. } => input,
        })
    }
}

fn encode_field(field: &Field) -> Result<EncodedMessage, RecordError> {
    let field = protobuf::Field::try_from(field).map_err(|error| malformed_error(&error.to_string()))?;
    Ok(field.encode_to_vec())
}

fn decode_field(bytes: &EncodedMessage) -> Result<FieldRef, RecordError> {
    let field: protobuf::Field = decode_message(bytes)?;
    let field = Field::try_from(&field).map_err(|error| malformed_error(&error.to_string()))?;
    Ok(Arc::new(field))
}
