//! Operators as pipelines.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::{JoinSide, JoinType, NullEquality};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, InListExpr, Literal};
use datafusion::physical_expr::split_conjunction;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::utils::{JoinFilter, JoinOnRef};
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode};
use engine::Form;
use engine::aggregate::{AggregateSpec, Kept, StateSpec};
use engine::arrow_form::{form, has_form};
use engine::expression::Expression;
use engine::join::{JoinKind, JoinSpec, OutputColumn, Residual};
use engine::pipeline::{Pipeline, Program, Sink, Source, Step};

use shards::Test;

use super::foreign::FinishAggregate;
use super::{cover, expression};
use crate::scan::{ShardScanExec, predicates};

/// What a fragment runs.
#[derive(Debug)]
pub(super) struct Lowered {
    pub(super) program: Program,
    pub(super) inputs: Vec<Input>,
    /// For each pipeline, whose rows come to which of its steps: what EXPLAIN ANALYZE shows.
    pub(super) marks: Vec<Vec<Mark>>,
}

/// The rows that come to a step are those that an operator gives.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    pub(super) operator: OperatorId,
    pub(super) step: usize,
}

/// An operator of the plan that a fragment stands for, which lives as long as the fragment: its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct OperatorId(usize);

impl OperatorId {
    pub(crate) fn of(operator: &dyn ExecutionPlan) -> Self {
        Self(std::ptr::from_ref(operator).cast::<()>().addr())
    }
}

/// Where rows come into a program.
#[derive(Debug)]
pub(super) enum Input {
    Scan(ScanInput),
    /// Operators of DataFusion's.
    Foreign(Arc<dyn ExecutionPlan>),
}

/// A scan, and what is done with its pages before rows go on.
#[derive(Debug)]
pub(super) struct ScanInput {
    pub(super) scan: Arc<dyn ExecutionPlan>,
    /// Conditions over its columns.
    pub(super) filters: Vec<ScanFilter>,
    /// Columns whose values must be keys of tables that earlier pipelines built: column, pipeline, key.
    pub(super) keys: Vec<(usize, usize, usize)>,
    /// The columns that are read after the filters.
    pub(super) wanted: Vec<bool>,
    /// The operator of the filters.
    pub(super) filter: Option<OperatorId>,
}

/// Keys of a group: a word says which of them are NULL.
const KEYS_MAX: usize = 60;

/// A condition over the columns of a scan.
#[derive(Debug, Clone)]
pub(super) struct ScanFilter {
    pub(super) condition: Expression,
    /// The same as a test of one column, by its position, that the scan makes anyway: where blocks answer it, nothing is left to do.
    pub(super) test: Option<(usize, Test)>,
}

/// The program of a plan; `None` where the engine cannot run it, or has nothing to do in it.
pub(super) fn lower(plan: &Arc<dyn ExecutionPlan>) -> Option<Lowered> {
    // A reader may rely on the order of rows.
    if plan.properties().output_ordering().is_some() {
        return None;
    }
    let mut builder = Builder::default();
    let chain = builder.operator(plan)?;
    if !builder.has_work {
        return None;
    }
    builder.end(chain, Sink::Rows);
    builder.want();
    Some(Lowered { program: Program { pipelines: builder.pipelines }, inputs: builder.inputs, marks: builder.marks })
}

/// A pipeline without its end.
struct Chain {
    source: Source,
    steps: Vec<Step>,
    schema: SchemaRef,
    /// The input and its column that each column is, where it is one and rows that it rules out may be left out there.
    origins: Vec<Option<(usize, usize)>>,
    marks: Vec<Mark>,
}

#[derive(Default)]
struct Builder {
    pipelines: Vec<Pipeline>,
    inputs: Vec<Input>,
    marks: Vec<Vec<Mark>>,
    /// Whether anything is joined or grouped.
    has_work: bool,
}

