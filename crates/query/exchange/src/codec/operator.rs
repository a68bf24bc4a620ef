//! Operators as plain data: Kiln's own, and those of DataFusion whose message is incomplete.

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::Schema;
use datafusion::common::{DataFusionError, Result as DfResult};
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::aggregates::{AggregateExec, PhysicalGroupBy};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning};
use datafusion_proto::protobuf;
use functions::series::SeriesType as SeriesKind;
use operators::portable_operator::{PortableOperator, SeriesColumn};
use prost::Message;
use scan::{MalformedScan, PortableScan, ScanPlanner, ShardScanExec};
use serde::{Deserialize, Serialize};

use super::{EncodedMessage, RecordError, decode_message, malformed_error};
use crate::{LocalExchangeExec, RouteToOwnersExec};

/// Encoded form of an operator, without its inputs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum OperatorRecord {
    Scan {
        scan: PortableScan,
        dynamic: Vec<EncodedMessage>,
    },
    ProjectSet {
        columns: Vec<SeriesColumnRecord>,
        schema: EncodedMessage,
    },
    RankLimit {
        parts: Vec<EncodedMessage>,
        order: Vec<SortKeyRecord>,
        most: usize,
    },
    /// DataFusion's messages for limits and filters cut row counts to 32 bits.
    GlobalLimit {
        skip: usize,
        fetch: Option<usize>,
        order: Vec<SortKeyRecord>,
    },
    LocalLimit {
        fetch: usize,
        order: Vec<SortKeyRecord>,
    },
    Filter {
        predicate: EncodedMessage,
        projection: Option<Vec<usize>>,
        fetch: Option<usize>,
    },
    CoalescePartitions {
        fetch: Option<usize>,
    },
    /// Replaces the grouping sets of the aggregation below by `sets` empty ones: DataFusion's message encodes these as
    /// no sets at all.
    EmptyGroupingSets {
        sets: usize,
    },
    /// Exchange between the threads of a task.
    WithinTasks {
        keys: Vec<EncodedMessage>,
        partitions: usize,
    },
    /// Routing of rows to the owners of their buckets.
    ToOwners {
        keys: Vec<usize>,
        numbers: Vec<i16>,
    },
}

/// Output column of a set-returning projection.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum SeriesColumnRecord {
    Passed(EncodedMessage),
    Series { kind: SeriesKind, args: Vec<EncodedMessage> },
    Ordinal,
}

/// Sort key of a rank.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SortKeyRecord {
    expression: EncodedMessage,
    descending: bool,
    nulls_first: bool,
}

/// Encodes an expression.
type EncodeExpression<'a> = &'a dyn Fn(&Arc<dyn PhysicalExpr>) -> DfResult<protobuf::PhysicalExprNode>;
/// Decodes an expression over the columns of a schema.
type DecodeExpression<'a> = &'a dyn Fn(&protobuf::PhysicalExprNode, &Schema) -> DfResult<Arc<dyn PhysicalExpr>>;

impl OperatorRecord {
    /// Returns the encoded form of an operator of Kiln; `None` for others.
    pub(super) fn from_kiln(operator: &dyn ExecutionPlan, expression: EncodeExpression<'_>) -> DfResult<Option<Self>> {
        let write = |expr: &Arc<dyn PhysicalExpr>| Ok(expression(expr)?.encode_to_vec());
        let all = |all: &[Arc<dyn PhysicalExpr>]| all.iter().map(write).collect::<DfResult<Vec<_>>>();
        if let Some(scan) = operator.downcast_ref::<ShardScanExec>() {
            return Ok(Some(Self::Scan { scan: scan.to_portable()?, dynamic: all(scan.dynamic_filters())? }));
        }
        if let Some(within) = operator.downcast_ref::<LocalExchangeExec>() {
            let partitions = within.properties().output_partitioning().partition_count();
            return Ok(Some(Self::WithinTasks { keys: all(within.keys())?, partitions }));
        }
        if let Some(to_owners) = operator.downcast_ref::<RouteToOwnersExec>() {
            let (keys, numbers) = (to_owners.keys().to_vec(), to_owners.numbers().to_vec());
            return Ok(Some(Self::ToOwners { keys, numbers }));
        }
        Ok(match PortableOperator::try_from_operator(operator) {
            Some(PortableOperator::ProjectSet { columns, schema }) => {
                let column = |column: &SeriesColumn| {
                    Ok(match column {
                        SeriesColumn::Passed(expr) => SeriesColumnRecord::Passed(write(expr)?),
                        SeriesColumn::Series { kind, args } => {
                            SeriesColumnRecord::Series { kind: *kind, args: all(args)? }
                        }
                        SeriesColumn::Ordinal => SeriesColumnRecord::Ordinal,
                    })
                };
                let columns = columns.iter().map(column).collect::<DfResult<_>>()?;
                let schema =
                    protobuf::Schema::try_from(schema.as_ref()).map_err(|error| malformed_error(&error.to_string()))?;
                Some(Self::ProjectSet { columns, schema: schema.encode_to_vec() })
            }
            Some(PortableOperator::RankLimit { parts, order, most }) => {
                let order = order.iter().map(|key| SortKeyRecord::new(key, expression)).collect::<DfResult<_>>()?;
                Some(Self::RankLimit { parts: all(&parts)?, order, most })
            }
            None => None,
        })
    }

