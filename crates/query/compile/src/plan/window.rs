//! Compiles window functions, which are evaluated over sorted rows.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{WindowFrameBound, WindowFrameUnits};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_expr::window::{
    PlainAggregateWindowExpr, SlidingAggregateWindowExpr, StandardWindowExpr, WindowExpr,
};
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec, WindowUDFExpr};
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode};
use engine::aggregate::AggregateKind;
use engine::arrow_convert;
use engine::expression::Expression;
use engine::window::{Distance, Frame, FrameBound, FrameMode, RangeOffset, WindowFunction, WindowSpec};
use functions::is_reversed;
use plan::StandardWindow;
use types::Interval;

use super::aggregate::{AggregateFunction, total_value, variance_states, variance_value};
use super::{OpenPipelines, OperatorId, ProgramBuilder, ordered, skip_exchanges};

/// Maximum distance of frame bounds, in rows, up to which a frame is aggregated again for each row.
const REAGGREGATED_ROWS_MAX: u64 = 1_000;

/// Window functions over one input.
pub(super) struct WindowOperator<'a> {
    plan: &'a Arc<dyn ExecutionPlan>,
    functions: &'a [Arc<dyn WindowExpr>],
    input: &'a Arc<dyn ExecutionPlan>,
}

impl<'a> WindowOperator<'a> {
    /// Returns the window functions of an operator; `None` for other operators and for inputs that are not fully
    /// sorted.
    pub(super) fn from_plan(plan: &'a Arc<dyn ExecutionPlan>) -> Option<Self> {
        if let Some(windows) = plan.downcast_ref::<WindowAggExec>() {
            return Some(Self { plan, functions: windows.window_expr(), input: windows.input() });
        }
        let windows = plan.downcast_ref::<BoundedWindowAggExec>()?;
        let is_sorted = windows.input_order_mode == InputOrderMode::Sorted;
        is_sorted.then(|| Self { plan, functions: windows.window_expr(), input: windows.input() })
    }

    /// Returns whether all partitions of the input together have the order that the functions require.
    fn are_in_order_of(&self, input: &Arc<dyn ExecutionPlan>) -> bool {
        let asked = self.plan.required_input_ordering().into_iter().flatten().next();
        asked.is_none_or(|asked| ordered(input).ordering_satisfy_requirement(asked.into_single()).unwrap_or(false))
    }
}

/// Distinct expressions that the functions read.
#[derive(Default)]
struct ReadColumns(Vec<Arc<dyn PhysicalExpr>>);

impl ReadColumns {
    /// Returns the position of an expression, adding it if it is new.
    fn position(&mut self, expression: &Arc<dyn PhysicalExpr>) -> usize {
        let known = self.0.iter().position(|known| known == expression);
        known.unwrap_or_else(|| {
            self.0.push(Arc::clone(expression));
            self.0.len() - 1
        })
    }
}