impl Builder {
    /// The rows of a plan: by the engine where it can, else from outside.
    fn rows(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Option<Chain> {
        let (pipelines, inputs, has_work) = (self.pipelines.len(), self.inputs.len(), self.has_work);
        if let Some(chain) = self.operator(plan) {
            return Some(chain);
        }
        self.pipelines.truncate(pipelines);
        self.marks.truncate(pipelines);
        self.inputs.truncate(inputs);
        self.has_work = has_work;
        let schema = plan.schema();
        if !schema.fields().iter().all(|field| has_form(field.data_type())) {
            return None;
        }
        let covered = cover(Arc::clone(plan)).ok()?;
        Some(self.input(Input::Foreign(covered), schema, false))
    }

    fn input(&mut self, input: Input, schema: SchemaRef, is_scan: bool) -> Chain {
        let (columns, number) = (schema.fields().len(), self.inputs.len());
        self.inputs.push(input);
        let origins = (0..columns).map(|column| is_scan.then_some((number, column))).collect();
        Chain { source: Source::Input(number), steps: Vec::new(), schema, origins, marks: Vec::new() }
    }

    fn end(&mut self, chain: Chain, sink: Sink) -> usize {
        self.pipelines.push(Pipeline { source: chain.source, steps: chain.steps, sink });
        self.marks.push(chain.marks);
        self.pipelines.len() - 1
    }

    fn operator(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Option<Chain> {
        let mut chain = self.lowered(plan)?;
        let is_narrowed = plan.is::<FilterExec>() && chain.steps.is_empty();
        if !plan.is::<ShardScanExec>() && !is_narrowed {
            chain.marks.push(Mark { operator: OperatorId::of(plan.as_ref()), step: chain.steps.len() });
        }
        Some(chain)
    }

    fn lowered(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Option<Chain> {
        if let Some(scan) = plan.downcast_ref::<ShardScanExec>() {
            let schema = plan.schema();
            // Columns without a form have no use here, unless they are asked for.
            if scan.is_limited() || !schema.fields().iter().all(|field| has_form(field.data_type())) {
                return None;
            }
            let wanted = vec![false; schema.fields().len()];
            let (filters, keys) = (Vec::new(), Vec::new());
            let input = ScanInput { scan: Arc::clone(plan), filters, keys, wanted, filter: None };
            return Some(self.input(Input::Scan(input), schema, true));
        }
        if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            return self.filter(filter, plan.fetch());
        }
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            return self.projection(projection);
        }
        if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
            return self.aggregate(aggregate);
        }
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            if join.null_aware || plan.fetch().is_some() {
                return None;
            }
            let sides = (join.left(), join.right());
            let projection = join.projection.as_deref();
            let nulls_are_equal = join.null_equality() == NullEquality::NullEqualsNull;
            return self.join(*join.join_type(), sides, join.on(), nulls_are_equal, join.filter(), projection);
        }
        if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
            let projection = join.projection().as_deref();
            return self.join(*join.join_type(), (join.left(), join.right()), &[], false, join.filter(), projection);
        }
        if let Some(join) = plan.downcast_ref::<CrossJoinExec>() {
            return self.join(JoinType::Inner, (join.left(), join.right()), &[], false, None, None);
        }
        None
    }

    fn filter(&mut self, filter: &FilterExec, fetch: Option<usize>) -> Option<Chain> {
        if fetch.is_some() {
            return None;
        }
        let mut chain = self.below(filter.input())?;
        let parts = split_conjunction(filter.predicate());
        let conditions = parts.iter().map(|part| expression::lower(part, &chain.schema)).collect::<Option<Vec<_>>>()?;
        match (chain.source, chain.steps.is_empty()) {
            (Source::Input(number), true) if let Input::Scan(scan) = &mut self.inputs[number] => {
                let tests = parts.iter().map(|part| tested_by(&scan.scan, part));
                let filters = conditions.into_iter().zip(tests);
                scan.filters.extend(filters.map(|(condition, test)| ScanFilter { condition, test }));
                scan.filter = Some(OperatorId::of(filter));
            }
            _ => chain.steps.push(Step::Filter(conditions)),
        }
        match filter.projection() {
            Some(columns) => chosen(chain, columns),
            None => Some(chain),
        }
    }

    /// What lies below, where exchanges between threads are none of the engine's business.
    fn below(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Option<Chain> {
        self.rows(through_exchanges(plan))
    }

    fn projection(&mut self, projection: &ProjectionExec) -> Option<Chain> {
        let chain = self.below(projection.input())?;
        let expressions = projection.expr().iter().map(|named| expression::lower(&named.expr, &chain.schema));
        let expressions = expressions.collect::<Option<Vec<_>>>()?;
        Some(projected(chain, expressions, projection.schema()))
    }

    fn aggregate(&mut self, last: &AggregateExec) -> Option<Chain> {
        let first = match last.mode() {
            AggregateMode::Single | AggregateMode::SinglePartitioned => last,
            AggregateMode::Final | AggregateMode::FinalPartitioned => {
                let below = through_exchanges(last.input()).downcast_ref::<AggregateExec>()?;
                (*below.mode() == AggregateMode::Partial).then_some(below)?
            }
            AggregateMode::Partial | AggregateMode::PartialReduce => return None,
        };
        let groups = first.group_expr();
        let is_plain = groups.expr().len() <= KEYS_MAX
            && !groups.has_grouping_set()
            && first.limit_options().is_none()
            && last.limit_options().is_none()
            && *first.input_order_mode() == InputOrderMode::Linear;
        if !is_plain {
            return None;
        }
        let chain = self.below(first.input())?;
        // The columns that are grouped: keys, then arguments and filters, each once.
        let mut columns =
            groups.expr().iter().map(|(key, _)| expression::lower(key, &chain.schema)).collect::<Option<Vec<_>>>()?;
        let mut places: Vec<(Arc<dyn PhysicalExpr>, usize)> = Vec::new();
        let mut place = |argument: &Arc<dyn PhysicalExpr>, columns: &mut Vec<Expression>| {
            if let Some((_, at)) = places.iter().find(|(known, _)| known == argument) {
                return Some(*at);
            }
            columns.push(expression::lower(argument, &chain.schema)?);
            places.push((Arc::clone(argument), columns.len() - 1));
            Some(columns.len() - 1)
        };
        let mut states: Vec<StateSpec> = Vec::new();
        let mut finished = Vec::new();
        for (aggregate, filter) in first.aggr_expr().iter().zip(first.filter_expr()) {
            let filter = filter.as_ref().map(|filter| place(filter, &mut columns));
            let filter = match filter {
                Some(place) => Some(place?),
                None => None,
            };
            let kept = Aggregate::of(aggregate, &chain.schema)?;
            let column = match kept.argument(aggregate) {
                Some(argument) => Some(place(&argument, &mut columns)?),
                None => None,
            };
            let mut state = |kept: Kept, column: Option<usize>| {
                let same = |state: &StateSpec| state.kept == kept && state.column == column && state.filter == filter;
                let at = states.iter().position(same).unwrap_or_else(|| {
                    states.push(StateSpec { kept, column, filter });
                    states.len() - 1
                });
                Expression::Column(groups.expr().len() + at)
            };
            finished.push(match kept {
                Aggregate::CountRows => state(Kept::Count, None),
                Aggregate::Count => state(Kept::Count, column),
                Aggregate::Min => state(Kept::Min, column),
                Aggregate::Max => state(Kept::Max, column),
                Aggregate::Total { sum, form } => {
                    let arguments = vec![state(sum, column), state(Kept::Count, column)];
                    let function = Arc::new(FinishAggregate::new(aggregate, vec![form, DataType::Int64]));
                    Expression::Foreign { function, arguments }
                }
            });
        }
        self.has_work = true;
        let keys: Vec<usize> = (0..groups.expr().len()).collect();
        let mut output: Vec<Expression> = keys.iter().map(|key| Expression::Column(*key)).collect();
        output.extend(finished);
        let chain = projected(chain, columns, Arc::new(Schema::empty()));
        // Rows of a group that nobody asks for need not be grouped.
        let origins = (0..output.len()).map(|column| keys.get(column).and_then(|key| chain.origins[*key])).collect();
        let pipeline = self.end(chain, Sink::Groups(Arc::new(AggregateSpec { keys, states })));
        let steps = vec![Step::Project(output)];
        Some(Chain { source: Source::Groups(pipeline), steps, schema: last.schema(), origins, marks: Vec::new() })
    }

    fn join(
        &mut self,
        join_type: JoinType,
        (left, right): (&Arc<dyn ExecutionPlan>, &Arc<dyn ExecutionPlan>),
        on: JoinOnRef<'_>,
        nulls_are_equal: bool,
        filter: Option<&JoinFilter>,
        projection: Option<&[usize]>,
    ) -> Option<Chain> {
        let kind = kind(join_type);
        let build = self.below(left)?;
        let (build, build_keys) = with_keys(build, on.iter().map(|(key, _)| key))?;
        let build_schema = Arc::clone(&build.schema);
        let forms: Vec<Form> =
            build_schema.fields().iter().map(|field| form(field.data_type())).collect::<Option<_>>()?;
        // Which build columns are used is known before the build ends: these alone are kept.
        let (left_columns, right_columns) = (left.schema().fields().len(), right.schema().fields().len());
        let build_columns = (0..left_columns).filter(|_| kind.gives_build_columns()).map(OutputColumn::Build);
        let probe_columns = (0..right_columns).filter(|_| kind.gives_probe_columns()).map(OutputColumn::Probe);
        let mark = kind.gives_mark().then_some(OutputColumn::Mark);
        let all: Vec<OutputColumn> = build_columns.chain(probe_columns).chain(mark).collect();
        let output: Vec<OutputColumn> = match projection {
            Some(columns) => columns.iter().map(|column| all[*column]).collect(),
            None => all,
        };
        let residual_columns = filter.map(|filter| {
            let column = |index: &datafusion::physical_plan::joins::utils::ColumnIndex| match index.side {
                JoinSide::Left => Some(OutputColumn::Build(index.index)),
                JoinSide::Right => Some(OutputColumn::Probe(index.index)),
                JoinSide::None => None,
            };
            filter.column_indices().iter().map(column).collect::<Option<Vec<_>>>()
        });
        let residual_columns = match residual_columns {
            Some(columns) => Some(columns?),
            None => None,
        };
        let mut used: Vec<usize> = build_keys.clone();
        used.extend(output.iter().chain(residual_columns.iter().flatten()).filter_map(|column| match column {
            OutputColumn::Build(column) => Some(*column),
            _ => None,
        }));
        used.sort_unstable();
        used.dedup();
        let moved = |column: usize| used.binary_search(&column).expect("collected above");
        let move_output = |column: &OutputColumn| match column {
            OutputColumn::Build(column) => OutputColumn::Build(moved(*column)),
            other => *other,
        };
        let used_columns: Vec<Expression> = used.iter().map(|column| Expression::Column(*column)).collect();
        let build = projected(build, used_columns, Arc::new(Schema::empty()));
        // Before the pipelines of the other side, which may ask for its keys; what it is to be is known after them.
        let built_by = self.end(build, Sink::Rows);
        let probe = self.below(right)?;
        let (mut probe, probe_keys) = with_keys(probe, on.iter().map(|(_, key)| key))?;
        let probe_forms =
            probe.schema.fields().iter().map(|field| form(field.data_type())).collect::<Option<Vec<_>>>()?;
        let same = |(build_key, probe_key): (&usize, &usize)| {
            let (left, right) =
                (build_schema.field(*build_key).data_type(), probe.schema.field(*probe_key).data_type());
            comparable(left, right)
        };
        if !build_keys.iter().zip(&probe_keys).all(same) {
            return None;
        }
        let residual = match (filter, residual_columns) {
            (Some(filter), Some(columns)) => {
                let condition = expression::lower(filter.expression(), filter.schema())?;
                Some(Residual {
                    columns: columns.iter().map(move_output).collect(),
                    is_true: Arc::new(move |batch, memory| condition.is_true(batch, memory)),
                })
            }
            _ => None,
        };
        let spec = Arc::new(JoinSpec {
            kind,
            keys: build_keys.iter().map(|key| moved(*key)).zip(probe_keys.iter().copied()).collect(),
            nulls_are_equal,
            output: output.iter().map(move_output).collect(),
            residual,
            build_forms: used.iter().map(|column| forms[*column]).collect(),
        });
        self.has_work = true;
        let fields: Vec<_> = output
            .iter()
            .map(|column| match column {
                OutputColumn::Build(column) => build_schema.field(*column).clone(),
                OutputColumn::Probe(column) => probe.schema.field(*column).clone(),
                OutputColumn::Mark => arrow::datatypes::Field::new("mark", DataType::Boolean, false),
            })
            .collect();
        self.pipelines[built_by].sink = Sink::Build(Arc::clone(&spec));
        if !kind.keeps_probe_rows() {
            self.filter_source(&probe, built_by, &probe_keys);
        }
        // The rest that a join gives must not depend on rows that a later one would have left out before.
        let origins = output.iter().map(|column| match column {
            OutputColumn::Probe(column) if !kind.gives_rest() => probe.origins[*column],
            _ => None,
        });
        let origins = origins.collect();
        probe.steps.push(Step::Probe { spec, built_by, forms: probe_forms });
        Some(Chain { origins, schema: Arc::new(Schema::new(fields)), ..probe })
    }

    /// Lets the scan that a probing pipeline reads leave out rows that find nothing.
    fn filter_source(&mut self, probe: &Chain, built_by: usize, keys: &[usize]) {
        for (key, column) in keys.iter().enumerate() {
            if let Some((number, column)) = probe.origins[*column]
                && let Input::Scan(scan) = &mut self.inputs[number]
            {
                scan.keys.push((column, built_by, key));
            }
        }
    }

    /// Says of each scan which of its columns its pipeline reads after the filters.
    fn want(&mut self) {
        for pipeline in &self.pipelines {
            let Source::Input(number) = pipeline.source else { continue };
            let Input::Scan(scan) = &mut self.inputs[number] else { continue };
            match read_first(&pipeline.steps) {
                Some(columns) => columns.into_iter().for_each(|column| scan.wanted[column] = true),
                None => scan.wanted.fill(true),
            }
        }
    }
}

