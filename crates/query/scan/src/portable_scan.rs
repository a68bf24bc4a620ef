//! Serialized scans, which workers execute over the same storage.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow::datatypes::SchemaRef;
use catalog::{Distribution, Role, Schema, Storage, Table, TableOrder, TableRows};
use datafusion::common::stats::Precision;
use datafusion::common::{Result as DfResult, Statistics};
use datafusion::physical_expr::PhysicalExpr;
use functions::error::to_datafusion;
use roaring::RoaringBitmap;
use rowstore::{RowVersion, Tuple};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use shards::{ColumnDef, ColumnStats, Hll, Predicate, ShardMeta, ShardReader};
use storage_error::from_rowstore;
use types::{CachePolicy, ColumnId, Oid, RowId};

use crate::scan::{Scan, ScanShard};
use crate::scan_parts::Part;
use crate::scan_planner::ScanPlanner;
use crate::shard_scan_exec::ShardScanExec;
use crate::unflushed_by_index::UnflushedRows;

/// Maximum bytes of unflushed rows sent with a scan, in their stored form; a scan with more runs in the instance.
const UNFLUSHED_BYTES_MAX: usize = 4 << 20;
/// Maximum number of unflushed rows sent with a scan.
const UNFLUSHED_ROWS_MAX: usize = 65_536;

/// Serializable form of a scan, without its dynamic filters.
#[derive(Debug, Serialize, Deserialize)]
pub struct PortableScan {
    table: Oid,
    name: String,
    cache: CachePolicy,
    columns: Vec<ColumnDef>,
    /// Columns that only predicates read.
    tested: Vec<ColumnDef>,
    predicates: Vec<Predicate>,
    shards: Vec<PortableShard>,
    bucketed_by: Option<ColumnId>,
    /// Number of shards of the table, with those that were pruned.
    shard_count: usize,
    parts: Vec<Part>,
    partitions: usize,
    limit: Option<usize>,
    /// Unflushed rows in their stored form, with their ids.
    fresh: Vec<(u64, Bytes)>,
    rows: Option<usize>,
}

/// Serializable form of a scan's shard.
#[derive(Debug, Serialize, Deserialize)]
struct PortableShard {
    meta: ShardMeta,
    number: usize,
    deleted: Option<Bytes>,
    /// Rows that other processes read.
    of_others: Vec<Range<u32>>,
    buckets: u64,
}

/// Byte string, serialized as such.
struct Bytes(Vec<u8>);

/// Reason why a scan cannot be sent to a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotPortable {
    /// It reads an external table, whose files are open in this process only.
    ExternalTable,
    UnflushedRows,
}

impl PortableScan {
    /// Returns the schema of its batches.
    pub fn schema(&self) -> SchemaRef {
        ShardReader::schema(&self.columns)
    }
}

impl ShardScanExec {
    /// Returns the reason why it cannot be sent to a worker; `None` if it can.
    pub fn not_portable_because(&self) -> Option<NotPortable> {
        let scan = &self.scan;
        if scan.shards.iter().any(|shard| shard.file.is_some()) {
            return Some(NotPortable::ExternalTable);
        }
        if !self.reads_unflushed() {
            return None;
        }
        let rows = scan.unflushed();
        let bytes =
            |rows: &[(RowId, Arc<RowVersion>)]| rows.iter().map(|(_, row)| row.tuple.as_bytes().len()).sum::<usize>();
        let is_large = UNFLUSHED_ROWS_MAX < rows.len() || UNFLUSHED_BYTES_MAX < bytes(rows);
        is_large.then_some(NotPortable::UnflushedRows)
    }

