//! Analyzer rule that resolves types with PostgreSQL's semantics: literals, overloads, casts, comparisons, common
//! types.
//!
//! It runs bottom-up before DataFusion's own type coercion, and leaves nothing for it to decide. It is idempotent: it
//! recognizes its own results.

use std::cell::Cell;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRewriter};
use datafusion::common::{DFSchema, DFSchemaRef, DataFusionError, ExprSchema, JoinType, Result, ScalarValue};
use datafusion::logical_expr::expr::{Between, Case, InList, InSubquery, Like, ScalarFunction, SetComparison};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator, Projection, Subquery, lit};
use datafusion::optimizer::AnalyzerRule;
use functions::cast::{CastKind, is_text, lower_cast, marked_literal};
use functions::error::to_datafusion;
use functions::type_rules::{Operand, common_type, operand_type_beside, plain_type_name};
use functions::{
    Body, DataFusionFunction, ResolvedFunction, UnresolvedFunction, comparison_key, external, like_operator,
    missing_operator, negate_definition,
};
use plan::plan_limits::is_negated_membership;
use plan::{balance, balance_concatenations};
use session_context::EvaluationContext;
use types::interrupt;
use types::numeric::digit_count;
use types::sql_type::NUMERIC_PRECISION_MAX;
use types::{Condition, SqlError, SqlType};

use super::common_type_call::CommonTypeCall;
use super::compare::{self, TypedExpr};
use super::compare_number::is_false_or_null;
use super::comparison_keys;
use super::constant_folding::fold_call;
use super::duplication_limit::{copy_expr, is_cheap};
use super::expr_type::{field_of, type_of};
use super::grouping_set::project_set_keys;
use super::lazy_evaluation::{guard_right_side, lower_boolean_case};
use super::scalar_subquery_nullability::make_nullable;
use super::set_operation::{flatten_union, resolve_union, resolve_values};
use super::unnest::add_element_types;
use super::with_recursive::resolve_recursive;
use functions::SpecialCall;

/// Type resolution for a statement of one session.
#[derive(Debug)]
pub(crate) struct TypeResolution {
    session: Arc<EvaluationContext>,
}

impl TypeResolution {
    /// Creates the rule for statements of `session`.
    #[must_use]
    pub(crate) fn new(session: Arc<EvaluationContext>) -> Self {
        Self { session }
    }
}

impl AnalyzerRule for TypeResolution {
    fn name(&self) -> &str {
        "postgresql_semantics"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        resolve_plan(plan, &DFSchema::empty(), &self.session)
    }
}

/// Resolves a plan whose correlated references refer to `outer`.
pub(super) fn resolve_plan(
    plan: LogicalPlan,
    outer: &DFSchema,
    session: &Arc<EvaluationContext>,
) -> Result<LogicalPlan> {
    interrupt::check().map_err(to_datafusion)?;
    if let LogicalPlan::RecursiveQuery(query) = plan {
        return resolve_recursive(query, outer, session);
    }
    let plan = match plan {
        LogicalPlan::Union(union) => LogicalPlan::Union(flatten_union(union)),
        plan => plan,
    };
    let before: Vec<DFSchemaRef> = plan.inputs().into_iter().map(|input| Arc::clone(input.schema())).collect();
    let plan = resolve_children(plan, outer, session)?;
    let is_over_the_same = before.iter().zip(plan.inputs()).all(|(before, input)| Arc::ptr_eq(before, input.schema()));
    if has_no_expressions(&plan) {
        return if is_over_the_same { Ok(plan) } else { plan.recompute_schema() };
    }
    let mut schema = input_schema(&plan, is_over_the_same)?;
    let plan = match plan {
        LogicalPlan::Aggregate(aggregate) => {
            let written = project_set_keys(aggregate, |key| resolve_expr(key, &schema, outer, session))?;
            schema = Arc::clone(written.input.schema());
            LogicalPlan::Aggregate(written)
        }
        plan => plan,
    };
    let plan = match plan {
        // Row counts are already resolved.
        LogicalPlan::Limit(_) => plan,
        LogicalPlan::Sort(mut sort) => {
            for key in &mut sort.expr {
                key.expr =
                    to_comparison_key(resolve_expr(key.expr.clone(), &schema, outer, session)?, &schema, session)?;
            }
            LogicalPlan::Sort(sort)
        }
        LogicalPlan::Values(values) => {
            return resolve_values(values, |expr| resolve_expr(expr, &schema, outer, session), session);
        }
        LogicalPlan::Union(union) => return resolve_union(union, session),
        LogicalPlan::Join(mut join) => {
            join.on = join
                .on
                .into_iter()
                .map(|(left, right)| {
                    let left = typed_expr(resolve_expr(left, &schema, outer, session)?, &schema)?;
                    let right = typed_expr(resolve_expr(right, &schema, outer, session)?, &schema)?;
                    compare::cast_to_comparable("=", left, right, session)
                })
                .collect::<Result<_>>()?;
            join.filter = join.filter.map(|filter| resolve_expr(filter, &schema, outer, session)).transpose()?;
            LogicalPlan::Join(join)
        }
        plan => {
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expr| match expr {
                Expr::Column(_) => Ok(Transformed::no(expr)),
                // An alias keeps its name by itself.
                Expr::Alias(_) => resolve_expr(expr, &schema, outer, session).map(Transformed::yes),
                expr => {
                    let name = names.save(&expr);
                    let rewritten = resolve_expr(expr, &schema, outer, session)?;
                    Ok(Transformed::yes(name.restore(rewritten)))
                }
            })?
            .data
        }
    };
    match plan.recompute_schema()? {
        LogicalPlan::Aggregate(aggregate) => comparison_keys::group_by_comparison_keys(aggregate, session),
        LogicalPlan::Distinct(distinct) => comparison_keys::distinct_by_comparison_keys(distinct, session),
        LogicalPlan::Unnest(unnest) => add_element_types(unnest),
        plan => Ok(plan),
    }
}