/// The test of a column that a condition is no more than, if the scan makes it.
fn tested_by(scan: &Arc<dyn ExecutionPlan>, condition: &Arc<dyn PhysicalExpr>) -> Option<(usize, Test)> {
    let scan = &scan.downcast_ref::<ShardScanExec>()?.scan;
    let is_plain = condition.downcast_ref::<BinaryExpr>().is_some_and(|binary| {
        let is_comparison = !matches!(binary.op(), Operator::And | Operator::Or);
        let is_leaf = |side: &Arc<dyn PhysicalExpr>| side.is::<Column>() || side.is::<Literal>();
        is_comparison && is_leaf(binary.left()) && is_leaf(binary.right())
    });
    let is_list = condition.downcast_ref::<InListExpr>().is_some_and(|list| list.expr().is::<Column>());
    let mut found = if is_plain || is_list { predicates::of(condition, &scan.columns) } else { Vec::new() };
    let predicate = found.pop().filter(|predicate| found.is_empty() && scan.predicates.contains(predicate))?;
    // Long lists are tested by their bounds alone.
    let is_exact = matches!(&predicate.test, Test::Compare(..)) || matches!(&predicate.test, Test::In(_));
    let column = scan.columns.iter().position(|column| column.id == predicate.column)?;
    is_exact.then_some((column, predicate.test))
}

