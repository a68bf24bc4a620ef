//! Reads the pages of a scan with late materialization: join keys and conditions are tested first, other columns are
//! read for the remaining rows only.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::datatypes::{DataType, SchemaRef};
use blocks::{RowSet, ValueKind};
use datafusion::common::Result as DfResult;
use engine::expression::{CallCosts, ExpressionState};
use engine::join::{JoinHashTable, KeyFilter, ProbeMatches, TextKeyFilter};
use engine::pipeline::{BuildChunkPosition, NanoClock};
use engine::{BATCH_ROWS, Batch, Bitmap, Bounds, Column, ColumnData, Dictionary, Selection, arrow_convert};
use parking_lot::Mutex;
use scan::{PageEvent, PageReader};
use shards::Test;
use shards::cache::{ColumnBlock, PageColumn, PageRows, ScanBatch, take_rows};
use types::ConjunctOrder;
use types::conjunct_order::{ConditionStats, Mobility};

use crate::plan::ScanFilter;

/// Scan settings and counters that all workers share.
pub(super) struct SharedScan {
    pub(super) schema: SchemaRef,
    pub(super) filters: Vec<ScanFilter>,
    pub(super) keys: Vec<(usize, Arc<KeyFilter>)>,
    /// Columns that join keys must match, whatever their type: column, hash table, key.
    pub(super) string_keys: Vec<(usize, Arc<JoinHashTable>, usize)>,
    pub(super) late_columns: Vec<bool>,
    /// True if workers are told which shard rows come from.
    pub(super) reports_shards: bool,
    /// Rows that passed the filters, and rows that they removed.
    pub(super) passed_rows: AtomicU64,
    pub(super) removed_rows: AtomicU64,
    /// Calls over Arrow arrays in filters, from the workers that have finished.
    pub(super) arrow_calls: Mutex<CallCosts>,
    /// Clock.
    pub(super) clock: Arc<NanoClock>,
}

/// Scan batches of one worker.
pub(super) struct ScanReader {
    shared: Arc<SharedScan>,
    scan: PageReader,
    expression_state: ExpressionState,
    /// Filters on string columns that can find something.
    text_filters: Vec<(usize, TextKeyFilter)>,
    /// Evaluation order of the keys, then the string filters, then the conditions.
    condition_order: ConjunctOrder,
    page: Option<OpenPage>,
    /// True after rows that belong to no page.
    is_after_unflushed_rows: bool,
}

/// Item that a source provides.
pub(super) enum SourceItem {
    Rows(Batch),
    /// Probe rows for one chunk of a build side; they come again for each chunk.
    ProbeChunk(Batch, Arc<ProbeMatches>, BuildChunkPosition),
    /// End of a page, or of neighbouring pages.
    EndOfPage,
    /// Start of rows of this shard, by its position in the scan; `None` for unflushed rows.
    ShardStart(Option<usize>),
    /// A part of this shard has no rows.
    EmptyShardPart(usize),
    /// Hash table that the first step probes with the next rows.
    HashTable(Arc<JoinHashTable>),
    /// End of the rows that probe a hash table, with an empty hash table to replace it.
    EndOfHashTable(Arc<JoinHashTable>),
}

/// Page that is being read.
struct OpenPage {
    page: PageRows,
    /// Strings of dictionary columns, decoded when first needed.
    strings: HashMap<usize, Arc<Dictionary>>,
    vector: usize,
}

impl ScanReader {
    /// Returns the reader of one worker over its pages of the scan.
    pub(super) fn new(work: &Arc<SharedScan>, scan: PageReader) -> Self {
        let memory = ExpressionState::with_clock(Some(Arc::clone(&work.clock)));
        let filters =
            work.filters.iter().map(|it| Mobility::from_never_fails(it.keys.is_some() || it.condition.never_fails()));
        let text = |(column, table, key): &(usize, Arc<JoinHashTable>, usize)| {
            Some((*column, TextKeyFilter::try_new(table, *key)?))
        };
        let texts: Vec<_> = work.string_keys.iter().filter_map(text).collect();
        let keys = std::iter::repeat_n(Mobility::Optional, work.keys.len() + texts.len());
        let order = ConjunctOrder::new(keys.chain(filters).collect());
        Self {
            shared: Arc::clone(work),
            scan,
            expression_state: memory,
            text_filters: texts,
            condition_order: order,
            page: None,
            is_after_unflushed_rows: false,
        }
    }