/// Returns whether a node has no expressions, and only the columns of its inputs.
fn has_no_expressions(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(scan) => scan.filters.is_empty(),
        LogicalPlan::SubqueryAlias(_) | LogicalPlan::EmptyRelation(_) => true,
        LogicalPlan::Join(join) => join.on.is_empty() && join.filter.is_none(),
        _ => false,
    }
}

/// Returns the schema of the columns that a node's expressions read. Merging two input schemas visits all of their
/// columns, so it is avoided where possible.
fn input_schema(plan: &LogicalPlan, is_over_the_same: bool) -> Result<DFSchemaRef> {
    match plan {
        LogicalPlan::TableScan(scan) => {
            DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema()).map(Arc::new)
        }
        LogicalPlan::Join(join)
            if is_over_the_same
                && matches!(join.join_type, JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full) =>
        {
            Ok(Arc::clone(&join.schema))
        }
        plan => Ok(match plan.inputs().as_slice() {
            [input] => Arc::clone(input.schema()),
            inputs => Arc::new(merge_schema(inputs)),
        }),
    }
}

/// Resolves the inputs of a node; a LATERAL subquery sees the resolved types of the left side.
fn resolve_children(plan: LogicalPlan, outer: &DFSchema, session: &Arc<EvaluationContext>) -> Result<LogicalPlan> {
    if let LogicalPlan::Join(mut join) = plan {
        join.left = Arc::new(resolve_plan(Arc::unwrap_or_clone(join.left), outer, session)?);
        let mut nearer = join.left.schema().as_ref().clone();
        nearer.merge(outer);
        join.right = Arc::new(resolve_plan(Arc::unwrap_or_clone(join.right), &nearer, session)?);
        return Ok(LogicalPlan::Join(join));
    }
    plan.map_children(|child| resolve_plan(child, outer, session).map(Transformed::yes)).map(|plan| plan.data)
}

fn resolve_expr(expr: Expr, schema: &DFSchema, outer: &DFSchema, session: &Arc<EvaluationContext>) -> Result<Expr> {
    let mut rewriter = ExprResolver { schema, outer, session, concatenations: Cell::new(0) };
    let rewritten = expr.rewrite(&mut rewriter)?.data;
    if rewriter.concatenations.get() <= CONCATENATIONS_MAX {
        return Ok(rewritten);
    }
    balance_concatenations(rewritten)
}

/// Returns the expression by which rows are sorted and compared: the comparison key, if the type has one.
pub(super) fn to_comparison_key(key: Expr, schema: &DFSchema, session: &Arc<EvaluationContext>) -> Result<Expr> {
    match comparison_key(&type_of(&key, schema)?) {
        Some(key_of) => key_of(key, session),
        None => Ok(key),
    }
}

