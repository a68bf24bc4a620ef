//! Reads the pages of a scan with late materialization: join keys and conditions are tested first, other columns are
//! read for the remaining rows only.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::datatypes::{DataType, SchemaRef};
use blocks::{Kind, RowSet};
use datafusion::common::Result as DfResult;
use engine::expression::{Calls, Memory};
use engine::join::{JoinTable, KeyFilter, Matched, TextFilter};
use engine::pipeline::{Now, Pass};
use engine::{BATCH_ROWS, Batch, Bits, Bounds, Column, Data, Selection, Strings, arrow_form};
use parking_lot::Mutex;
use scan::{PageScan, Read};
use shards::Test;
use shards::cache::{ColumnBlock, PageColumn, PageRows, Piece, take_rows};
use types::Conjuncts;
use types::conjuncts::{Effect, Place};

use crate::plan::ScanFilter;

/// Scan settings and counters that all workers share.
pub(super) struct ScanWork {
    pub(super) schema: SchemaRef,
    pub(super) filters: Vec<ScanFilter>,
    pub(super) keys: Vec<(usize, Arc<KeyFilter>)>,
    /// Columns that join keys must match, whatever their type: column, hash table, key.
    pub(super) texts: Vec<(usize, Arc<JoinTable>, usize)>,
    pub(super) wanted: Vec<bool>,
    /// True if workers are told which shard rows come from.
    pub(super) tells_shards: bool,
    /// Rows that passed the filters, and rows that they removed.
    pub(super) passed: AtomicU64,
    pub(super) removed: AtomicU64,
    /// Calls over Arrow arrays in filters, from the workers that have finished.
    pub(super) calls: Mutex<Calls>,
    /// Clock.
    pub(super) now: Arc<Now>,
}

/// Scan batches of one worker.
pub(super) struct ScanBatches {
    work: Arc<ScanWork>,
    scan: PageScan,
    memory: Memory,
    /// Filters on string columns that can find something.
    texts: Vec<(usize, TextFilter)>,
    /// Evaluation order of the keys, then the string filters, then the conditions.
    order: Conjuncts,
    page: Option<OpenPage>,
    /// True after rows that belong to no page.
    has_ended: bool,
}

/// Item that a source provides.
pub(super) enum Given {
    Rows(Batch),
    /// Probe rows for one chunk of a build side; they come again for each chunk.
    Piece(Batch, Arc<Matched>, Pass),
    /// End of a page, or of neighbouring pages.
    EndOfPage,
    /// Start of rows of this shard, by its position in the scan; `None` for unflushed rows.
    Begun(Option<usize>),
    /// A part of this shard has no rows.
    Passed(usize),
    /// Hash table that the first step probes with the next rows.
    Table(Arc<JoinTable>),
    /// End of the rows that probe a hash table, with an empty hash table to replace it.
    EndOfTable(Arc<JoinTable>),
}

/// Page that is being read.
struct OpenPage {
    page: PageRows,
    /// Strings of dictionary columns, decoded when first needed.
    strings: HashMap<usize, Arc<Strings>>,
    vector: usize,
}

impl ScanBatches {
    /// Returns the reader of one worker over its pages of the scan.
    pub(super) fn new(work: &Arc<ScanWork>, scan: PageScan) -> Self {
        let memory = Memory::timed_by(Some(Arc::clone(&work.now)));
        let filters = work.filters.iter().map(|it| Place::of(it.keys.is_some() || it.condition.never_fails()));
        let text =
            |(column, table, key): &(usize, Arc<JoinTable>, usize)| Some((*column, TextFilter::of(table, *key)?));
        let texts: Vec<_> = work.texts.iter().filter_map(text).collect();
        let keys = std::iter::repeat_n(Place::Optional, work.keys.len() + texts.len());
        let order = Conjuncts::new(keys.chain(filters).collect());
        Self { work: Arc::clone(work), scan, memory, texts, order, page: None, has_ended: false }
    }

