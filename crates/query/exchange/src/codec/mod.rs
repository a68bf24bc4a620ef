//! Plans on their way between processes.
//!
//! DataFusion writes its own operators and expressions, but for those whose message lacks or narrows a field (`converter.rs`, `expression.rs`). What Kiln
//! has put among them is written here: scans (`scan/portable.rs`), Kiln's own operators and functions (`operators::portable`,
//! `functions::portable`), each as a small form (`form.rs`). Nothing is known by the text that debugging prints, and bytes that nobody wrote are an
//! error.

mod converter;
mod expression;
pub mod form;
mod operator;
mod sealed;

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
use functions::portable::{PortableAggregate, PortableScalar, PortableWindow};
use prost::Message;
use scan::ScanPlanner;
use types::stack::with_planning_stack;

pub use self::converter::Converter;
use self::operator::Operator;

pub(crate) use self::form::{FormError, read, write};
pub(crate) use self::sealed::Sealed;

/// Writes plans, and reads them where there is a storage to read shards of.
pub struct Codec {
    /// `None` where plans are only written.
    scans: Option<Arc<ScanPlanner>>,
}

/// How many bytes the operators of `plan` take on their way to a worker.
///
/// # Errors
/// For what does not travel.
pub fn message_bytes(plan: &Arc<dyn ExecutionPlan>) -> DfResult<usize> {
    let codec = Codec::writing();
    let bytes = physical_plan_to_bytes_with_proto_converter(Arc::clone(plan), &codec, &Converter::default())?;
    Ok(bytes.len())
}

/// An expression, a field or a value as DataFusion writes it.
type Written = Vec<u8>;

/// First byte of an extension message: names the codec that wrote it. This one is the codec of `datafusion-distributed`.
const LIBRARY: u8 = 0;
pub const OWN: u8 = 1;
/// A whole plan.
const SEALED: u8 = 2;
/// A subtree beyond the nesting limit of protobuf messages, encoded as a message of its own.
const APART: u8 = 3;

impl Codec {
    /// For who sends plans.
    #[must_use]
    pub fn writing() -> Self {
        Self { scans: None }
    }

    /// For who runs them, over the storage and cache of `scans`.
    #[must_use]
    pub fn reading(scans: Arc<ScanPlanner>) -> Self {
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
        if let Some(Sealed(plan)) = node.downcast_ref::<Sealed>() {
            buf.push(SEALED);
            return with_planning_stack(|| Converter::default().execution_plan_to_proto(plan, self)?.try_encode(buf));
        }
        match Operator::of(node.as_ref(), &|expr| converter.physical_expr_to_proto(expr, self))? {
            Some(operator) => {
                buf.push(OWN);
                Ok(write(&operator, buf)?)
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
        let (writer, rest) = buf.split_first().ok_or(FormError::Short(0))?;
        let decoding = PhysicalPlanDecodeContext::new(context, self);
        match *writer {
            SEALED => with_planning_stack(|| Converter::default().proto_to_execution_plan(&message(rest)?, &decoding)),
            OWN => {
                let operator: Operator = read(rest)?;
                let scans = self.scans.as_ref().ok_or_else(|| other("plans are only written here"))?;
                let expression = |node: &_, schema: &_| converter.proto_to_physical_expr(node, schema, &decoding);
                operator.over(inputs, scans, &expression)
            }
            APART => converter.proto_to_execution_plan(&message(rest)?, &decoding),
            LIBRARY => DistributedCodec.try_decode(rest, inputs, context, converter),
            writer => Err(other(&format!("nobody writes operators as {writer}")).into()),
        }
    }

    fn try_encode_udf(&self, node: &ScalarUDF, buf: &mut Vec<u8>) -> DfResult<()> {
        let form = PortableScalar::of(node).ok_or_else(|| unportable(node.name()))?;
        Ok(write(&form, buf)?)
    }

    fn try_decode_udf(&self, name: &str, buf: &[u8]) -> DfResult<Arc<ScalarUDF>> {
        Ok(read::<PortableScalar>(buf)?.function().ok_or_else(|| unknown(name))?)
    }

    fn try_encode_udaf(&self, node: &AggregateUDF, buf: &mut Vec<u8>) -> DfResult<()> {
        let form = PortableAggregate::of(node).ok_or_else(|| unportable(node.name()))?;
        Ok(write(&form, buf)?)
    }

    fn try_decode_udaf(&self, name: &str, buf: &[u8]) -> DfResult<Arc<AggregateUDF>> {
        Ok(read::<PortableAggregate>(buf)?.function().ok_or_else(|| unknown(name))?)
    }

    fn try_encode_udwf(&self, node: &WindowUDF, buf: &mut Vec<u8>) -> DfResult<()> {
        let form = PortableWindow::of(node).ok_or_else(|| unportable(node.name()))?;
        Ok(write(&form, buf)?)
    }

    fn try_decode_udwf(&self, name: &str, buf: &[u8]) -> DfResult<Arc<WindowUDF>> {
        Ok(read::<PortableWindow>(buf)?.function().ok_or_else(|| unknown(name))?)
    }
}

/// Decodes a protobuf message.
fn message<M: Message + Default>(bytes: &[u8]) -> Result<M, FormError> {
    M::decode(bytes).map_err(|error| other(&error.to_string()))
}

fn unportable(name: &str) -> FormError {
    other(&format!("the function {name} does not travel"))
}

fn unknown(name: &str) -> FormError {
    other(&format!("there is no function {name} like that"))
}

fn other(message: &str) -> FormError {
    FormError::Other(message.to_owned())
}

impl From<FormError> for DataFusionError {
    fn from(error: FormError) -> Self {
        Self::External(Box::new(error))
    }
}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Codec").field("reads", &self.scans.is_some()).finish()
    }
}