/// Preserves the type metadata of an expression by a cast that does nothing, if its own field would lose it.
pub(crate) fn with_type_metadata(expr: Expr, sql_type: &SqlType) -> Expr {
    if sql_type.arrow_metadata().is_empty() {
        return expr;
    }
    let field = Arc::new(sql_type.arrow_field("cast", true));
    Expr::Cast(datafusion::logical_expr::expr::Cast::new_from_field(Box::new(expr), field))
}

fn typed_expr(expr: Expr, schema: &DFSchema) -> Result<TypedExpr> {
    let sql_type = type_of(&expr, schema)?;
    Ok(TypedExpr { expr, sql_type })
}

pub(super) struct ExprResolver<'a> {
    pub(super) schema: &'a DFSchema,
    outer: &'a DFSchema,
    pub(super) session: &'a Arc<EvaluationContext>,
    /// Number of resolved calls of `||`.
    concatenations: Cell<usize>,
}

/// Number of calls of `||` above which an expression may have a long chain of them.
const CONCATENATIONS_MAX: usize = 32;

impl TreeNodeRewriter for ExprResolver<'_> {
    type Node = Expr;

    fn f_up(&mut self, expr: Expr) -> Result<Transformed<Expr>> {
        self.resolve(expr).map(Transformed::yes)
    }
}

