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
use engine::aggregate::Kept;
use engine::arrow_form;
use engine::expression::Expression;
use engine::window::{Distance, Edge, Frame, Near, Units, WindowFunction, WindowSpec};
use functions::is_reversed;
use types::Interval;

use super::aggregate::{Aggregate, spread_of, spread_states, total_of};
use super::{Builder, Chain, OperatorId, ordered, through_exchanges};

/// Maximum distance of frame bounds, in rows, up to which a frame is aggregated again for each row.
const NEAR_ROWS_MAX: u64 = 1_000;

/// Window functions over one input.
pub(super) struct Windows<'a> {
    plan: &'a Arc<dyn ExecutionPlan>,
    functions: &'a [Arc<dyn WindowExpr>],
    input: &'a Arc<dyn ExecutionPlan>,
}

impl<'a> Windows<'a> {
    /// Returns the window functions of an operator; `None` for other operators and for inputs that are not fully
    /// sorted.
    pub(super) fn of(plan: &'a Arc<dyn ExecutionPlan>) -> Option<Self> {
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
struct Read(Vec<Arc<dyn PhysicalExpr>>);

impl Read {
    /// Returns the position of an expression, adding it if it is new.
    fn place(&mut self, expression: &Arc<dyn PhysicalExpr>) -> usize {
        let known = self.0.iter().position(|known| known == expression);
        known.unwrap_or_else(|| {
            self.0.push(Arc::clone(expression));
            self.0.len() - 1
        })
    }
}

impl Builder<'_> {
    /// Compiles window functions together with the sort below them.
    pub(super) fn windows(&mut self, windows: &Windows<'_>) -> Option<Chain> {
        let first = windows.functions.first()?;
        let is_alike = |function: &Arc<dyn WindowExpr>| {
            function.partition_by() == first.partition_by() && function.order_by() == first.order_by()
        };
        // A sort below is part of the engine's window evaluation.
        let below = through_exchanges(windows.input);
        if !windows.functions.iter().all(is_alike) || !windows.are_in_order_of(below) {
            return None;
        }
        let sort = below.downcast_ref::<SortExec>().filter(|sort| sort.fetch().is_none());
        let mut chain = match sort {
            Some(sort) => self.below(sort.input())?,
            None => self.below(windows.input)?.in_order_of(windows.input)?,
        };
        let mut read = Read::default();
        let sort_keys: Vec<(&PhysicalSortExpr, usize)> =
            sort.into_iter().flat_map(|sort| sort.expr()).map(|key| (key, read.place(&key.expr))).collect();
        let partition_by: Vec<usize> = first.partition_by().iter().map(|part| read.place(part)).collect();
        let order_by: Vec<usize> = first.order_by().iter().map(|key| read.place(&key.expr)).collect();
        let mut computed = Computed { read, functions: Vec::new() };
        let given = windows.functions.iter().map(|function| computed.function(function, &chain));
        let given = given.collect::<Option<Vec<_>>>()?;
        let Computed { read, functions } = computed;
        let columns = chain.schema.fields().len();
        let places;
        (chain, places) = chain.with_keys(read.0.iter())?;
        let placed = |columns: &[usize]| columns.iter().map(|column| places[*column]).collect::<Vec<_>>();
        let partition_by = placed(&partition_by);
        // Whole partitions may be filtered away; single rows may not, since functions depend on the others in their
        // partition.
        for branch in &mut chain.branches {
            let is_kept = |column: &usize| partition_by.contains(column);
            let origins = branch.origins.iter_mut().enumerate();
            origins.filter(|(column, _)| !is_kept(column)).for_each(|(_, origin)| *origin = None);
        }
        let sort_keys = sort_keys.into_iter().map(|(key, place)| super::sort::key(key, places[place])).collect();
        let functions = functions.into_iter().map(|function| moved(function, &places)).collect();
        let spec = WindowSpec { partition_by, order_by: placed(&order_by), functions };
        let width = chain.schema.fields().len();
        let mut chain = self.sorted(chain, sort_keys, None, Some(spec))?;
        if let Some(sort) = sort {
            chain.mark(OperatorId::of(sort));
        }
        let given = given.into_iter().map(|given| given.over(width));
        let expressions = (0..columns).map(Expression::Column).chain(given).collect();
        Some(chain.projected(expressions, windows.plan.schema()))
    }
}

/// Engine functions that were compiled so far.
struct Computed {
    read: Read,
    functions: Vec<WindowFunction>,
}

/// Value of a window function, in terms of the engine's functions by position.
enum Given {
    Column(usize),
    /// Variance or standard deviation.
    Spread {
        aggregate: Arc<AggregateFunctionExpr>,
        /// Positions of the functions of [`spread_states`].
        kept: [usize; 3],
        sum: Kept,
    },
    /// Sum or average, from a total of type `form` and a count.
    Total {
        aggregate: Arc<AggregateFunctionExpr>,
        form: DataType,
        total: usize,
        count: usize,
    },
}

impl Given {
    /// Returns the value as an expression, where the function columns follow `width` others.
    fn over(self, width: usize) -> Expression {
        let column = |place: usize| Expression::Column(width + place);
        match self {
            Self::Column(place) => column(place),
            Self::Total { aggregate, form, total, count } => total_of(&aggregate, form, column(total), column(count)),
            Self::Spread { aggregate, kept, sum } => spread_of(&aggregate, sum, kept.map(column)),
        }
    }
}

impl Computed {
    /// Compiles one window function.
    fn function(&mut self, function: &Arc<dyn WindowExpr>, chain: &Chain) -> Option<Given> {
        let any = function.as_any();
        if let Some(standard) = any.downcast_ref::<StandardWindowExpr>() {
            let function = self.standard(standard, function, chain)?;
            return Some(Given::Column(self.place(function)));
        }
        let aggregate = match any.downcast_ref::<PlainAggregateWindowExpr>() {
            Some(plain) => plain.get_aggregate_expr(),
            None => any.downcast_ref::<SlidingAggregateWindowExpr>()?.get_aggregate_expr(),
        };
        let frame = self.frame(function, chain)?;
        self.aggregate(aggregate, frame, chain)
    }

