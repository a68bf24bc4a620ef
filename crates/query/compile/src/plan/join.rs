//! Compiles joins: the left side becomes a hash table, which the rows of the right side probe.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::{JoinSide, JoinType, NullEquality};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter, JoinOnRef};
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec};
use engine::PhysicalType;
use engine::arrow_convert::{is_comparable, physical_type};
use engine::expression::Expression;
use engine::join::{JoinKind, JoinSpec, OutputColumn, Residual};
use engine::pipeline::{Sink, Step};
use plan::cancellation::unwrap_condition;

use super::{OpenPipelines, ProgramBuilder, SourceColumn};
use crate::expression;

/// Properties of a join, whichever operator implements it.
pub(super) struct JoinOperator<'a> {
    kind: JoinKind,
    left: &'a Arc<dyn ExecutionPlan>,
    right: &'a Arc<dyn ExecutionPlan>,
    on: JoinOnRef<'a>,
    nulls_are_equal: bool,
    filter: Option<&'a JoinFilter>,
    projection: Option<&'a [usize]>,
}

impl<'a> JoinOperator<'a> {
    /// Returns the join of an operator; `None` for other operators and for joins that the engine does not support.
    pub(super) fn from_plan(plan: &'a Arc<dyn ExecutionPlan>) -> Option<Self> {
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            let kind = match (join.null_aware, join.join_type()) {
                (false, join_type) => join_kind(*join_type),
                (true, JoinType::LeftAnti) if join.filter().is_none() && join.on().len() == 1 => JoinKind::LeftNotIn,
                // A NULL key would then count only among the rows that pass the filter.
                (true, _) => return None,
            };
            return Some(Self {
                kind,
                left: join.left(),
                right: join.right(),
                on: join.on(),
                nulls_are_equal: join.null_equality() == NullEquality::NullEqualsNull,
                filter: join.filter(),
                projection: join.projection.as_deref(),
            });
        }
        let (on, nulls_are_equal): (JoinOnRef<'_>, _) = (&[], false);
        if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
            let (kind, left, right) = (join_kind(*join.join_type()), join.left(), join.right());
            let (filter, projection) = (join.filter(), join.projection().as_deref());
            return Some(Self { kind, left, right, on, nulls_are_equal, filter, projection });
        }
        let join = plan.downcast_ref::<CrossJoinExec>()?;
        let (kind, left, right) = (JoinKind::Inner, join.left(), join.right());
        Some(Self { kind, left, right, on, nulls_are_equal, filter: None, projection: None })
    }

    /// Returns the output columns, by side and position.
    fn output(&self) -> Vec<OutputColumn> {
        let count = |side: &Arc<dyn ExecutionPlan>| side.schema().fields().len();
        let columns = |side, is_given| (0..count(side)).filter(move |_| is_given);
        let build = columns(self.left, self.kind.outputs_build_columns()).map(OutputColumn::Build);
        let probe = columns(self.right, self.kind.outputs_probe_columns()).map(OutputColumn::Probe);
        let mark = self.kind.outputs_mark().then_some(OutputColumn::Mark);
        let all: Vec<OutputColumn> = build.chain(probe).chain(mark).collect();
        match self.projection {
            Some(columns) => columns.iter().map(|column| all[*column]).collect(),
            None => all,
        }
    }

    /// Returns the columns that the join's filter reads.
    fn filter_columns(&self) -> Option<Vec<OutputColumn>> {
        let column = |index: &ColumnIndex| match index.side {
            JoinSide::Left => Some(OutputColumn::Build(index.index)),
            JoinSide::Right => Some(OutputColumn::Probe(index.index)),
            JoinSide::None => None,
        };
        self.filter.into_iter().flat_map(JoinFilter::column_indices).map(column).collect()
    }
}