    /// Returns the next item; `None` at the end.
    pub(super) async fn next(&mut self) -> DfResult<engine::Result<Option<SourceItem>>> {
        loop {
            if std::mem::take(&mut self.is_after_unflushed_rows) {
                return Ok(Ok(Some(SourceItem::EndOfPage)));
            }
            if let Some(page) = &mut self.page {
                match take_rows(&page.page.rows, &mut page.vector, BATCH_ROWS) {
                    Some(rows) => {
                        let batch = page.batch(&rows, &self.shared.schema, &self.shared.late_columns);
                        return Ok(batch.map(|batch| Some(SourceItem::Rows(batch))));
                    }
                    None => {
                        self.page = None;
                        return Ok(Ok(Some(SourceItem::EndOfPage)));
                    }
                }
            }
            match self.scan.next().await? {
                None => return Ok(Ok(None)),
                Some(PageEvent::PartStarted(shard)) if self.shared.reports_shards => {
                    return Ok(Ok(Some(SourceItem::ShardStart(shard))));
                }
                Some(PageEvent::PartPruned(shard)) if self.shared.reports_shards => {
                    return Ok(Ok(Some(SourceItem::EmptyShardPart(shard))));
                }
                Some(PageEvent::PartStarted(_) | PageEvent::PartPruned(_)) => {}
                Some(PageEvent::Piece(ScanBatch::Page(page))) => {
                    let mut page = OpenPage { page, strings: HashMap::new(), vector: 0 };
                    if let Err(error) = page.filter_rows(
                        &self.shared,
                        &mut self.text_filters,
                        &mut self.condition_order,
                        &mut self.expression_state,
                    ) {
                        return Ok(Err(error));
                    }
                    self.shared.passed_rows.fetch_add(page.page.rows.count() as u64, Ordering::Relaxed);
                    self.page = Some(page);
                }
                Some(PageEvent::Piece(ScanBatch::Rows(rows))) => match self.filter_arrays(&rows) {
                    Ok(batch) if batch.rows == 0 => {}
                    Ok(batch) => {
                        self.shared.passed_rows.fetch_add(batch.rows as u64, Ordering::Relaxed);
                        self.is_after_unflushed_rows = true;
                        return Ok(Ok(Some(SourceItem::Rows(batch))));
                    }
                    Err(error) => return Ok(Err(error)),
                },
            }
        }
    }

    /// Returns the rows of Arrow arrays that pass the keys and conditions.
    fn filter_arrays(&mut self, rows: &arrow::array::RecordBatch) -> engine::Result<Batch> {
        let columns = rows.columns().iter().map(arrow_convert::from_array).collect::<engine::Result<Vec<_>>>()?;
        let mut batch = Batch { rows: rows.num_rows(), columns };
        for (column, filter) in &self.shared.keys {
            let ColumnData::Ints { values, .. } = &batch.columns[*column].data else { continue };
            let kept = filter.matching_rows(values, batch.columns[*column].validity.as_deref());
            batch = batch.select(&Selection::from_bitmap(&kept))?;
        }
        let before = batch.rows;
        for filter in &self.shared.filters {
            let kept = filter.passes(&batch, &mut self.expression_state)?;
            batch = batch.select(&Selection::from_bitmap(&kept))?;
        }
        self.shared.removed_rows.fetch_add((before - batch.rows) as u64, Ordering::Relaxed);
        Ok(batch)
    }
}

impl Drop for ScanReader {
    fn drop(&mut self) {
        let mut calls = self.shared.arrow_calls.lock();
        *calls = calls.merge(self.expression_state.call_costs());
    }
}

impl OpenPage {
    /// Removes rows that find no join partner or fail a condition.
    fn filter_rows(
        &mut self,
        work: &SharedScan,
        texts: &mut [(usize, TextKeyFilter)],
        order: &mut ConjunctOrder,
        memory: &mut ExpressionState,
    ) -> engine::Result<()> {
        let (first_text, first_filter) = (work.keys.len(), work.keys.len() + texts.len());
        let mut removed = 0;
        for place in 0..order.len() {
            let Some(condition) = order.condition_at(place) else { continue };
            let began_ns = (work.clock)();
            let (rows_in, rows_out) = if condition < first_text {
                let (column, filter) = &work.keys[condition];
                self.retain_matching(work, &[*column], |batch| {
                    let ColumnData::Ints { values, .. } = &batch.columns[*column].data else {
                        return Ok(Bitmap::filled(batch.rows, true));
                    };
                    Ok(filter.matching_rows(values, batch.columns[*column].validity.as_deref()))
                })?
            } else if condition < first_filter {
                let (column, filter) = &mut texts[condition - first_text];
                // Strings without a dictionary would be read for all rows, and again for the remaining ones.
                if !matches!(&self.page.columns[*column], PageColumn::Block(block) if block.has_dictionary()) {
                    continue;
                }
                self.retain_matching(work, &[*column], |batch| filter.matching_rows(&batch.columns[*column]))?
            } else {
                let filter = &work.filters[condition - first_filter];
                if filter.test.as_ref().is_some_and(|(column, test)| self.is_decided(*column, test)) {
                    continue;
                }
                let mut columns = Vec::new();
                filter.condition.collect_columns(&mut columns);
                let (rows_in, rows_out) = self.retain_matching(work, &columns, |batch| filter.passes(batch, memory))?;
                removed += rows_in - rows_out;
                (rows_in, rows_out)
            };
            order.record(condition, ConditionStats { rows_in, rows_out, ns: (work.clock)().saturating_sub(began_ns) });
        }
        order.end_round();
        work.removed_rows.fetch_add(removed, Ordering::Relaxed);
        Ok(())
    }

    /// Returns whether rows that fail a test were removed by the scan.
    fn is_decided(&self, column: usize, test: &Test) -> bool {
        matches!(&self.page.columns[column], PageColumn::Block(block) if block.can_evaluate(test))
    }