    /// Compiles the frame of a function; `None` if the engine does not support its distances.
    fn frame(&mut self, function: &Arc<dyn WindowExpr>, chain: &Chain) -> Option<Frame> {
        let frame = function.get_window_frame();
        let units = match frame.units {
            WindowFrameUnits::Rows => Units::Rows,
            WindowFrameUnits::Range | WindowFrameUnits::Groups => Units::Peers,
        };
        let mut edge = |bound: &WindowFrameBound| {
            let (distance, is_after) = match bound {
                WindowFrameBound::CurrentRow => return Some(Edge::At(0)),
                WindowFrameBound::Preceding(distance) => (distance, false),
                WindowFrameBound::Following(distance) => (distance, true),
            };
            if distance.is_null() {
                return Some(Edge::Partition);
            }
            if frame.units == WindowFrameUnits::Range {
                let [by] = function.order_by() else { return None };
                let key = super::sort::key(by, self.read.place(&by.expr));
                let of = by.expr.data_type(&chain.schema).ok()?;
                return Some(Edge::Near(Near { key, distance: away(distance, is_after, &of)? }));
            }
            let ScalarValue::UInt64(Some(rows)) = distance else { return None };
            let rows = i64::try_from(*rows).ok()?;
            Some(Edge::At(if is_after { rows } else { -rows }))
        };
        Some(Frame { units, start: edge(&frame.start_bound)?, end: edge(&frame.end_bound)? })
    }

    fn place(&mut self, function: WindowFunction) -> usize {
        self.functions.push(function);
        self.functions.len() - 1
    }

    fn standard(
        &mut self,
        standard: &StandardWindowExpr,
        function: &Arc<dyn WindowExpr>,
        chain: &Chain,
    ) -> Option<WindowFunction> {
        let call = standard.get_standard_func_expr().as_any().downcast_ref::<WindowUDFExpr>()?;
        let arguments = call.args();
        let value = |read: &mut Read| {
            let value = arguments.first()?;
            arrow_form::has_form(&value.data_type(&chain.schema).ok()?).then(|| read.place(value))
        };
        Some(match call.fun().name() {
            "row_number" => WindowFunction::RowNumber,
            "rank" => WindowFunction::Rank,
            "dense_rank" => WindowFunction::DenseRank,
            "percent_rank" => WindowFunction::PercentRank,
            "cume_dist" => WindowFunction::CumeDist,
            "ntile" => WindowFunction::Ntile(integer(arguments.first()?).filter(|parts| 0 < *parts)?),
            name @ ("lag" | "lead") => {
                let column = value(&mut self.read)?;
                let rows = arguments.get(1).map_or(Some(1), integer)?;
                let is_before = (name == "lag") != is_reversed(call.fun());
                let before = if is_before { rows } else { rows.checked_neg()? };
                let data_type = arguments[0].data_type(&chain.schema).ok()?;
                let otherwise = match arguments.get(2).map(|value| value.downcast_ref::<Literal>()) {
                    None => None,
                    Some(literal) => constant(literal?.value(), &data_type)?,
                };
                WindowFunction::Shifted { column, before, otherwise }
            }
            "first_value" => {
                WindowFunction::First { column: value(&mut self.read)?, frame: self.frame(function, chain)? }
            }
            "last_value" => {
                WindowFunction::Last { column: value(&mut self.read)?, frame: self.frame(function, chain)? }
            }
            // From the other end, the numbers would differ.
            "nth_value" if is_reversed(call.fun()) => return None,
            "nth_value" => {
                let number = u64::try_from(integer(arguments.get(1)?)?).ok().filter(|number| 0 < *number)?;
                WindowFunction::Nth { column: value(&mut self.read)?, number, frame: self.frame(function, chain)? }
            }
            _ => return None,
        })
    }