impl ProgramBuilder<'_> {
    /// Compiles a join.
    pub(super) fn lower_join(&mut self, join: &JoinOperator<'_>) -> Option<OpenPipelines> {
        let kind = join.kind;
        let build = self.lower_input(join.left)?;
        let (build, build_keys) = build.with_keys(join.on.iter().map(|(key, _)| key))?;
        let (build_schema, build_sources) = (Arc::clone(&build.schema), build.value_sources.clone());
        let mut padded = build.null_padded_inputs.clone();
        let build_origins = match build.branches.as_slice() {
            [branch] if can_filter_build(kind) => branch.filterable_sources.clone(),
            _ => vec![None; build_sources.len()],
        };
        let build_forms = forms(&build_schema)?;
        let (output, filtered) = (join.output(), join.filter_columns()?);
        // Only the build columns that are used are stored in the hash table; they are known before the build side ends.
        let kept = BuildColumns::new(&build_keys, output.iter().chain(&filtered));
        let columns = kept.columns.iter().map(|column| Expression::Column(*column)).collect();
        let build = build.project(columns, Arc::new(Schema::empty()));
        // The build pipeline comes before those of the probe side, whose scans may use its keys; its final sink is set
        // below.
        let built_by = self.end_pipelines(build, &Sink::Output);
        let probe = self.lower_input(join.right)?;
        let (mut probe, probe_keys) = probe.with_keys(join.on.iter().map(|(_, key)| key))?;
        let probe_forms = forms(&probe.schema)?;
        let are_comparable = |(build_key, probe_key): (&usize, &usize)| {
            are_comparable(build_schema.field(*build_key).data_type(), probe.schema.field(*probe_key).data_type())
        };
        if !build_keys.iter().zip(&probe_keys).all(are_comparable) {
            return None;
        }
        let residual = match join.filter {
            Some(filter) => Some(Residual {
                columns: kept.remap(&filtered),
                condition: expression::lower(unwrap_condition(filter.expression()), filter.schema())?,
            }),
            None => None,
        };
        let spec = Arc::new(JoinSpec {
            kind,
            keys: build_keys.iter().map(|key| kept.position(*key)).zip(probe_keys.iter().copied()).collect(),
            nulls_are_equal: join.nulls_are_equal,
            output: kept.remap(&output),
            residual,
            build_types: kept.columns.iter().map(|column| build_forms[*column]).collect(),
        });
        self.has_work = true;
        let field = |column: &OutputColumn| match column {
            OutputColumn::Build(column) => build_schema.field(*column).clone(),
            OutputColumn::Probe(column) => probe.schema.field(*column).clone(),
            OutputColumn::Mark => Field::new("mark", DataType::Boolean, false),
        };
        let schema = Arc::new(Schema::new(output.iter().map(field).collect::<Vec<_>>()));
        self.replace_sink(built_by, &Sink::Build(Arc::clone(&spec)));
        if !kind.outputs_unmatched_probe_rows() {
            self.add_key_filter(&probe, built_by, &probe_keys);
        }
        for branch in &mut probe.branches {
            // Unmatched rows of a join must not depend on rows that a later join would have filtered before it.
            let origin = |column: &OutputColumn| match column {
                OutputColumn::Probe(column) if !kind.outputs_build_rows() => branch.filterable_sources[*column],
                OutputColumn::Build(column) => build_origins[*column],
                _ => None,
            };
            branch.filterable_sources = output.iter().map(origin).collect();
        }
        let sources = output.iter().map(|column| match column {
            OutputColumn::Probe(column) => probe.value_sources[*column],
            OutputColumn::Build(column) => build_sources[*column],
            OutputColumn::Mark => None,
        });
        let sources = sources.collect();
        padded.extend(&probe.null_padded_inputs);
        let inputs =
            |sources: &[Option<SourceColumn>]| sources.iter().flatten().map(|(input, _)| *input).collect::<Vec<_>>();
        if matches!(kind, JoinKind::Left | JoinKind::Full) {
            padded.extend(inputs(&probe.value_sources));
        }
        if kind.outputs_unmatched_probe_rows() {
            padded.extend(inputs(&build_sources));
        }
        padded.sort_unstable();
        padded.dedup();
        if kind == JoinKind::Inner {
            for (build_key, probe_key) in build_keys.iter().zip(&probe_keys) {
                if let (Some(one), Some(other)) = (build_sources[*build_key], probe.value_sources[*probe_key]) {
                    self.dependencies.add_equal(one, other);
                }
            }
        }
        probe.push(&Step::Probe { spec, build_pipeline: built_by, probe_types: probe_forms });
        Some(OpenPipelines {
            branches: probe.branches,
            value_sources: sources,
            null_padded_inputs: padded,
            schema,
            is_ordered: false,
        })
    }
}

/// Returns whether a build row only contributes output rows of its own, so that filtering it removes these and changes
/// no others.
fn can_filter_build(kind: JoinKind) -> bool {
    match kind {
        JoinKind::Inner
        | JoinKind::Left
        | JoinKind::LeftSemi
        | JoinKind::LeftAnti
        | JoinKind::LeftNotIn
        | JoinKind::LeftMark => true,
        JoinKind::Right | JoinKind::Full | JoinKind::RightSemi | JoinKind::RightAnti | JoinKind::RightMark => false,
    }
}

/// Columns of the build side that are stored in the hash table.
struct BuildColumns {
    /// Positions in ascending order.
    columns: Vec<usize>,
}

impl BuildColumns {
    fn new<'a>(keys: &[usize], used: impl Iterator<Item = &'a OutputColumn>) -> Self {
        let mut columns = keys.to_vec();
        columns.extend(used.filter_map(|column| match column {
            OutputColumn::Build(column) => Some(*column),
            _ => None,
        }));
        columns.sort_unstable();
        columns.dedup();
        Self { columns }
    }

    /// Returns the position of a build column among the stored columns.
    fn position(&self, column: usize) -> usize {
        self.columns.binary_search(&column).expect("a build column that is used is stored")
    }

    fn remap(&self, columns: &[OutputColumn]) -> Vec<OutputColumn> {
        let moved = |column: &OutputColumn| match column {
            OutputColumn::Build(column) => OutputColumn::Build(self.position(*column)),
            other => *other,
        };
        columns.iter().map(moved).collect()
    }
}

fn forms(schema: &Schema) -> Option<Vec<PhysicalType>> {
    schema.fields().iter().map(|field| physical_type(field.data_type())).collect()
}

fn join_kind(join_type: JoinType) -> JoinKind {
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

/// Returns whether equal keys of these types have the same representation.
fn are_comparable(left: &DataType, right: &DataType) -> bool {
    match (left, right) {
        (DataType::Decimal128(_, x), DataType::Decimal128(_, y)) => x == y,
        (left, right) if left == right => is_comparable(left),
        (left, right) => {
            physical_type(left) == Some(PhysicalType::Texts) && physical_type(right) == Some(PhysicalType::Texts)
        }
    }
}