impl ProgramBuilder<'_> {
    /// Compiles window functions together with the sort below them.
    pub(super) fn lower_windows(&mut self, windows: &WindowOperator<'_>) -> Option<OpenPipelines> {
        let first = windows.functions.first()?;
        let is_alike = |function: &Arc<dyn WindowExpr>| {
            function.partition_by() == first.partition_by() && function.order_by() == first.order_by()
        };
        // A sort below is part of the engine's window evaluation.
        let below = skip_exchanges(windows.input);
        if !windows.functions.iter().all(is_alike) || !windows.are_in_order_of(below) {
            return None;
        }
        let sort = below.downcast_ref::<SortExec>().filter(|sort| sort.fetch().is_none());
        let mut chain = match sort {
            Some(sort) => self.lower_input(sort.input())?,
            None => self.lower_input(windows.input)?.require_order_of(windows.input)?,
        };
        let mut read = ReadColumns::default();
        let sort_keys: Vec<(&PhysicalSortExpr, usize)> =
            sort.into_iter().flat_map(|sort| sort.expr()).map(|key| (key, read.position(&key.expr))).collect();
        let partition_by: Vec<usize> = first.partition_by().iter().map(|part| read.position(part)).collect();
        let order_by: Vec<usize> = first.order_by().iter().map(|key| read.position(&key.expr)).collect();
        let mut computed = LoweredWindows { read, functions: Vec::new() };
        let given = windows.functions.iter().map(|function| computed.lower_function(function, &chain));
        let given = given.collect::<Option<Vec<_>>>()?;
        let LoweredWindows { read, functions } = computed;
        let columns = chain.schema.fields().len();
        let places;
        (chain, places) = chain.with_keys(read.0.iter())?;
        let placed = |columns: &[usize]| columns.iter().map(|column| places[*column]).collect::<Vec<_>>();
        let partition_by = placed(&partition_by);
        // Whole partitions may be filtered away; single rows may not, since functions depend on the others in their
        // partition.
        for branch in &mut chain.branches {
            let is_kept = |column: &usize| partition_by.contains(column);
            let origins = branch.filterable_sources.iter_mut().enumerate();
            origins.filter(|(column, _)| !is_kept(column)).for_each(|(_, origin)| *origin = None);
        }
        let sort_keys = sort_keys.into_iter().map(|(key, place)| super::sort::sort_key(key, places[place])).collect();
        let functions = functions.into_iter().map(|function| remap_columns(function, &places)).collect();
        let spec = WindowSpec { partition_by, order_by: placed(&order_by), functions };
        let width = chain.schema.fields().len();
        let mut chain = self.add_sort(chain, sort_keys, None, Some(spec))?;
        if let Some(sort) = sort {
            chain.record_output_of(OperatorId::new(sort));
        }
        let given = given.into_iter().map(|given| given.into_expression(width));
        let expressions = (0..columns).map(Expression::Column).chain(given).collect();
        Some(chain.project(expressions, windows.plan.schema()))
    }
}

/// Engine functions that were compiled so far.
struct LoweredWindows {
    read: ReadColumns,
    functions: Vec<WindowFunction>,
}

/// Value of a window function, in terms of the engine's functions by position.
enum WindowValue {
    Column(usize),
    /// Variance or standard deviation.
    Variance {
        aggregate: Arc<AggregateFunctionExpr>,
        /// Positions of the functions of [`variance_states`].
        states: [usize; 3],
        sum: AggregateKind,
    },
    /// Sum or average, from a total of type `total_type` and a count.
    Total {
        aggregate: Arc<AggregateFunctionExpr>,
        total_type: DataType,
        total: usize,
        count: usize,
    },
}

impl WindowValue {
    /// Returns the value as an expression, where the function columns follow `width` others.
    fn into_expression(self, width: usize) -> Expression {
        let column = |place: usize| Expression::Column(width + place);
        match self {
            Self::Column(place) => column(place),
            Self::Total { aggregate, total_type, total, count } => {
                total_value(&aggregate, total_type, column(total), column(count))
            }
            Self::Variance { aggregate, states: kept, sum } => variance_value(&aggregate, sum, kept.map(column)),
        }
    }
}

impl LoweredWindows {
    /// Compiles one window function.
    fn lower_function(&mut self, function: &Arc<dyn WindowExpr>, chain: &OpenPipelines) -> Option<WindowValue> {
        let any = function.as_any();
        if let Some(standard) = any.downcast_ref::<StandardWindowExpr>() {
            let function = self.lower_standard(standard, function, chain)?;
            return Some(WindowValue::Column(self.push(function)));
        }
        let aggregate = match any.downcast_ref::<PlainAggregateWindowExpr>() {
            Some(plain) => plain.get_aggregate_expr(),
            None => any.downcast_ref::<SlidingAggregateWindowExpr>()?.get_aggregate_expr(),
        };
        let frame = self.lower_frame(function, chain)?;
        self.lower_aggregate(aggregate, frame, chain)
    }