    fn aggregate(&mut self, aggregate: &AggregateFunctionExpr, frame: Frame, chain: &Chain) -> Option<Given> {
        let kind = Aggregate::of(aggregate, &chain.schema)?;
        let column = kind.argument(aggregate).map(|argument| self.read.place(&argument));
        let mut place = |kept: Kept| self.place(WindowFunction::Kept { kept, column, frame });
        Some(match kind {
            Aggregate::CountRows | Aggregate::Count => Given::Column(place(Kept::Count)),
            Aggregate::Min(form) => Given::Column(place(Kept::Min(form))),
            Aggregate::Max(form) => Given::Column(place(Kept::Max(form))),
            // Floats that leave a frame cannot be subtracted exactly, so the remaining ones are added up again.
            Aggregate::Total { sum: Kept::FloatSum, .. } if !stays_small(frame) => return None,
            Aggregate::Total { sum, form } => {
                let (total, count) = (place(sum), place(Kept::Count));
                Given::Total { aggregate: Arc::new(aggregate.clone()), form, total, count }
            }
            Aggregate::Spread { sum } => {
                let kept = spread_states(sum).map(place);
                Given::Spread { aggregate: Arc::new(aggregate.clone()), kept, sum }
            }
            Aggregate::FloatSpread => return None,
        })
    }
}

/// Replaces positions in [`Read`] by column positions.
fn moved(mut function: WindowFunction, places: &[usize]) -> WindowFunction {
    match &mut function {
        WindowFunction::Shifted { column, .. } => *column = places[*column],
        WindowFunction::First { column, frame }
        | WindowFunction::Last { column, frame }
        | WindowFunction::Nth { column, frame, .. }
        | WindowFunction::Kept { column: Some(column), frame, .. } => {
            *column = places[*column];
            *frame = frame.moved(|column| places[column]);
        }
        WindowFunction::Kept { column: None, frame, .. } => *frame = frame.moved(|column| places[column]),
        _ => {}
    }
    function
}

/// Returns whether a frame is small enough to be aggregated again for each row.
fn stays_small(frame: Frame) -> bool {
    let is_near = |edge: Edge| matches!(edge, Edge::At(rows) if rows.unsigned_abs() <= NEAR_ROWS_MAX);
    frame.start == Edge::Partition || (frame.units == Units::Rows && is_near(frame.start) && is_near(frame.end))
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
    arrow_form::column(&array).ok().map(Some)
}

/// Returns the signed distance of a frame bound from a key of type `of`; `None` for types that the engine cannot add
/// to.
fn away(distance: &ScalarValue, is_after: bool, of: &DataType) -> Option<Distance> {
    let exact = |distance: i128| Distance::Exact(if is_after { distance } else { -distance });
    Some(match distance {
        ScalarValue::Int16(Some(distance)) => exact((*distance).into()),
        ScalarValue::Int32(Some(distance)) => exact((*distance).into()),
        ScalarValue::Int64(Some(distance)) => exact((*distance).into()),
        ScalarValue::Decimal128(Some(distance), ..) => exact(*distance),
        ScalarValue::Float64(Some(distance)) => Distance::Float(if is_after { *distance } else { -distance }),
        ScalarValue::IntervalMonthDayNano(Some(by)) if matches!(of, DataType::Timestamp(..)) => {
            let by = Interval::from_month_day_nano(by.months, by.days, by.nanoseconds);
            Distance::Span(if is_after { by } else { by.checked_neg().ok()? })
        }
        _ => return None,
    })
}
