//! Plans and expressions as messages: in DataFusion's form where that has all of them, in Kiln's own where it lacks or narrows a field.

use std::cell::RefCell;
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

use super::expression::Expression;
use super::operator::Operator;
use super::{OWN, read, write};

/// Converts one plan to a message or from one. Expressions that several operators share by their ids are shared again.
#[derive(Default)]
pub(super) struct Converter {
    shared: RefCell<HashMap<u64, Arc<dyn PhysicalExpr>>>,
}

/// An operator in Kiln's form.
fn own(form: &Operator, inputs: Vec<PhysicalPlanNode>) -> DfResult<PhysicalPlanNode> {
    let mut node = vec![OWN];
    write(form, &mut node)?;
    let extension = PhysicalExtensionNode { node, inputs };
    Ok(PhysicalPlanNode { physical_plan_type: Some(PhysicalPlanType::Extension(extension)) })
}

impl PhysicalProtoConverterExtension for Converter {
    fn proto_to_execution_plan(
        &self,
        proto: &PhysicalPlanNode,
        context: &PhysicalPlanDecodeContext<'_>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        proto.try_into_physical_plan_with_context(context, self)
    }

    fn execution_plan_to_proto(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        codec: &dyn PhysicalExtensionCodec,
    ) -> DfResult<PhysicalPlanNode> {
        let form = Operator::of_library(plan.as_ref(), &|expr| self.physical_expr_to_proto(expr, codec))?;
        if let Some(form) = form {
            let inputs = plan.children().into_iter().map(|input| self.execution_plan_to_proto(input, codec));
            return own(&form, inputs.collect::<DfResult<_>>()?);
        }
        let library = PhysicalPlanNode::try_from_physical_plan_with_converter(Arc::clone(plan), codec, self)?;
        match Operator::beside_library(plan.as_ref()) {
            Some(form) => own(&form, vec![library]),
            None => Ok(library),
        }
    }

    fn proto_to_physical_expr(
        &self,
        proto: &PhysicalExprNode,
        schema: &Schema,
        context: &PhysicalPlanDecodeContext<'_>,
    ) -> DfResult<Arc<dyn PhysicalExpr>> {
        let decoded = match &proto.expr_type {
            Some(ExprType::Extension(own)) => {
                let inputs = own.inputs.iter().map(|input| self.proto_to_physical_expr(input, schema, context));
                let inputs = inputs.collect::<DfResult<_>>()?;
                let options = context.task_ctx().session_config().options();
                read::<Expression>(&own.expr)?.over(inputs, options)?
            }
            _ => parse_physical_expr_with_converter(proto, schema, context, self)?,
        };
        let Some(id) = proto.expr_id else { return Ok(decoded) };
        let mut shared = self.shared.borrow_mut();
        match shared.get(&id) {
            // The columns of each place are its own, and the state is that of all.
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
        let Some(form) = Expression::of(expr)? else {
            return serialize_physical_expr_with_converter(expr, codec, self);
        };
        let mut bytes = Vec::new();
        write(&form, &mut bytes)?;
        let inputs = expr.children().into_iter().map(|input| self.physical_expr_to_proto(input, codec));
        let extension = PhysicalExtensionExprNode { expr: bytes, inputs: inputs.collect::<DfResult<_>>()? };
        Ok(PhysicalExprNode { expr_id: expr.expression_id(), expr_type: Some(ExprType::Extension(extension)) })
    }
}