    /// Returns the encoded form of an operator of DataFusion; `None` if DataFusion's message is complete.
    pub(super) fn from_library(
        operator: &dyn ExecutionPlan,
        expression: EncodeExpression<'_>,
    ) -> DfResult<Option<Self>> {
        let keys = |order: &Option<LexOrdering>| {
            order.iter().flatten().map(|key| SortKeyRecord::new(key, expression)).collect::<DfResult<Vec<_>>>()
        };
        if let Some(limit) = operator.downcast_ref::<GlobalLimitExec>() {
            let order = keys(limit.required_ordering())?;
            return Ok(Some(Self::GlobalLimit { skip: limit.skip(), fetch: limit.fetch(), order }));
        }
        if let Some(limit) = operator.downcast_ref::<LocalLimitExec>() {
            return Ok(Some(Self::LocalLimit { fetch: limit.fetch(), order: keys(limit.required_ordering())? }));
        }
        if let Some(filter) = operator.downcast_ref::<FilterExec>() {
            return Ok(Some(Self::Filter {
                predicate: expression(filter.predicate())?.encode_to_vec(),
                projection: filter.projection().as_ref().map(|columns| columns.to_vec()),
                fetch: filter.fetch(),
            }));
        }
        let coalesce = operator.downcast_ref::<CoalescePartitionsExec>();
        Ok(coalesce.map(|coalesce| Self::CoalescePartitions { fetch: coalesce.fetch() }))
    }

    /// Returns the fields of an aggregation that DataFusion's message lacks; that message becomes the input of this
    /// form.
    pub(super) fn missing_fields(operator: &dyn ExecutionPlan) -> Option<Self> {
        let group_by = operator.downcast_ref::<AggregateExec>()?.group_expr();
        let sets = group_by.groups().len();
        (group_by.has_grouping_set() && group_by.expr().is_empty()).then_some(Self::EmptyGroupingSets { sets })
    }

