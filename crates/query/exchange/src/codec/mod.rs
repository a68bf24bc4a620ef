//! Encodes plans for other processes.
//!
//! DataFusion encodes its own operators and expressions, except those whose message lacks or narrows a field. Kiln
//! encodes its own operators, scans and functions, each as a small record. Debug texts are never parsed, and malformed
//! bytes are an error.
//!
//! - `checksummed_record.rs` reads and writes records: version, checksum, MessagePack.
//! - `operator.rs` and `expression.rs` define the records of operators and expressions. Those of scans are in
//!   `scan/portable_scan.rs`, those of Kiln's operators and functions in `operators::portable_operator` and
//!   `functions::portable`.
//! - `plan_converter.rs` converts between plans and messages and limits their nesting.
//! - `sealed_plan.rs` hides a whole plan from the library's own codec.

pub mod checksummed_record;
mod expression;
mod operator;
mod plan_converter;
mod sealed_plan;

use std::fmt;
use std::sync::Arc;

use datafusion::common::{DataFusionError, Result as DfResult};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_distributed::DistributedCodec;
use datafusion_proto::bytes::physical_plan_to_bytes_with_proto_converter;
use datafusion_proto::physical_plan::{
    AsExecutionPlan, PhysicalExtensionCodec, PhysicalPlanDecodeContext, PhysicalProtoConverterExtension,
};
use functions::function_codec::{SerializedAggregate, SerializedScalar, SerializedWindow};
use prost::Message;
use scan::ScanPlanner;
use types::stack_limit::with_planning_stack;

use self::operator::OperatorRecord;
pub use self::plan_converter::Converter;

pub(crate) use self::checksummed_record::{RecordError, read_record, write_record};
pub(crate) use self::sealed_plan::SealedPlan;

/// Codec that encodes plans, and decodes them if it has a storage to read shards from.
pub struct Codec {
    /// Planner of decoded scans; `None` if plans are only encoded.
    scans: Option<Arc<ScanPlanner>>,
}

/// Returns the number of bytes of the encoded operators of `plan`.
///
/// # Errors
/// For operators, functions and expressions that cannot be sent.
pub fn message_bytes(plan: &Arc<dyn ExecutionPlan>) -> DfResult<usize> {
    let codec = Codec::encoder();
    let bytes = physical_plan_to_bytes_with_proto_converter(Arc::clone(plan), &codec, &Converter::default())?;
    Ok(bytes.len())
}

/// An expression, a field or a value in DataFusion's encoding.
type EncodedMessage = Vec<u8>;

/// First byte of an extension message: names the codec that wrote it. This one is the codec of
/// `datafusion-distributed`.
const LIBRARY: u8 = 0;
/// First byte of an operator or an expression in Kiln's form.
pub const KILN: u8 = 1;
/// First byte of a whole plan in [`SealedPlan`].
const SEALED: u8 = 2;
/// First byte of a subtree beyond the nesting limit of protobuf messages, encoded as a message of its own.
const NESTED: u8 = 3;

impl Codec {
    /// Returns a codec for coordinators, which only encode.
    #[must_use]
    pub fn encoder() -> Self {
        Self { scans: None }
    }

    /// Returns a codec for workers, which decode scans over the storage and cache of `scans`.
    #[must_use]
    pub fn decoder(scans: Arc<ScanPlanner>) -> Self {
        Self { scans: Some(scans) }
    }
}

impl PhysicalExtensionCodec for Codec {
    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> DfResult<()> {
        if let Some(SealedPlan(plan)) = node.downcast_ref::<SealedPlan>() {
            buf.push(SEALED);
            return with_planning_stack(|| Converter::default().execution_plan_to_proto(plan, self)?.try_encode(buf));
        }
        match OperatorRecord::from_kiln(node.as_ref(), &|expr| converter.physical_expr_to_proto(expr, self))? {
            Some(operator) => {
                buf.push(KILN);
                Ok(write_record(&operator, buf)?)
            }
            None => {
                buf.push(LIBRARY);
                DistributedCodec.try_encode(node, buf, converter)
            }
        }
    }

    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let (writer, rest) = buf.split_first().ok_or(RecordError::Short(0))?;
        let decoding = PhysicalPlanDecodeContext::new(context, self);
        match *writer {
            SEALED => {
                with_planning_stack(|| Converter::default().proto_to_execution_plan(&decode_message(rest)?, &decoding))
            }
            KILN => {
                let operator: OperatorRecord = read_record(rest)?;
                let scans = self.scans.as_ref().ok_or_else(|| malformed_error("this codec only encodes plans"))?;
                let expression = |node: &_, schema: &_| converter.proto_to_physical_expr(node, schema, &decoding);
                operator.into_operator(inputs, scans, &expression)
            }
            NESTED => converter.proto_to_execution_plan(&decode_message(rest)?, &decoding),
            LIBRARY => DistributedCodec.try_decode(rest, inputs, context, converter),
            writer => Err(malformed_error(&format!("an operator is encoded by an unknown codec: {writer}")).into()),
        }
    }

    fn try_encode_udf(&self, node: &ScalarUDF, buf: &mut Vec<u8>) -> DfResult<()> {
        let form = SerializedScalar::encode(node).ok_or_else(|| unportable_error(node.name()))?;
        Ok(write_record(&form, buf)?)
    }

    fn try_decode_udf(&self, name: &str, buf: &[u8]) -> DfResult<Arc<ScalarUDF>> {
        Ok(read_record::<SerializedScalar>(buf)?.decode().ok_or_else(|| unknown_function_error(name))?)
    }

    fn try_encode_udaf(&self, node: &AggregateUDF, buf: &mut Vec<u8>) -> DfResult<()> {
        let form = SerializedAggregate::encode(node).ok_or_else(|| unportable_error(node.name()))?;
        Ok(write_record(&form, buf)?)
    }

    fn try_decode_udaf(&self, name: &str, buf: &[u8]) -> DfResult<Arc<AggregateUDF>> {
        Ok(read_record::<SerializedAggregate>(buf)?.decode().ok_or_else(|| unknown_function_error(name))?)
    }

    fn try_encode_udwf(&self, node: &WindowUDF, buf: &mut Vec<u8>) -> DfResult<()> {
        let form = SerializedWindow::encode(node).ok_or_else(|| unportable_error(node.name()))?;
        Ok(write_record(&form, buf)?)
    }

    fn try_decode_udwf(&self, name: &str, buf: &[u8]) -> DfResult<Arc<WindowUDF>> {
        Ok(read_record::<SerializedWindow>(buf)?.decode().ok_or_else(|| unknown_function_error(name))?)
    }
}

/// Decodes a protobuf message.
fn decode_message<M: Message + Default>(bytes: &[u8]) -> Result<M, RecordError> {
    M::decode(bytes).map_err(|error| malformed_error(&error.to_string()))
}

fn unportable_error(name: &str) -> RecordError {
    malformed_error(&format!("the function {name} cannot be sent to another process"))
}

fn unknown_function_error(name: &str) -> RecordError {
    malformed_error(&format!("no function {name} has the encoded form"))
}

fn malformed_error(message: &str) -> RecordError {
    RecordError::Other(message.to_owned())
}

impl From<RecordError> for DataFusionError {
    fn from(error: RecordError) -> Self {
        Self::External(Box::new(error))
    }
}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Codec").field("reads", &self.scans.is_some()).finish()
    }
}