    pub(super) fn reads_unflushed(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Unflushed(_)))
    }

    /// Converts the scan to its serializable form.
    ///
    /// # Errors
    /// `XX000` if it [cannot be sent](Self::not_portable_because).
    pub fn to_portable(&self) -> DfResult<PortableScan> {
        let refused =
            |why: &str| to_datafusion(types::SqlError::internal(format!("a scan cannot be sent to a worker: {why}")));
        match self.not_portable_because() {
            Some(NotPortable::ExternalTable) => return Err(refused("its files are open in this process only")),
            Some(NotPortable::UnflushedRows) => return Err(refused("it reads too many unflushed rows")),
            None => {}
        }
        let scan = &self.scan;
        let is_wanted = |column: &ColumnDef| scan.columns.iter().any(|wanted| wanted.id == column.id);
        let is_tested = |column: &ColumnDef| scan.predicates.iter().any(|predicate| predicate.column == column.id);
        let tested = scan.table_columns.iter().filter(|column| is_tested(column) && !is_wanted(column));
        let tested: Vec<ColumnDef> = tested.cloned().collect();
        let is_known = |stats: &&ColumnStats| {
            let mut known = scan.columns.iter().chain(&tested);
            known.any(|column| column.id == stats.column)
        };
        // Distinct-value sketches and frequent values serve planning only, which is over.
        let stats =
            |stats: &ColumnStats| ColumnStats { distinct: Hll::default(), heavy_hitters: Vec::new(), ..stats.clone() };
        let shard = |shard: &ScanShard| PortableShard {
            meta: ShardMeta {
                columns: shard.meta.columns.iter().filter(is_known).map(stats).collect(),
                buckets: None,
                ..shard.meta.as_ref().clone()
            },
            number: shard.table_position,
            deleted: shard.deleted.as_deref().map(serialize_bitmap),
            of_others: shard.rows_read_elsewhere.clone(),
            buckets: shard.buckets,
        };
        let shards = scan.shards.iter().map(shard).collect();
        let fresh = if self.reads_unflushed() { scan.unflushed() } else { &[] };
        // The number of rows in an index range was an estimate when the parts were cut.
        let fresh_rows = fresh.len();
        let part = |part: &Part| match part {
            Part::Unflushed(rows) => Part::Unflushed(rows.start.min(fresh_rows)..rows.end.min(fresh_rows)),
            settled @ Part::Flushed { .. } => settled.clone(),
        };
        Ok(PortableScan {
            table: scan.table.oid,
            name: scan.table.name.clone(),
            cache: scan.table.cache,
            columns: scan.columns.to_vec(),
            tested,
            predicates: scan.predicates.clone(),
            shards,
            bucketed_by: scan.bucketed_by,
            shard_count: scan.shard_count,
            parts: self.parts.iter().map(part).collect(),
            partitions: self.partitions(),
            limit: self.row_limit(),
            fresh: fresh.iter().map(|(id, row)| Ok((id.0, self.encode_row(row)?))).collect::<DfResult<_>>()?,
            rows: scan.statistics.num_rows.get_value().copied(),
        })
    }

    /// Encodes the columns of an unflushed row that the scan reads.
    fn encode_row(&self, row: &RowVersion) -> DfResult<Bytes> {
        let mut columns: Vec<_> = self.scan.columns.iter().map(|column| column.id).collect();
        columns.sort_unstable();
        columns.dedup();
        let reader = row.tuple.reader();
        let values = columns.into_iter().filter_map(|column| Some((column, reader.get(column)?)));
        let tuple = Tuple::encode(values).map_err(|error| to_datafusion(from_rowstore(error)))?;
        Ok(Bytes(tuple.into_bytes().to_vec()))
    }

    /// Rebuilds a scan over the storage and the caches of `planner`.
    ///
    /// # Errors
    /// A form that is inconsistent.
    pub fn try_from_portable(
        form: PortableScan,
        planner: &ScanPlanner,
        dynamic: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Self, MalformedScan> {
        let columns: Arc<[ColumnDef]> = form.columns.into();
        let table_columns = columns.iter().chain(&form.tested).cloned().collect();
        let schema = ShardReader::schema(&columns);
        let fresh: UnflushedRows = form.fresh.into_iter().map(parse_unflushed_row).collect::<Result<_, _>>()?;
        let shards: Vec<ScanShard> =
            form.shards.into_iter().map(PortableShard::into_scan_shard).collect::<Result<_, _>>()?;
        if form.shard_count < shards.len() {
            return Err(MalformedScan("it reads more shards than its table has"));
        }
        if form.partitions == 0 || !form.parts.iter().all(|part| part.is_within(&shards, fresh.len())) {
            return Err(MalformedScan("a part lies outside its shards or unflushed rows"));
        }
        let mut statistics = Statistics::new_unknown(&schema);
        statistics.num_rows = form.rows.map_or(Precision::Absent, Precision::Inexact);
        let table = Arc::new(table_stub(form.table, form.name, form.cache));
        let scan = Scan {
            objects: planner.objects.clone(),
            opened: Arc::clone(&planner.opened),
            blocks: planner.blocks.for_table(table.oid, table.cache),
            fragments: Arc::clone(&planner.fragments),
            table,
            columns,
            table_columns,
            predicates: form.predicates,
            shard_count: form.shard_count,
            shards,
            bucketed_by: form.bucketed_by,
            rows: Arc::new(TableRows::default()),
            unflushed_range: None,
            unflushed_rows_max: fresh.len(),
            unflushed: OnceLock::from(fresh),
            statistics,
            _pin: None,
        };
        let parts = form.parts.into_iter().collect();
        Ok(Self::new(Arc::new(scan), parts, form.partitions, form.limit).with_dynamic_filters(dynamic))
    }
}