    /// Returns the next item; `None` at the end.
    pub(super) async fn next(&mut self) -> DfResult<engine::Result<Option<Given>>> {
        loop {
            if std::mem::take(&mut self.has_ended) {
                return Ok(Ok(Some(Given::EndOfPage)));
            }
            if let Some(page) = &mut self.page {
                match take_rows(&page.page.rows, &mut page.vector, BATCH_ROWS) {
                    Some(rows) => {
                        let batch = page.batch(&rows, &self.work.schema, &self.work.wanted);
                        return Ok(batch.map(|batch| Some(Given::Rows(batch))));
                    }
                    None => {
                        self.page = None;
                        return Ok(Ok(Some(Given::EndOfPage)));
                    }
                }
            }
            match self.scan.next().await? {
                None => return Ok(Ok(None)),
                Some(Read::Begun(shard)) if self.work.tells_shards => return Ok(Ok(Some(Given::Begun(shard)))),
                Some(Read::Passed(shard)) if self.work.tells_shards => return Ok(Ok(Some(Given::Passed(shard)))),
                Some(Read::Begun(_) | Read::Passed(_)) => {}
                Some(Read::Piece(Piece::Page(page))) => {
                    let mut page = OpenPage { page, strings: HashMap::new(), vector: 0 };
                    if let Err(error) = page.narrow(&self.work, &mut self.texts, &mut self.order, &mut self.memory) {
                        return Ok(Err(error));
                    }
                    self.work.passed.fetch_add(page.page.rows.count() as u64, Ordering::Relaxed);
                    self.page = Some(page);
                }
                Some(Read::Piece(Piece::Rows(rows))) => match self.of_arrays(&rows) {
                    Ok(batch) if batch.rows == 0 => {}
                    Ok(batch) => {
                        self.work.passed.fetch_add(batch.rows as u64, Ordering::Relaxed);
                        self.has_ended = true;
                        return Ok(Ok(Some(Given::Rows(batch))));
                    }
                    Err(error) => return Ok(Err(error)),
                },
            }
        }
    }

    /// Returns the rows of Arrow arrays that pass the keys and conditions.
    fn of_arrays(&mut self, rows: &arrow::array::RecordBatch) -> engine::Result<Batch> {
        let columns = rows.columns().iter().map(arrow_form::column).collect::<engine::Result<Vec<_>>>()?;
        let mut batch = Batch { rows: rows.num_rows(), columns };
        for (column, filter) in &self.work.keys {
            let Data::Ints { values, .. } = &batch.columns[*column].data else { continue };
            let kept = filter.keep(values, batch.columns[*column].validity.as_deref());
            batch = batch.select(&Selection::of(&kept))?;
        }
        let before = batch.rows;
        for filter in &self.work.filters {
            let kept = filter.passes(&batch, &mut self.memory)?;
            batch = batch.select(&Selection::of(&kept))?;
        }
        self.work.removed.fetch_add((before - batch.rows) as u64, Ordering::Relaxed);
        Ok(batch)
    }
}

impl Drop for ScanBatches {
    fn drop(&mut self) {
        let mut calls = self.work.calls.lock();
        *calls = calls.and(self.memory.calls());
    }
}

impl OpenPage {
    /// Removes rows that find no join partner or fail a condition.
    fn narrow(
        &mut self,
        work: &ScanWork,
        texts: &mut [(usize, TextFilter)],
        order: &mut Conjuncts,
        memory: &mut Memory,
    ) -> engine::Result<()> {
        let (first_text, first_filter) = (work.keys.len(), work.keys.len() + texts.len());
        let mut removed = 0;
        for place in 0..order.len() {
            let Some(condition) = order.at(place) else { continue };
            let began_ns = (work.now)();
            let (rows_in, rows_out) = if condition < first_text {
                let (column, filter) = &work.keys[condition];
                self.test(work, &[*column], |batch| {
                    let Data::Ints { values, .. } = &batch.columns[*column].data else {
                        return Ok(Bits::all(batch.rows, true));
                    };
                    Ok(filter.keep(values, batch.columns[*column].validity.as_deref()))
                })?
            } else if condition < first_filter {
                let (column, filter) = &mut texts[condition - first_text];
                // Strings without a dictionary would be read for all rows, and again for the remaining ones.
                if !matches!(&self.page.columns[*column], PageColumn::Block(block) if block.has_dictionary()) {
                    continue;
                }
                self.test(work, &[*column], |batch| filter.keep(&batch.columns[*column]))?
            } else {
                let filter = &work.filters[condition - first_filter];
                if filter.test.as_ref().is_some_and(|(column, test)| self.tells(*column, test)) {
                    continue;
                }
                let mut columns = Vec::new();
                filter.condition.columns(&mut columns);
                let (rows_in, rows_out) = self.test(work, &columns, |batch| filter.passes(batch, memory))?;
                removed += rows_in - rows_out;
                (rows_in, rows_out)
            };
            order.note(condition, Effect { rows_in, rows_out, ns: (work.now)().saturating_sub(began_ns) });
        }
        order.end_round();
        work.removed.fetch_add(removed, Ordering::Relaxed);
        Ok(())
    }