    /// Compiles the frame of a function; `None` if the engine does not support its distances.
    fn lower_frame(&mut self, function: &Arc<dyn WindowExpr>, chain: &OpenPipelines) -> Option<Frame> {
        let frame = function.get_window_frame();
        let units = match frame.units {
            WindowFrameUnits::Rows => FrameMode::Rows,
            WindowFrameUnits::Range | WindowFrameUnits::Groups => FrameMode::Peers,
        };
        let mut edge = |bound: &WindowFrameBound| {
            let (distance, is_after) = match bound {
                WindowFrameBound::CurrentRow => return Some(FrameBound::Offset(0)),
                WindowFrameBound::Preceding(distance) => (distance, false),
                WindowFrameBound::Following(distance) => (distance, true),
            };
            if distance.is_null() {
                return Some(FrameBound::Unbounded);
            }
            if frame.units == WindowFrameUnits::Range {
                let [by] = function.order_by() else { return None };
                let key = super::sort::sort_key(by, self.read.position(&by.expr));
                let of = by.expr.data_type(&chain.schema).ok()?;
                return Some(FrameBound::RangeOffset(RangeOffset {
                    key,
                    distance: signed_distance(distance, is_after, &of)?,
                }));
            }
            let ScalarValue::UInt64(Some(rows)) = distance else { return None };
            let rows = i64::try_from(*rows).ok()?;
            Some(FrameBound::Offset(if is_after { rows } else { -rows }))
        };
        Some(Frame { mode: units, start: edge(&frame.start_bound)?, end: edge(&frame.end_bound)? })
    }

    fn push(&mut self, function: WindowFunction) -> usize {
        self.functions.push(function);
        self.functions.len() - 1
    }

    fn lower_standard(
        &mut self,
        standard: &StandardWindowExpr,
        function: &Arc<dyn WindowExpr>,
        chain: &OpenPipelines,
    ) -> Option<WindowFunction> {
        let call = standard.get_standard_func_expr().as_any().downcast_ref::<WindowUDFExpr>()?;
        let arguments = call.args();
        let value = |read: &mut ReadColumns| {
            let value = arguments.first()?;
            arrow_convert::is_supported(&value.data_type(&chain.schema).ok()?).then(|| read.position(value))
        };
        Some(match StandardWindow::from_function(call.fun())? {
            StandardWindow::RowNumber => WindowFunction::RowNumber,
            StandardWindow::Rank => WindowFunction::Rank,
            StandardWindow::DenseRank => WindowFunction::DenseRank,
            StandardWindow::PercentRank => WindowFunction::PercentRank,
            StandardWindow::CumeDist => WindowFunction::CumeDist,
            StandardWindow::Ntile => WindowFunction::Ntile(integer(arguments.first()?).filter(|parts| 0 < *parts)?),
            function @ (StandardWindow::Lag | StandardWindow::Lead) => {
                let column = value(&mut self.read)?;
                let rows = arguments.get(1).map_or(Some(1), integer)?;
                let is_before = (function == StandardWindow::Lag) != is_reversed(call.fun());
                let before = if is_before { rows } else { rows.checked_neg()? };
                let data_type = arguments[0].data_type(&chain.schema).ok()?;
                let otherwise = match arguments.get(2).map(|value| value.downcast_ref::<Literal>()) {
                    None => None,
                    Some(literal) => constant(literal?.value(), &data_type)?,
                };
                WindowFunction::LagLead { column, offset: before, default: otherwise }
            }
            StandardWindow::FirstValue => {
                WindowFunction::FirstValue { column: value(&mut self.read)?, frame: self.lower_frame(function, chain)? }
            }
            StandardWindow::LastValue => {
                WindowFunction::LastValue { column: value(&mut self.read)?, frame: self.lower_frame(function, chain)? }
            }
            // From the other end, the numbers would differ.
            StandardWindow::NthValue if is_reversed(call.fun()) => return None,
            StandardWindow::NthValue => {
                let number = u64::try_from(integer(arguments.get(1)?)?).ok().filter(|number| 0 < *number)?;
                WindowFunction::NthValue {
                    column: value(&mut self.read)?,
                    number,
                    frame: self.lower_frame(function, chain)?,
                }
            }
        })
    }