/// The columns that steps read of their source; `None` for all.
fn read_first(steps: &[Step]) -> Option<Vec<usize>> {
    let mut columns = Vec::new();
    for step in steps {
        match step {
            Step::Filter(conditions) => conditions.iter().for_each(|condition| condition.columns(&mut columns)),
            Step::Project(expressions) => {
                expressions.iter().for_each(|expression| expression.columns(&mut columns));
                return Some(columns);
            }
            Step::Probe { spec, .. } => {
                columns.extend(spec.keys.iter().map(|(_, probe)| *probe));
                let residual = spec.residual.iter().flat_map(|residual| &residual.columns);
                columns.extend(spec.output.iter().chain(residual).filter_map(|column| match column {
                    OutputColumn::Probe(column) => Some(*column),
                    _ => None,
                }));
                return Some(columns);
            }
        }
    }
    None
}

/// What the exchanges between threads above it read.
fn through_exchanges(plan: &Arc<dyn ExecutionPlan>) -> &Arc<dyn ExecutionPlan> {
    let is_exchange =
        plan.is::<RepartitionExec>() || plan.is::<CoalescePartitionsExec>() || plan.is::<CooperativeExec>();
    match plan.children().first() {
        Some(below) if is_exchange && plan.fetch().is_none() => through_exchanges(below),
        _ => plan,
    }
}