    /// Returns whether rows that fail a test were removed by the scan.
    fn tells(&self, column: usize, test: &Test) -> bool {
        matches!(&self.page.columns[column], PageColumn::Block(block) if block.tells(test))
    }

    /// Retains the rows that pass a test of some columns. Returns the numbers of rows tested and retained.
    fn test(
        &mut self,
        work: &ScanWork,
        columns: &[usize],
        mut test: impl FnMut(&Batch) -> engine::Result<Bits>,
    ) -> engine::Result<(u64, u64)> {
        let mut read = vec![false; work.wanted.len()];
        columns.iter().for_each(|column| read[*column] = true);
        let (mut vector, mut rows_in, mut rows_out) = (0, 0, 0);
        while let Some(rows) = take_rows(&self.page.rows, &mut vector, BATCH_ROWS) {
            let batch = self.batch(&rows, &work.schema, &read)?;
            let kept = test(&batch)?;
            let count = kept.count();
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
        let absent = Column::new(Data::Bools(Arc::default()));
        let mut columns = Vec::with_capacity(asked.len());
        for (number, is_asked) in asked.iter().enumerate() {
            if !is_asked {
                columns.push(absent.clone());
                continue;
            }
            columns.push(match &self.page.columns[number] {
                PageColumn::Same(value) => arrow_form::column(value)?.repeated(count)?,
                PageColumn::Block(block) => {
                    let strings = &mut self.strings;
                    let strings = || Arc::clone(strings.entry(number).or_insert_with(|| strings_of(block)));
                    gathered(block, rows, schema.field(number).data_type(), strings)?
                }
            });
        }
        Ok(Batch { rows: count, columns })
    }
}

/// Returns the dictionary of a block, empty if it has none.
fn strings_of(block: &ColumnBlock) -> Arc<Strings> {
    Strings::new(block.strings().unwrap_or_else(|| arrow::array::StringViewArray::from_iter_values([""; 0])))
}

/// Reads the values of some rows of a block.
fn gathered(
    block: &ColumnBlock,
    rows: &RowSet,
    form: &DataType,
    strings: impl FnOnce() -> Arc<Strings>,
) -> engine::Result<Column> {
    let damaged = |_| engine::Error::Form("a packed block of an unexpected kind");
    let bits = |validity: Option<Vec<u64>>, rows: usize| validity.map(|words| Arc::new(Bits::of_words(words, rows)));
    match block {
        ColumnBlock::Numbers(packed) if matches!(packed.head().kind, Kind::Int32 | Kind::Int64) => {
            let head = packed.head();
            let values = packed.gather::<i64>(rows).map_err(damaged)?;
            let validity = bits(values.validity, values.values.len());
            let mut bounds = Bounds { min: head.min, max: head.max };
            if validity.is_some() {
                bounds = bounds.or(Bounds::of(0));
            }
            Ok(Column { data: Data::Ints { values: Arc::new(values.values), bounds }, validity })
        }
        ColumnBlock::Numbers(packed) if *form == DataType::Float64 => {
            let values = packed.gather::<f64>(rows).map_err(damaged)?;
            let validity = bits(values.validity, values.values.len());
            Ok(Column { data: Data::Floats(Arc::new(values.values)), validity })
        }
        ColumnBlock::Passing(page) => {
            if let Some((values, (min, max))) = page.numbers(rows) {
                let validity = bits(values.validity, values.values.len());
                let bounds = Bounds { min: min.into(), max: max.into() };
                let bounds = if validity.is_some() { bounds.or(Bounds::of(0)) } else { bounds };
                return Ok(Column { data: Data::Ints { values: Arc::new(values.values), bounds }, validity });
            }
            if let Some(values) = page.codes(rows) {
                let validity = bits(values.validity, values.values.len());
                let data = Data::Codes { codes: Arc::new(values.values), strings: strings() };
                return Ok(Column { data, validity });
            }
            arrow_form::column(&block.gather(rows, form).map_err(|_| engine::Error::Form("a page of another type"))?)
        }
        ColumnBlock::Codes { codes, .. } => {
            let values = codes.gather::<u32>(rows).map_err(damaged)?;
            let validity = bits(values.validity, values.values.len());
            Ok(Column { data: Data::Codes { codes: Arc::new(values.values), strings: strings() }, validity })
        }
        other => {
            let array = other.gather(rows, form).map_err(|_| engine::Error::Form("a block of an unexpected kind"))?;
            arrow_form::column(&array)
        }
    }
}