impl ExprResolver<'_> {
    fn resolve(&self, expr: Expr) -> Result<Expr> {
        interrupt::check().map_err(to_datafusion)?;
        match expr {
            Expr::Literal(value, None) => convert_literal(value),
            Expr::OuterReferenceColumn(field, column) => {
                let field = self.outer.field_from_column(&column).map_or(field, Arc::clone);
                Ok(Expr::OuterReferenceColumn(field, column))
            }
            Expr::Cast(cast) if cast.field.name() != "cast" => {
                let from = type_of(&cast.expr, self.schema)?;
                let to = SqlType::from_arrow_field(&cast.field)
                    .ok_or_else(|| external(SqlError::unsupported("a cast to this type")))?;
                lower_cast(*cast.expr, &from, &to, CastKind::Explicit, self.session)
                    .map(|expr| self.mark_text_literal(expr, &to))
            }
            Expr::Negative(operand) => self.negative(*operand),
            Expr::Not(operand) => Ok(Expr::Not(Box::new(self.condition(*operand, "NOT")?))),
            Expr::IsTrue(operand) => Ok(Expr::IsTrue(Box::new(self.condition(*operand, "IS TRUE")?))),
            Expr::IsNotTrue(operand) => Ok(Expr::IsNotTrue(Box::new(self.condition(*operand, "IS NOT TRUE")?))),
            Expr::IsFalse(operand) => Ok(Expr::IsFalse(Box::new(self.condition(*operand, "IS FALSE")?))),
            Expr::IsNotFalse(operand) => Ok(Expr::IsNotFalse(Box::new(self.condition(*operand, "IS NOT FALSE")?))),
            Expr::TryCast(_) => Err(external(SqlError::unsupported("TRY_CAST"))),
            Expr::ScalarFunction(call) => self.function(call),
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => self.binary(*left, op, *right),
            Expr::Between(between) => self.between(between),
            Expr::InList(list) => self.in_list(list),
            Expr::Like(like) => self.like(like),
            Expr::Case(case) => self.case(case),
            Expr::AggregateFunction(call) => self.resolve_aggregate(call),
            Expr::WindowFunction(call) => self.resolve_window(*call),
            Expr::ScalarSubquery(subquery) => {
                let mut subquery = self.subquery(subquery)?;
                subquery.subquery = Arc::new(make_nullable(Arc::unwrap_or_clone(subquery.subquery))?);
                Ok(Expr::ScalarSubquery(subquery))
            }
            Expr::Exists(mut exists) => {
                exists.subquery = self.subquery(exists.subquery)?;
                Ok(Expr::Exists(exists))
            }
            Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                let (expr, subquery) = self.comparable_subquery("=", *expr, subquery)?;
                Ok(Expr::InSubquery(InSubquery::new(Box::new(expr), subquery, negated)))
            }
            Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
                let (expr, subquery) = self.comparable_subquery(&op.to_string(), *expr, subquery)?;
                // DataFusion duplicates the subquery of other comparisons.
                if let Some(negated) = is_negated_membership(op, &quantifier) {
                    return Ok(Expr::InSubquery(InSubquery::new(Box::new(expr), subquery, negated)));
                }
                Ok(Expr::SetComparison(SetComparison::new(Box::new(expr), subquery, op, quantifier)))
            }
            other => Ok(other),
        }
    }

    /// Marks a text literal that was cast, so that it is no longer an untyped literal.
    fn mark_text_literal(&self, expr: Expr, to: &SqlType) -> Expr {
        match expr {
            Expr::Literal(value, None) if is_text(to) => marked_literal(value, to),
            other => other,
        }
    }

    pub(super) fn typed(&self, expr: Expr) -> Result<TypedExpr> {
        typed_expr(expr, self.schema)
    }

    pub(super) fn function(&self, call: ScalarFunction) -> Result<Expr> {
        let Some(named) = call.func.inner().downcast_ref::<UnresolvedFunction>() else {
            return Ok(Expr::ScalarFunction(call));
        };
        let definition = named.definition;
        let special = definition.special_call();
        if let Some(SpecialCall::Comparison(operator)) = special {
            let [left, right]: [Expr; 2] =
                call.args.try_into().map_err(|_| external(SqlError::internal("a comparison takes two arguments")))?;
            return compare::lower_comparison(operator, self.typed(left)?, self.typed(right)?, self.session);
        }
        let arguments: Vec<SqlType> = call.args.iter().map(|arg| type_of(arg, self.schema)).collect::<Result<_>>()?;
        match special {
            Some(SpecialCall::AnyEqual) => return self.any_equal(call.args, &arguments),
            Some(SpecialCall::Coalesce) => {
                return self.resolve_common_type_call(CommonTypeCall::Coalesce, call.args, &arguments, named);
            }
            Some(SpecialCall::Greatest) => {
                return self.resolve_common_type_call(CommonTypeCall::Greatest, call.args, &arguments, named);
            }
            Some(SpecialCall::Least) => {
                return self.resolve_common_type_call(CommonTypeCall::Least, call.args, &arguments, named);
            }
            Some(SpecialCall::ArrayLiteral) => {
                return self.resolve_common_type_call(CommonTypeCall::Array, call.args, &arguments, named);
            }
            Some(SpecialCall::Nullif) => return self.resolve_nullif(call.args, &arguments),
            _ => {}
        }
        let (index, mut targets) = definition.resolve_overload(&arguments).map_err(external)?;
        let overload = &definition.overloads[index];
        for ((arg, from), target) in call.args.iter().zip(&arguments).zip(&mut targets) {
            if *from == SqlType::Unknown {
                *target = operand_type_beside(target, Operand::new(arg, from)).map_err(external)?;
            }
        }
        overload.unify_element_types(&mut targets);
        let args: Vec<Expr> = call
            .args
            .into_iter()
            .zip(arguments.iter().zip(&targets))
            .map(|(arg, (from, to))| lower_cast(arg, from, to, CastKind::Assignment, self.session))
            .collect::<Result<_>>()?;
        match overload.body {
            Body::Rewrite(make) => {
                self.concatenations.update(|count| count + usize::from(special == Some(SpecialCall::Concatenation)));
                Ok(make(args))
            }
            Body::Builtin(function) => {
                let expr = Expr::ScalarFunction(ScalarFunction::new_udf(
                    DataFusionFunction::udf(function(), overload.builtin_fallibility()),
                    args,
                ));
                let wanted = overload.compute_result_type(&targets).map_err(external)?;
                self.cast_result(expr, &wanted)
            }
            Body::Rows(_) => {
                let function =
                    ResolvedFunction::from_unresolved(named, index, targets, self.session).map_err(external)?;
                fold_call(Expr::ScalarFunction(ScalarFunction::new_udf(function, args)), self.schema)
            }
        }
    }

    /// Casts the result of a DataFusion function, which chooses its own integer widths and string layouts, to
    /// `wanted`.
    pub(super) fn cast_result(&self, expr: Expr, wanted: &SqlType) -> Result<Expr> {
        if *field_of(&expr, self.schema)?.data_type() == wanted.arrow_type() {
            return Ok(with_type_metadata(expr, wanted));
        }
        let field = Arc::new(wanted.arrow_field("cast", true));
        Ok(Expr::Cast(datafusion::logical_expr::expr::Cast::new_from_field(Box::new(expr), field)))
    }

    /// Resolves unary minus with an overflow check; the sign of a literal is part of it.
    fn negative(&self, operand: Expr) -> Result<Expr> {
        let negate = UnresolvedFunction::udf(negate_definition(), self.session);
        self.function(ScalarFunction::new_udf(negate, vec![operand]))
    }

    fn binary(&self, left: Expr, operator: Operator, right: Expr) -> Result<Expr> {
        use Operator as O;
        let compares = [O::Eq, O::NotEq, O::Lt, O::LtEq, O::Gt, O::GtEq, O::IsDistinctFrom, O::IsNotDistinctFrom];
        if matches!(operator, O::And | O::Or) {
            let place = if operator == O::And { "AND" } else { "OR" };
            let (left, right) = (self.condition(left, place)?, self.condition(right, place)?);
            let right = guard_right_side(&left, operator, right, self.session)?;
            return Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), operator, Box::new(right))));
        }
        if !compares.contains(&operator) {
            return Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), operator, Box::new(right))));
        }
        // This is idempotent: results of this rule already have one type, and comparison keys are compared as they
        // are.
        compare::lower_comparison(operator, self.typed(left)?, self.typed(right)?, self.session)
    }

    fn between(&self, between: Between) -> Result<Expr> {
        let low = compare::lower_comparison(
            Operator::GtEq,
            self.typed(copy_expr(&between.expr, self.session)?)?,
            self.typed(*between.low)?,
            self.session,
        )?;
        let high = compare::lower_comparison(
            Operator::LtEq,
            self.typed(*between.expr)?,
            self.typed(*between.high)?,
            self.session,
        )?;
        let high = guard_right_side(&low, Operator::And, high, self.session)?;
        let within = low.and(high);
        Ok(if between.negated { Expr::Not(Box::new(within)) } else { within })
    }

    /// Resolves IN: to a list if its elements have the left side's type, else to a chain of comparisons.
    fn in_list(&self, list: InList) -> Result<Expr> {
        let left = self.typed(*list.expr)?;
        let mut comparisons = Vec::with_capacity(list.list.len());
        for element in list.list {
            let left = TypedExpr { expr: copy_expr(&left.expr, self.session)?, sql_type: left.sql_type.clone() };
            comparisons.push(compare::lower_comparison(Operator::Eq, left, self.typed(element)?, self.session)?);
        }
        // A number outside the type's range or scale equals no value; its comparison matters only for NULL, which any
        // other one handles too.
        if !comparisons.iter().all(|comparison| is_false_or_null(comparison, &left.expr)) {
            comparisons.retain(|comparison| !is_false_or_null(comparison, &left.expr));
        }
        if let Some(sought) = self.list_operand(&left.expr, &comparisons) {
            let sought = Box::new(sought.clone());
            let elements = comparisons
                .into_iter()
                .filter_map(|comparison| match comparison {
                    Expr::BinaryExpr(BinaryExpr { right, .. }) => Some(*right),
                    _ => None,
                })
                .collect();
            return Ok(Expr::InList(InList::new(sought, elements, list.negated)));
        }
        let any = balance(comparisons, Operator::Or).unwrap_or_else(|| lit(false));
        Ok(if list.negated { Expr::Not(Box::new(any)) } else { any })
    }

    /// Returns the common left operand of an IN list's comparisons if the list is kept: if its elements are
    /// constants, or if a chain of comparisons would be long or evaluate the operand repeatedly.
    fn list_operand<'e>(&self, left: &Expr, comparisons: &'e [Expr]) -> Option<&'e Expr> {
        let sides = |comparison: &'e Expr| match comparison {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => Some((left.as_ref(), right.as_ref())),
            _ => None,
        };
        let (first, _) = sides(comparisons.first()?)?;
        if !comparisons.iter().all(|comparison| sides(comparison).is_some_and(|(side, _)| side == first)) {
            return None;
        }
        let mut elements = comparisons.iter().filter_map(sides).map(|(_, element)| element);
        let are_known = elements.all(|element| matches!(element, Expr::Literal(..) | Expr::Placeholder(_)));
        let is_better = (are_known && first == left) || !is_cheap(first) || comparisons.len() > COMPARISON_CHAIN_MAX;
        is_better.then_some(first)
    }

    fn like(&self, like: Like) -> Result<Expr> {
        let operator = like_operator(like.negated, like.case_insensitive);
        let value = self.typed(*like.expr)?;
        let pattern = self.typed(*like.pattern)?;
        if !is_text(&value.sql_type) || !is_text(&pattern.sql_type) {
            return Err(external(missing_operator(
                operator,
                &plain_type_name(&value.sql_type),
                &plain_type_name(&pattern.sql_type),
            )));
        }
        // LIKE sees the trailing blanks of `char(n)`: a cast would remove them.
        functions::like(operator, vec![value.expr, pattern.expr], self.session)
    }

    fn case(&self, case: Case) -> Result<Expr> {
        let (whens, thens): (Vec<_>, Vec<_>) = case.when_then_expr.into_iter().unzip();
        let (operand, conditions) = match case.expr {
            Some(operand) => self.simple_case(*operand, whens.into_iter().map(|when| *when).collect())?,
            None => {
                let conditions = whens.into_iter().map(|when| self.condition(*when, "CASE/WHEN"));
                (None, conditions.collect::<Result<Vec<_>>>()?)
            }
        };
        let thens = thens.into_iter().map(|then| self.typed(*then)).collect::<Result<Vec<_>>>()?;
        let branches: Vec<(Expr, TypedExpr)> = conditions.into_iter().zip(thens).collect();
        let otherwise = case.else_expr.map(|expr| self.typed(*expr)).transpose()?;
        // PostgreSQL considers ELSE first.
        let results = otherwise.iter().chain(branches.iter().map(|(_, then)| then));
        let operands: Vec<Operand<'_>> = results.map(|result| Operand::new(&result.expr, &result.sql_type)).collect();
        let common = common_type(&operands, "CASE").map_err(external)?;
        let cast = |side: TypedExpr| {
            lower_cast(side.expr, &side.sql_type, &common, CastKind::Assignment, self.session).map(Box::new)
        };
        let branches =
            branches.into_iter().map(|(when, then)| Ok((Box::new(when), cast(then)?))).collect::<Result<_>>()?;
        let otherwise = otherwise.map(cast).transpose()?;
        let case = Case::new(operand.map(Box::new), branches, otherwise);
        if common == SqlType::Bool {
            return lower_boolean_case(case, self.schema, self.session);
        }
        Ok(with_type_metadata(Expr::Case(case), &common))
    }

    /// Resolves a simple CASE: returns its operand, if it is compared with all WHENs in one type, and the values;
    /// else the comparisons. A cheap operand is compared by conditions, which optimizer rules understand.
    fn simple_case(&self, operand: Expr, whens: Vec<Expr>) -> Result<(Option<Expr>, Vec<Expr>)> {
        let operand = self.typed(operand)?;
        let whens = whens.into_iter().map(|when| self.typed(when)).collect::<Result<Vec<_>>>()?;
        let compare = |operand: &TypedExpr, whens: &[TypedExpr]| {
            let of = |when: &TypedExpr| {
                let operand =
                    TypedExpr { expr: copy_expr(&operand.expr, self.session)?, sql_type: operand.sql_type.clone() };
                compare::lower_comparison(Operator::Eq, operand, when.clone(), self.session)
            };
            whens.iter().map(of).collect::<Result<Vec<_>>>()
        };
        if is_cheap(&operand.expr) {
            return Ok((None, compare(&operand, &whens)?));
        }
        // Each WHEN may need another type of the operand; it is computed once, in a type common to all.
        let mut common = operand.sql_type.clone();
        for when in &whens {
            let sought = Operand::from_type(&common);
            let when = Operand::new(&when.expr, &when.sql_type);
            let Some(wider) = compare::comparison_type(sought, when).map_err(external)? else {
                // One of these comparisons raises the error.
                return Ok((None, compare(&operand, &whens)?));
            };
            common = wider;
        }
        let cast = |side: TypedExpr| lower_cast(side.expr, &side.sql_type, &common, CastKind::Explicit, self.session);
        let sides = whens.into_iter().map(|when| Ok(TypedExpr { expr: cast(when)?, sql_type: common.clone() }));
        let sides = sides.collect::<Result<Vec<_>>>()?;
        let operand = TypedExpr { expr: cast(operand)?, sql_type: common.clone() };
        let mut comparisons = sides.into_iter().map(|when| {
            compare::cast_to_comparable(
                "=",
                TypedExpr { expr: operand.expr.clone(), ..operand.clone() },
                when,
                self.session,
            )
        });
        let Some(first) = comparisons.next().transpose()? else { return Ok((None, Vec::new())) };
        let mut values = vec![first.1];
        for comparison in comparisons {
            values.push(comparison?.1);
        }
        Ok((Some(first.0), values))
    }

    /// Resolves a condition.
    ///
    /// # Errors
    /// SQLSTATE 42804 if it is not boolean.
    fn condition(&self, expr: Expr, place: &str) -> Result<Expr> {
        let condition = self.typed(expr)?;
        match condition.sql_type {
            SqlType::Bool => Ok(condition.expr),
            SqlType::Unknown => {
                lower_cast(condition.expr, &SqlType::Unknown, &SqlType::Bool, CastKind::Assignment, self.session)
            }
            other => {
                let message = format!("argument of {place} must be type boolean, not type {}", plain_type_name(&other));
                Err(external(SqlError::new(Condition::DatatypeMismatch, message)))
            }
        }
    }

    fn subquery(&self, subquery: Subquery) -> Result<Subquery> {
        let mut outer = self.schema.clone();
        outer.merge(self.outer);
        let plan = resolve_plan(Arc::unwrap_or_clone(subquery.subquery), &outer, self.session)?;
        Ok(Subquery { subquery: Arc::new(plan), ..subquery })
    }

    /// Casts the expression and the subquery's column to the type they are compared in.
    fn comparable_subquery(&self, operator: &str, expr: Expr, subquery: Subquery) -> Result<(Expr, Subquery)> {
        let subquery = self.subquery(subquery)?;
        let left = self.typed(expr)?;
        let plan = &subquery.subquery;
        let (qualifier, field) = plan.schema().qualified_field(0);
        let column = Expr::Column(datafusion::common::Column::from((qualifier, field)));
        let right = TypedExpr { sql_type: type_of(&column, plan.schema().as_ref())?, expr: column.clone() };
        let (left, right) = compare::cast_to_comparable(operator, left, right, self.session)?;
        if right == column {
            return Ok((left, subquery));
        }
        let cast = right.alias(field.name());
        let plan = LogicalPlan::Projection(Projection::try_new(vec![cast], Arc::clone(plan))?);
        Ok((left, Subquery { subquery: Arc::new(plan), ..subquery }))
    }
}