    /// Returns the operator over its inputs; scans read from `scans`.
    pub(super) fn into_operator(
        self,
        inputs: &[Arc<dyn ExecutionPlan>],
        scans: &ScanPlanner,
        expression: DecodeExpression<'_>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let read = |bytes: &EncodedMessage, schema: &Schema| expression(&decode_message(bytes)?, schema);
        let all = |all: &[EncodedMessage], schema: &Schema| {
            all.iter().map(|bytes| read(bytes, schema)).collect::<DfResult<Vec<_>>>()
        };
        let keys = |keys: &[SortKeyRecord], schema: &Schema| {
            let key = |key: &SortKeyRecord| {
                let options = SortOptions { descending: key.descending, nulls_first: key.nulls_first };
                Ok(PhysicalSortExpr { expr: read(&key.expression, schema)?, options })
            };
            keys.iter().map(key).collect::<DfResult<Vec<_>>>()
        };
        let own = match (self, inputs) {
            (Self::Scan { scan, dynamic }, []) => {
                let schema = scan.schema();
                let scan = ShardScanExec::try_from_portable(scan, scans, all(&dynamic, &schema)?);
                return Ok(Arc::new(scan.map_err(malformed_scan_error)?));
            }
            (Self::GlobalLimit { skip, fetch, order }, [input]) => {
                let mut limit = GlobalLimitExec::new(Arc::clone(input), skip, fetch);
                limit.set_required_ordering(LexOrdering::new(keys(&order, &input.schema())?));
                return Ok(Arc::new(limit));
            }
            (Self::LocalLimit { fetch, order }, [input]) => {
                let mut limit = LocalLimitExec::new(Arc::clone(input), fetch);
                limit.set_required_ordering(LexOrdering::new(keys(&order, &input.schema())?));
                return Ok(Arc::new(limit));
            }
            (Self::Filter { predicate, projection, fetch }, [input]) => {
                let columns = input.schema().fields().len();
                if projection.iter().flatten().any(|column| columns <= *column) {
                    return Err(
                        malformed_error("an encoded filter projects columns that its input does not have").into()
                    );
                }
                let filter = FilterExecBuilder::new(read(&predicate, &input.schema())?, Arc::clone(input))
                    .apply_projection(projection)?
                    .with_fetch(fetch);
                return Ok(Arc::new(filter.build()?));
            }
            (Self::CoalescePartitions { fetch }, [input]) => {
                return Ok(Arc::new(CoalescePartitionsExec::new(Arc::clone(input)).with_fetch(fetch)));
            }
            (Self::EmptyGroupingSets { sets }, [input]) => {
                let aggregate = input.downcast_ref::<AggregateExec>().filter(|it| it.group_expr().expr().is_empty());
                let aggregate = aggregate.ok_or_else(|| {
                    malformed_error("encoded grouping sets are not above an aggregation without keys")
                })?;
                let with_sets = AggregateExec::try_new(
                    *aggregate.mode(),
                    PhysicalGroupBy::new(Vec::new(), Vec::new(), vec![Vec::new(); sets], true),
                    aggregate.aggr_expr().to_vec(),
                    aggregate.filter_expr().to_vec(),
                    Arc::clone(aggregate.input()),
                    aggregate.input_schema(),
                )?;
                return Ok(Arc::new(with_sets.with_limit_options(aggregate.limit_options())));
            }
            (Self::WithinTasks { keys, partitions }, [input]) if 0 < partitions => {
                let keys = all(&keys, &input.schema())?;
                let exchange = RepartitionExec::try_new(Arc::clone(input), Partitioning::Hash(keys, partitions))?;
                return Ok(Arc::new(exchange));
            }
            (Self::ToOwners { keys, numbers }, [input]) => {
                return Ok(Arc::new(RouteToOwnersExec::try_new(Arc::clone(input), keys, numbers.into())?));
            }
            (Self::ProjectSet { columns, schema }, [input]) => {
                let proto: protobuf::Schema = decode_message(&schema)?;
                let schema = Schema::try_from(&proto).map_err(|error| malformed_error(&error.to_string()))?;
                if schema.fields().len() != columns.len() {
                    return Err(malformed_error("an encoded projection of sets needs a field for each column").into());
                }
                let below = input.schema();
                let column = |column: &SeriesColumnRecord| {
                    Ok(match column {
                        SeriesColumnRecord::Passed(expr) => SeriesColumn::Passed(read(expr, &below)?),
                        SeriesColumnRecord::Series { kind, args } => {
                            SeriesColumn::Series { kind: *kind, args: all(args, &below)? }
                        }
                        SeriesColumnRecord::Ordinal => SeriesColumn::Ordinal,
                    })
                };
                let columns = columns.iter().map(column).collect::<DfResult<_>>()?;
                PortableOperator::ProjectSet { columns, schema: Arc::new(schema) }
            }
            (Self::RankLimit { parts, order, most }, [input]) if 0 < most => {
                let below = input.schema();
                let order = keys(&order, &below)?;
                PortableOperator::RankLimit { parts: all(&parts, &below)?, order, most }
            }
            _ => return Err(malformed_error("an encoded operator has the wrong inputs or parameters").into()),
        };
        let [input] = inputs else {
            return Err(malformed_error("an encoded operator has the wrong number of inputs").into());
        };
        Ok(own.with_input(Arc::clone(input)))
    }
}

impl SortKeyRecord {
    fn new(key: &PhysicalSortExpr, expression: EncodeExpression<'_>) -> DfResult<Self> {
        let SortOptions { descending, nulls_first } = key.options;
        Ok(Self { expression: expression(&key.expr)?.encode_to_vec(), descending, nulls_first })
    }
}

fn malformed_scan_error(error: MalformedScan) -> DataFusionError {
    RecordError::Other(error.to_string()).into()
}