fn projected(mut chain: Chain, expressions: Vec<Expression>, schema: SchemaRef) -> Chain {
    let origin = |expression: &Expression| match expression {
        Expression::Column(column) => chain.origins[*column],
        _ => None,
    };
    chain.origins = expressions.iter().map(origin).collect();
    chain.steps.push(Step::Project(expressions));
    Chain { schema, ..chain }
}

/// Some of the columns.
fn chosen(chain: Chain, columns: &[usize]) -> Option<Chain> {
    let schema = Arc::new(chain.schema.project(columns).ok()?);
    Some(projected(chain, columns.iter().map(|column| Expression::Column(*column)).collect(), schema))
}

/// The chain with the keys among its columns, and where they are.
fn with_keys<'a>(chain: Chain, keys: impl Iterator<Item = &'a Arc<dyn PhysicalExpr>>) -> Option<(Chain, Vec<usize>)> {
    let mut columns: Vec<Expression> = (0..chain.schema.fields().len()).map(Expression::Column).collect();
    let mut fields: Vec<_> = chain.schema.fields().iter().cloned().collect();
    let plain = columns.len();
    let mut places = Vec::new();
    for key in keys {
        if let Some(column) = key.downcast_ref::<Column>() {
            places.push(column.index());
            continue;
        }
        columns.push(expression::lower(key, &chain.schema)?);
        fields.push(key.return_field(&chain.schema).ok()?);
        places.push(columns.len() - 1);
    }
    if columns.len() == plain {
        return Some((chain, places));
    }
    let schema = Arc::new(Schema::new(fields));
    Some((projected(chain, columns, schema), places))
}

