//! Converts plans and expressions to messages: in DataFusion's form if it is complete, in Kiln's where it lacks or
//! narrows a field.
//!
//! `prost` decodes at most a hundred nested messages. A subtree below every sixteenth level is therefore encoded as a
//! byte string, which the receiver decodes as a message of its own.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::Result as DfResult;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::from_proto::parse_physical_expr_with_converter;
use datafusion_proto::physical_plan::to_proto::serialize_physical_expr_with_converter;
use datafusion_proto::physical_plan::{
    PhysicalExtensionCodec, PhysicalPlanDecodeContext, PhysicalPlanNodeExt, PhysicalProtoConverterExtension,
};
use datafusion_proto::protobuf::physical_expr_node::ExprType;
use datafusion_proto::protobuf::physical_plan_node::PhysicalPlanType;
use datafusion_proto::protobuf::{
    PhysicalExprNode, PhysicalExtensionExprNode, PhysicalExtensionNode, PhysicalPlanNode,
};

use functions::error::to_datafusion;
use prost::Message;
use types::stack_limit;

use super::expression::ExpressionRecord;
use super::operator::OperatorRecord;
use super::{KILN, NESTED, decode_message, malformed_error, read_record, write_record};

/// Nested operators and expressions in one message before the next level is encoded as bytes. A level takes two to four
/// messages, an aggregate with ORDER BY and grouping sets up to seven.
const LEVELS_MAX: usize = 16;

/// Converter of one plan to a message or from one. Expressions that several operators share, by id, are shared again
/// after decoding.
#[derive(Default)]
pub struct Converter {
    /// Decoded expressions that have an id.
    shared: RefCell<HashMap<u64, Arc<dyn PhysicalExpr>>>,
    /// Nesting level within the current message.
    levels: Cell<usize>,
}

impl Converter {
    /// Encodes a subtree one level deeper; `apart` wraps it as bytes where the limit is reached. Fails with `54001`
    /// where the stack is used up.
    fn encode_nested<T>(
        &self,
        message: impl FnOnce() -> DfResult<T>,
        apart: impl FnOnce(T) -> DfResult<T>,
    ) -> DfResult<T> {
        stack_limit::check().map_err(to_datafusion)?;
        let levels = self.levels.get();
        let is_apart = levels == LEVELS_MAX;
        self.levels.set(if is_apart { 1 } else { levels + 1 });
        let written = message();
        self.levels.set(levels);
        if is_apart { apart(written?) } else { written }
    }

    fn operator_message(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        codec: &dyn PhysicalExtensionCodec,
    ) -> DfResult<PhysicalPlanNode> {
        let form = OperatorRecord::from_library(plan.as_ref(), &|expr| self.physical_expr_to_proto(expr, codec))?;
        if let Some(form) = form {
            let inputs = plan.children().into_iter().map(|input| self.execution_plan_to_proto(input, codec));
            return kiln_node(&form, inputs.collect::<DfResult<_>>()?);
        }
        let library = PhysicalPlanNode::try_from_physical_plan_with_converter(Arc::clone(plan), codec, self)?;
        match OperatorRecord::missing_fields(plan.as_ref()) {
            Some(form) => kiln_node(&form, vec![library]),
            None => Ok(library),
        }
    }

    fn expression_message(
        &self,
        expr: &Arc<dyn PhysicalExpr>,
        codec: &dyn PhysicalExtensionCodec,
    ) -> DfResult<PhysicalExprNode> {
        let Some(form) = ExpressionRecord::from_expression(expr)? else {
            return serialize_physical_expr_with_converter(expr, codec, self);
        };
        let inputs = expr.children().into_iter().map(|input| self.physical_expr_to_proto(input, codec));
        let inputs = inputs.collect::<DfResult<_>>()?;
        let mut own = vec![KILN];
        write_record(&form, &mut own)?;
        Ok(PhysicalExprNode { expr_id: expr.expression_id(), ..expression_extension(own, inputs) })
    }
}