    /// Retains the rows that pass a test of some columns. Returns the numbers of rows tested and retained.
    fn retain_matching(
        &mut self,
        work: &SharedScan,
        columns: &[usize],
        mut test: impl FnMut(&Batch) -> engine::Result<Bitmap>,
    ) -> engine::Result<(u64, u64)> {
        let mut read = vec![false; work.late_columns.len()];
        columns.iter().for_each(|column| read[*column] = true);
        let (mut vector, mut rows_in, mut rows_out) = (0, 0, 0);
        while let Some(rows) = take_rows(&self.page.rows, &mut vector, BATCH_ROWS) {
            let batch = self.batch(&rows, &work.schema, &read)?;
            let kept = test(&batch)?;
            let count = kept.count_ones();
            if count < kept.rows() {
                self.page.rows.retain(&rows, kept.words());
            }
            rows_in += kept.rows() as u64;
            rows_out += count as u64;
        }
        Ok((rows_in, rows_out))
    }

    /// Returns some rows as a batch; columns that are not `asked` for are empty.
    fn batch(&mut self, rows: &RowSet, schema: &SchemaRef, asked: &[bool]) -> engine::Result<Batch> {
        let count = rows.count();
        let absent = Column::new(ColumnData::Bools(Arc::default()));
        let mut columns = Vec::with_capacity(asked.len());
        for (number, is_asked) in asked.iter().enumerate() {
            if !is_asked {
                columns.push(absent.clone());
                continue;
            }
            columns.push(match &self.page.columns[number] {
                PageColumn::Constant(value) => arrow_convert::from_array(value)?.repeat_scalar(count)?,
                PageColumn::Block(block) => {
                    let strings = &mut self.strings;
                    let strings = || Arc::clone(strings.entry(number).or_insert_with(|| dictionary_of(block)));
                    gather(block, rows, schema.field(number).data_type(), strings)?
                }
            });
        }
        Ok(Batch { rows: count, columns })
    }
}

/// Returns the dictionary of a block, empty if it has none.
fn dictionary_of(block: &ColumnBlock) -> Arc<Dictionary> {
    Dictionary::new(block.strings().unwrap_or_else(|| arrow::array::StringViewArray::from_iter_values([""; 0])))
}

/// Reads the values of some rows of a block.
fn gather(
    block: &ColumnBlock,
    rows: &RowSet,
    form: &DataType,
    strings: impl FnOnce() -> Arc<Dictionary>,
) -> engine::Result<Column> {
    let damaged = |_| engine::Error::Internal("a scanned block of bit-packed integers has an unexpected encoding");
    let bits =
        |validity: Option<Vec<u64>>, rows: usize| validity.map(|words| Arc::new(Bitmap::from_words(words, rows)));
    match block {
        ColumnBlock::Numbers(packed) if matches!(packed.header().kind, ValueKind::Int32 | ValueKind::Int64) => {
            let head = packed.header();
            let values = packed.gather::<i64>(rows).map_err(damaged)?;
            let validity = bits(values.validity, values.values.len());
            let mut bounds = Bounds { min: head.min, max: head.max };
            if validity.is_some() {
                bounds = bounds.union(Bounds::from_value(0));
            }
            Ok(Column { data: ColumnData::Ints { values: Arc::new(values.values), bounds }, validity })
        }
        ColumnBlock::Numbers(packed) if *form == DataType::Float64 => {
            let values = packed.gather::<f64>(rows).map_err(damaged)?;
            let validity = bits(values.validity, values.values.len());
            Ok(Column { data: ColumnData::Floats(Arc::new(values.values)), validity })
        }
        ColumnBlock::Uncached(page) => {
            if let Some((values, (min, max))) = page.numbers(rows) {
                let validity = bits(values.validity, values.values.len());
                let bounds = Bounds { min: min.into(), max: max.into() };
                let bounds = if validity.is_some() { bounds.union(Bounds::from_value(0)) } else { bounds };
                return Ok(Column { data: ColumnData::Ints { values: Arc::new(values.values), bounds }, validity });
            }
            if let Some(values) = page.codes(rows) {
                let validity = bits(values.validity, values.values.len());
                let data = ColumnData::Dictionary { indices: Arc::new(values.values), dictionary: strings() };
                return Ok(Column { data, validity });
            }
            arrow_convert::from_array(
                &block
                    .gather(rows, form)
                    .map_err(|_| engine::Error::Internal("a scanned page has another type than its column"))?,
            )
        }
        ColumnBlock::Dictionary { codes, .. } => {
            let values = codes.gather::<u32>(rows).map_err(damaged)?;
            let validity = bits(values.validity, values.values.len());
            Ok(Column {
                data: ColumnData::Dictionary { indices: Arc::new(values.values), dictionary: strings() },
                validity,
            })
        }
        other => {
            let array = other
                .gather(rows, form)
                .map_err(|_| engine::Error::Internal("a scanned block has an unexpected encoding"))?;
            arrow_convert::from_array(&array)
        }
    }
}