    fn lower_aggregate(
        &mut self,
        aggregate: &AggregateFunctionExpr,
        frame: Frame,
        chain: &OpenPipelines,
    ) -> Option<WindowValue> {
        let kind = AggregateFunction::from_call(aggregate, &chain.schema)?;
        let column = kind.argument(aggregate).map(|argument| self.read.position(&argument));
        let mut place = |kept: AggregateKind| self.push(WindowFunction::Aggregate { kind: kept, column, frame });
        Some(match kind {
            AggregateFunction::CountRows | AggregateFunction::Count => WindowValue::Column(place(AggregateKind::Count)),
            AggregateFunction::Min(form) => WindowValue::Column(place(AggregateKind::Min(form))),
            AggregateFunction::Max(form) => WindowValue::Column(place(AggregateKind::Max(form))),
            // Floats that leave a frame cannot be subtracted exactly, so the remaining ones are added up again.
            AggregateFunction::Total { sum: AggregateKind::FloatSum, .. } if !is_small_frame(frame) => return None,
            AggregateFunction::Total { sum, form } => {
                let (total, count) = (place(sum), place(AggregateKind::Count));
                WindowValue::Total { aggregate: Arc::new(aggregate.clone()), total_type: form, total, count }
            }
            AggregateFunction::Variance { sum } => {
                let kept = variance_states(sum).map(place);
                WindowValue::Variance { aggregate: Arc::new(aggregate.clone()), states: kept, sum }
            }
            AggregateFunction::FloatVariance => return None,
        })
    }
}

/// Replaces positions in [`ReadColumns`] by column positions.
fn remap_columns(mut function: WindowFunction, places: &[usize]) -> WindowFunction {
    match &mut function {
        WindowFunction::LagLead { column, .. } => *column = places[*column],
        WindowFunction::FirstValue { column, frame }
        | WindowFunction::LastValue { column, frame }
        | WindowFunction::NthValue { column, frame, .. }
        | WindowFunction::Aggregate { column: Some(column), frame, .. } => {
            *column = places[*column];
            *frame = frame.map_columns(|column| places[column]);
        }
        WindowFunction::Aggregate { column: None, frame, .. } => *frame = frame.map_columns(|column| places[column]),
        _ => {}
    }
    function
}

/// Returns whether a frame is small enough to be aggregated again for each row.
fn is_small_frame(frame: Frame) -> bool {
    let is_near =
        |edge: FrameBound| matches!(edge, FrameBound::Offset(rows) if rows.unsigned_abs() <= REAGGREGATED_ROWS_MAX);
    frame.start == FrameBound::Unbounded
        || (frame.mode == FrameMode::Rows && is_near(frame.start) && is_near(frame.end))
}

fn integer(argument: &Arc<dyn PhysicalExpr>) -> Option<i64> {
    match argument.downcast_ref::<Literal>()?.value() {
        ScalarValue::Int64(value) => *value,
        ScalarValue::Int32(value) => value.map(i64::from),
        ScalarValue::UInt64(value) => value.and_then(|value| i64::try_from(value).ok()),
        _ => None,
    }
}

/// Returns a constant of a type as a column; `Some(None)` for NULL.
fn constant(value: &ScalarValue, data_type: &DataType) -> Option<Option<engine::Column>> {
    if value.is_null() {
        return Some(None);
    }
    // Integers of another width are cast to the column's type, as DataFusion does.
    let are_integers = value.data_type().is_signed_integer() && data_type.is_signed_integer();
    let value = if are_integers { value.cast_to(data_type).ok()? } else { value.clone() };
    let array = (value.data_type() == *data_type).then(|| value.to_array_of_size(1).ok()).flatten()?;
    arrow_convert::from_array(&array).ok().map(Some)
}

/// Returns the signed distance of a frame bound from a key of type `of`; `None` for types that the engine cannot add
/// to.
fn signed_distance(distance: &ScalarValue, is_after: bool, of: &DataType) -> Option<Distance> {
    let exact = |distance: i128| Distance::Exact(if is_after { distance } else { -distance });
    Some(match distance {
        ScalarValue::Int16(Some(distance)) => exact((*distance).into()),
        ScalarValue::Int32(Some(distance)) => exact((*distance).into()),
        ScalarValue::Int64(Some(distance)) => exact((*distance).into()),
        ScalarValue::Decimal128(Some(distance), ..) => exact(*distance),
        ScalarValue::Float64(Some(distance)) => Distance::Float(if is_after { *distance } else { -distance }),
        ScalarValue::IntervalMonthDayNano(Some(by)) if matches!(of, DataType::Timestamp(..)) => {
            let by = Interval::from_month_day_nano(by.months, by.days, by.nanoseconds);
            Distance::Interval(if is_after { by } else { by.checked_neg().ok()? })
        }
        _ => return None,
    })
}