/// Encodes an operator in Kiln's form.
fn kiln_node(form: &OperatorRecord, inputs: Vec<PhysicalPlanNode>) -> DfResult<PhysicalPlanNode> {
    let mut node = vec![KILN];
    write_record(form, &mut node)?;
    Ok(plan_extension(node, inputs))
}

fn plan_extension(node: Vec<u8>, inputs: Vec<PhysicalPlanNode>) -> PhysicalPlanNode {
    let extension = PhysicalExtensionNode { node, inputs };
    PhysicalPlanNode { physical_plan_type: Some(PhysicalPlanType::Extension(extension)) }
}

fn expression_extension(expr: Vec<u8>, inputs: Vec<PhysicalExprNode>) -> PhysicalExprNode {
    let extension = PhysicalExtensionExprNode { expr, inputs };
    PhysicalExprNode { expr_id: None, expr_type: Some(ExprType::Extension(extension)) }
}

/// Encodes a message as the content of an [`NESTED`] extension.
fn encode_nested_bytes(message: &impl Message) -> DfResult<Vec<u8>> {
    let mut bytes = vec![NESTED];
    message.encode(&mut bytes).map_err(|error| malformed_error(&error.to_string()))?;
    Ok(bytes)
}

impl PhysicalProtoConverterExtension for Converter {
    fn proto_to_execution_plan(
        &self,
        proto: &PhysicalPlanNode,
        context: &PhysicalPlanDecodeContext<'_>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        stack_limit::check().map_err(to_datafusion)?;
        proto.try_into_physical_plan_with_context(context, self)
    }

    fn execution_plan_to_proto(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        codec: &dyn PhysicalExtensionCodec,
    ) -> DfResult<PhysicalPlanNode> {
        self.encode_nested(
            || self.operator_message(plan, codec),
            |message| Ok(plan_extension(encode_nested_bytes(&message)?, Vec::new())),
        )
    }

    fn proto_to_physical_expr(
        &self,
        proto: &PhysicalExprNode,
        schema: &Schema,
        context: &PhysicalPlanDecodeContext<'_>,
    ) -> DfResult<Arc<dyn PhysicalExpr>> {
        stack_limit::check().map_err(to_datafusion)?;
        let decoded = match &proto.expr_type {
            Some(ExprType::Extension(own)) => {
                let form = match own.expr.split_first() {
                    Some((&NESTED, message_bytes)) => {
                        return self.proto_to_physical_expr(&decode_message(message_bytes)?, schema, context);
                    }
                    Some((&KILN, form)) => read_record::<ExpressionRecord>(form)?,
                    _ => return Err(malformed_error("an expression is encoded by an unknown codec").into()),
                };
                let inputs = own.inputs.iter().map(|input| self.proto_to_physical_expr(input, schema, context));
                let inputs = inputs.collect::<DfResult<_>>()?;
                let options = context.task_ctx().session_config().options();
                form.into_expression(inputs, options)?
            }
            _ => parse_physical_expr_with_converter(proto, schema, context, self)?,
        };
        let Some(id) = proto.expr_id else { return Ok(decoded) };
        let mut shared = self.shared.borrow_mut();
        match shared.get(&id) {
            // The columns differ at each use; the state of the expression is shared.
            Some(first) => {
                let children = decoded.children().into_iter().map(Arc::clone).collect();
                Arc::clone(first).with_new_children(children)
            }
            None => {
                shared.insert(id, Arc::clone(&decoded));
                Ok(decoded)
            }
        }
    }

    fn physical_expr_to_proto(
        &self,
        expr: &Arc<dyn PhysicalExpr>,
        codec: &dyn PhysicalExtensionCodec,
    ) -> DfResult<PhysicalExprNode> {
        self.encode_nested(
            || self.expression_message(expr, codec),
            |message| Ok(expression_extension(encode_nested_bytes(&message)?, Vec::new())),
        )
    }
}