impl Part {
    /// Returns true if its rows exist.
    fn is_within(&self, shards: &[ScanShard], fresh_rows: usize) -> bool {
        match self {
            Self::Flushed { shard, row_group, rows } => {
                let group = shards.get(*shard).and_then(|shard| shard.meta.row_groups.get(*row_group));
                rows.start <= rows.end && group.is_some_and(|group| rows.end as u64 <= group.rows)
            }
            Self::Unflushed(rows) => rows.start <= rows.end && rows.end <= fresh_rows,
        }
    }
}

impl PortableShard {
    fn into_scan_shard(self) -> Result<ScanShard, MalformedScan> {
        let deleted = self.deleted.map(|bytes| RoaringBitmap::deserialize_from(bytes.0.as_slice())).transpose();
        let deleted = deleted.map_err(|_| MalformedScan("the bitmap of deleted rows is damaged"))?.map(Arc::new);
        let (meta, number, of_others) = (Arc::new(self.meta), self.number, self.of_others);
        if of_others.iter().any(|rows| rows.end < rows.start || meta.rows < u64::from(rows.end)) {
            return Err(MalformedScan("rows of other processes lie outside their shard"));
        }
        let shard = ScanShard {
            meta,
            table_position: number,
            deleted,
            rows_read_elsewhere: of_others,
            buckets: self.buckets,
            file: None,
        };
        // For this process they are as good as deleted.
        Ok(ScanShard { deleted: shard.excluded_rows(), rows_read_elsewhere: Vec::new(), ..shard })
    }
}

/// Error of an inconsistent serialized scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a scan sent by another process is malformed: {0}")]
pub struct MalformedScan(&'static str);

fn parse_unflushed_row((id, bytes): (u64, Bytes)) -> Result<(RowId, Arc<RowVersion>), MalformedScan> {
    let tuple = Tuple::validate(bytes.0.into()).map_err(|_| MalformedScan("an unflushed row is damaged"))?;
    Ok((RowId(id), Arc::new(RowVersion { commit_ts: RowVersion::UNCOMMITTED, tuple, index_entries: Arc::default() })))
}

fn serialize_bitmap(bitmap: &RoaringBitmap) -> Bytes {
    let mut bytes = Vec::with_capacity(bitmap.serialized_size());
    bitmap.serialize_into(&mut bytes).expect("writing to a vector cannot fail");
    Bytes(bytes)
}

/// Creates a table descriptor with only the properties that scans read.
fn table_stub(oid: Oid, name: String, cache: CachePolicy) -> Table {
    Table {
        oid,
        schema: Schema::PUBLIC,
        name,
        owner: Role::BOOTSTRAP,
        columns: Vec::new(),
        constraints: Vec::new(),
        distribution: Distribution::Random,
        order: TableOrder::None,
        comment: None,
        next_column: 1,
        storage: Storage::Column,
        indexes: Vec::new(),
        options: Vec::new(),
        temporary: None,
        cache,
        external: None,
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Bytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }

            fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Bytes, E> {
                Ok(Bytes(bytes))
            }
        }
        deserializer.deserialize_byte_buf(Visitor)
    }
}