/// Number of non-constant elements above which an IN list is not turned into a chain of comparisons.
const COMPARISON_CHAIN_MAX: usize = 64;

/// Converts a literal of SqlToRel to the width it has in PostgreSQL.
fn convert_literal(value: ScalarValue) -> Result<Expr> {
    let value = match value {
        ScalarValue::Int64(Some(whole)) => {
            i32::try_from(whole).map_or(value, |narrow| ScalarValue::Int32(Some(narrow)))
        }
        ScalarValue::UInt64(Some(whole)) => ScalarValue::Decimal128(Some(i128::from(whole)), 20, 0),
        ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text) => ScalarValue::Utf8View(text),
        // `1e3` arrives as 1 with a scale of -3.
        ScalarValue::Decimal128(Some(digits), _, scale) if scale < 0 => {
            let whole =
                10_i128.checked_pow(u32::from(scale.unsigned_abs())).and_then(|power| digits.checked_mul(power));
            let whole =
                whole.filter(|whole| digit_count(*whole) <= NUMERIC_PRECISION_MAX).ok_or_else(too_many_digits)?;
            ScalarValue::Decimal128(Some(whole), digit_count(whole).max(1), 0)
        }
        ScalarValue::Decimal256(..) => return Err(too_many_digits()),
        other => other,
    };
    Ok(Expr::Literal(value, None))
}

fn too_many_digits() -> DataFusionError {
    let message = format!("a numeric literal has more than {NUMERIC_PRECISION_MAX} digits");
    external(SqlError::new(Condition::NumericValueOutOfRange, message))
}