fn kind(join_type: JoinType) -> JoinKind {
    match join_type {
        JoinType::Inner => JoinKind::Inner,
        JoinType::Left => JoinKind::Left,
        JoinType::Right => JoinKind::Right,
        JoinType::Full => JoinKind::Full,
        JoinType::LeftSemi => JoinKind::LeftSemi,
        JoinType::RightSemi => JoinKind::RightSemi,
        JoinType::LeftAnti => JoinKind::LeftAnti,
        JoinType::RightAnti => JoinKind::RightAnti,
        JoinType::LeftMark => JoinKind::LeftMark,
        JoinType::RightMark => JoinKind::RightMark,
    }
}

/// Whether equal keys of the types are held alike.
fn comparable(left: &DataType, right: &DataType) -> bool {
    match (left, right) {
        (DataType::Decimal128(_, x), DataType::Decimal128(_, y)) => x == y,
        (left, right) => left == right || (form(left) == Some(Form::Texts) && form(right) == Some(Form::Texts)),
    }
}

/// The aggregates that the engine keeps states of.
enum Aggregate {
    CountRows,
    Count,
    Min,
    Max,
    /// `sum` and `avg`: what is summed, in which form the sum comes back.
    Total {
        sum: Kept,
        form: DataType,
    },
}

impl Aggregate {
    fn of(aggregate: &AggregateFunctionExpr, schema: &Schema) -> Option<Self> {
        let is_plain = !aggregate.is_distinct() && aggregate.order_bys().is_empty() && !aggregate.ignore_nulls();
        let arguments = aggregate.expressions();
        let [argument] = arguments.as_slice() else { return None };
        let data_type = argument.data_type(schema).ok()?;
        let is_constant = argument.downcast_ref::<Literal>().is_some_and(|literal| !literal.value().is_null());
        let is_ordered = form(&data_type).is_some() && data_type != DataType::Boolean;
        match aggregate.fun().name() {
            _ if !is_plain => None,
            "count" if is_constant => Some(Self::CountRows),
            "count" => Some(Self::Count),
            "min" if is_ordered => Some(Self::Min),
            "max" if is_ordered => Some(Self::Max),
            "sum" | "avg" => {
                let fields = aggregate.state_fields().ok()?;
                let form = fields.first()?.data_type().clone();
                let sum = match (&data_type, &form) {
                    (DataType::Float64, DataType::Float64) => Kept::FloatSum,
                    (
                        DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Decimal128(..),
                        DataType::Decimal128(..),
                    ) => Kept::Sum,
                    _ => return None,
                };
                (fields.len() == 2).then_some(Self::Total { sum, form })
            }
            _ => None,
        }
    }

    fn argument(&self, aggregate: &AggregateFunctionExpr) -> Option<Arc<dyn PhysicalExpr>> {
        match self {
            Self::CountRows => None,
            _ => aggregate.expressions().into_iter().next(),
        }
    }
}
