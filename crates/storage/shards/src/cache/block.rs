//! A page of a column as scans read it, and as it is kept in memory unless it passes through: made of Arrow's arrays and made such again for the rows that are wanted.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryArray, BooleanArray, PrimitiveArray, StringViewArray,
    UInt32Array, make_view,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::take;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType, UInt32Type,
};
use blocks::{Bitmap, Block, Compression, Dictionary, DictionaryBuilder, RowSet, TextValues, Value, Values};

use super::passing::Passing;
use super::wide::{UUID_BYTES, intervals_of, of_interval, of_uuid, uuids_of};
use crate::{Error, Result};

/// Decimals of more digits need 128 bits.
pub(super) const NARROW_DIGITS_MAX: u8 = 18;
/// Bytes of a dictionary that are kept for any part of it.
const HEAP_KEPT_MAX: usize = 64 << 10;
/// Strings are codes where each comes so often on average.
pub(super) const REPEATED_MIN: usize = 8;
/// After so many strings those that are mostly new are taken not to repeat.
const TRIED: usize = 1024;

/// Up to [`blocks::BLOCK_ROWS`] rows of a column.
#[derive(Debug)]
pub enum ColumnBlock {
    /// Truth values, integers, decimals, times and floats; UUIDs and intervals as `wide.rs` says.
    Numbers(Block),
    Texts(Block),
    /// Strings of bytes that are no text.
    Bytes(Block),
    /// Strings of which there are few.
    Codes {
        codes: Block,
        strings: Dictionary,
        /// Each string as Arrow refers to it, in `heap`.
        views: Vec<u128>,
        heap: Buffer,
    },
    /// Values of a type that blocks have no form for: arrays of SQL.
    Arrays(ArrayRef),
    /// Of a page that is not kept.
    Passing(Passing),
}

impl ColumnBlock {
    /// The block of these values.
    pub(super) fn of(values: &ArrayRef) -> Result<Self> {
        match Self::packed(values) {
            // Larger than a block may be: dictionaries can hold more than their pages let know.
            Err(Error::Block(blocks::Error::TooLarge(_))) => Ok(Self::Arrays(Arc::clone(values))),
            block => block,
        }
    }

    fn packed(values: &ArrayRef) -> Result<Self> {
        let nulls = values.nulls().filter(|nulls| nulls.null_count() != 0);
        let validity = nulls.map(|nulls| Bitmap::new(nulls.validity(), nulls.offset()));
        let bytes = match values.data_type() {
            DataType::Boolean => {
                let values: Vec<bool> = values.as_boolean().values().iter().collect();
                blocks::encode_bool(&values, validity)?
            }
            DataType::Int16 => {
                let values: Vec<i32> =
                    values.as_primitive::<Int16Type>().values().iter().map(|v| i32::from(*v)).collect();
                blocks::encode_i32(&values, validity)?
            }
            DataType::Int32 => blocks::encode_i32(values.as_primitive::<Int32Type>().values(), validity)?,
            DataType::Date32 => blocks::encode_i32(values.as_primitive::<Date32Type>().values(), validity)?,
            DataType::UInt32 => {
                let values: Vec<i64> =
                    values.as_primitive::<UInt32Type>().values().iter().map(|v| i64::from(*v)).collect();
                blocks::encode_i64(&values, validity)?
            }
            DataType::Int64 => blocks::encode_i64(values.as_primitive::<Int64Type>().values(), validity)?,
            DataType::Time64(TimeUnit::Microsecond) => {
                blocks::encode_i64(values.as_primitive::<Time64MicrosecondType>().values(), validity)?
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                blocks::encode_i64(values.as_primitive::<TimestampMicrosecondType>().values(), validity)?
            }
            DataType::Decimal128(digits, _) if *digits <= NARROW_DIGITS_MAX => {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "18 digits fit 63 bits; NULL rows may hold anything"
                )]
                let narrow = |value: &i128| *value as i64;
                let values: Vec<i64> = values.as_primitive::<Decimal128Type>().values().iter().map(narrow).collect();
                blocks::encode_i64(&values, validity)?
            }
            DataType::Decimal128(..) => {
                blocks::encode_i128(values.as_primitive::<Decimal128Type>().values(), validity)?
            }
            DataType::Float32 => blocks::encode_f32(values.as_primitive::<Float32Type>().values(), validity)?,
            DataType::Float64 => blocks::encode_f64(values.as_primitive::<Float64Type>().values(), validity)?,
            DataType::FixedSizeBinary(UUID_BYTES) => {
                let values: Vec<i128> = values.as_fixed_size_binary().iter().map(|id| id.map_or(0, of_uuid)).collect();
                blocks::encode_i128(&values, validity)?
            }
            DataType::Interval(IntervalUnit::MonthDayNano) => {
                let values = values.as_primitive::<IntervalMonthDayNanoType>().values();
                let values: Vec<i128> = values.iter().map(of_interval).collect();
                blocks::encode_i128(&values, validity)?
            }
            DataType::Binary => {
                let values: Vec<&[u8]> = values.as_binary::<i32>().iter().map(Option::unwrap_or_default).collect();
                return Ok(Self::Bytes(Block::open(blocks::encode_text(&values, validity, Compression::None)?)?));
            }
            DataType::Utf8View => return Self::of_texts(values.as_string_view(), validity),
            _ => return Ok(Self::Arrays(Arc::clone(values))),
        };
        Ok(Self::Numbers(Block::open(bytes)?))
    }

    fn of_texts(values: &StringViewArray, validity: Option<Bitmap<'_>>) -> Result<Self> {
        let (mut strings, mut seen) = (DictionaryBuilder::default(), SeenViews::new());
        let mut numbers: Vec<u32> = Vec::with_capacity(values.len());
        for (row, view) in values.views().iter().enumerate() {
            if values.len() < strings.len() * REPEATED_MIN {
                let texts: Vec<&[u8]> = values.iter().map(|value| value.unwrap_or_default().as_bytes()).collect();
                return Ok(Self::Texts(Block::open(blocks::encode_text(&texts, validity, Compression::None)?)?));
            }
            // What lies where a NULL is may be anything.
            let view = if values.is_valid(row) { *view } else { 0 };
            let number = seen
                .number(view, || strings.insert(if values.is_valid(row) { values.value(row).as_bytes() } else { &[] }));
            numbers.push(number);
        }
        Self::numbered(strings, &numbers, validity)
    }

    /// The block of strings; what is there for a NULL is nothing.
    pub(super) fn of_strings(texts: &[&[u8]], validity: Option<Bitmap<'_>>) -> Result<Self> {
        let mut strings = DictionaryBuilder::default();
        let mut numbers: Vec<u32> = Vec::with_capacity(texts.len());
        for (row, text) in texts.iter().enumerate() {
            if texts.len() < strings.len() * REPEATED_MIN || (row == TRIED && TRIED / 2 < strings.len()) {
                return Ok(Self::Texts(Block::open(blocks::encode_text(texts, validity, Compression::None)?)?));
            }
            numbers.push(strings.insert(text));
        }
        Self::numbered(strings, &numbers, validity)
    }

    fn numbered(strings: DictionaryBuilder, numbers: &[u32], validity: Option<Bitmap<'_>>) -> Result<Self> {
        let (strings, code_of) = strings.finish()?;
        let codes: Vec<u32> = numbers.iter().map(|number| code_of[*number as usize]).collect();
        Ok(Self::of_codes(Block::open(blocks::encode_codes(&codes, validity)?)?, strings))
    }

    /// Codes of these strings.
    pub(super) fn of_codes(codes: Block, strings: Dictionary) -> Self {
        let (views, heap) = views_of(&strings);
        Self::Codes { codes, strings, views, heap: Buffer::from_vec(heap) }
    }

    pub(super) fn rows(&self) -> usize {
        match self {
            Self::Numbers(block) | Self::Texts(block) | Self::Bytes(block) => block.head().rows,
            Self::Codes { codes, .. } => codes.head().rows,
            Self::Arrays(values) => values.len(),
            Self::Passing(passing) => passing.rows,
        }
    }

    /// What it takes in memory, roughly.
    pub(super) fn memory_bytes(&self) -> u64 {
        const ROOM: usize = 256;
        let bytes = match self {
            Self::Numbers(block) | Self::Texts(block) | Self::Bytes(block) => block.bytes().len(),
            Self::Codes { codes, strings, views, heap } => {
                codes.bytes().len() + strings.bytes().len() + views.len() * size_of::<u128>() + heap.len()
            }
            Self::Arrays(values) => values.get_array_memory_size(),
            Self::Passing(page) => page.memory_bytes(),
        };
        (bytes + ROOM) as u64
    }

    /// Whether it has codes of strings.
    #[must_use]
    pub fn has_dictionary(&self) -> bool {
        match self {
            Self::Codes { .. } => true,
            Self::Passing(page) => page.has_dictionary(),
            _ => false,
        }
    }

    /// All strings of a block of codes, by their codes.
    #[must_use]
    pub fn strings(&self) -> Option<StringViewArray> {
        match self {
            Self::Codes { views, heap, .. } => Some(texts_of(views.clone(), heap.clone(), None)),
            Self::Passing(page) => page.strings(),
            _ => None,
        }
    }

    /// The values of the rows in a set, as an array of `form`.
    ///
    /// # Errors
    /// Where the block's values are of another type.
    pub fn gather(&self, rows: &RowSet, form: &DataType) -> Result<ArrayRef> {
        match self {
            Self::Numbers(block) => gather_numbers(block, rows, form),
            Self::Texts(block) => {
                let texts = block.gather_text(rows)?;
                let views =
                    texts.offsets.windows(2).map(|ends| view(&texts.bytes[ends[0]..ends[1]], ends[0])).collect();
                Ok(Arc::new(texts_of(views, Buffer::from_vec(texts.bytes), texts.validity)))
            }
            Self::Bytes(block) => Ok(Arc::new(binary(block.gather_text(rows)?)?)),
            Self::Codes { codes, views, heap, .. } => {
                let Values { values: codes, validity } = codes.gather::<u32>(rows)?;
                // A NULL has the code 0, and there may be no string at all.
                let views = codes.iter().map(|code| views.get(*code as usize).copied().unwrap_or_default()).collect();
                Ok(Arc::new(compact(texts_of(views, heap.clone(), validity))))
            }
            Self::Arrays(values) => {
                let places = rows.iter().map(|row| u32::try_from(row).expect("a block has fewer than 2^32 rows"));
                Ok(take(values, &UInt32Array::from_iter_values(places), None)?)
            }
            Self::Passing(page) => page.gather(rows, form),
        }
    }
}

/// Numbers of an array's strings by what the array refers to them by, which is shorter to compare: equal views are equal strings, and those
/// of a page with a dictionary are few.
struct SeenViews {
    places: Vec<(u128, Option<u32>)>,
}

impl SeenViews {
    const PLACES: usize = 1 << 10;

    fn new() -> Self {
        Self { places: vec![(0, None); Self::PLACES] }
    }

    /// The number of a view's string, which is found where it is not remembered.
    #[inline]
    fn number(&mut self, view: u128, find: impl FnOnce() -> u32) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "the two halves, and fewer bits than places")]
        let at = {
            let folded = (view as u64) ^ (view >> 64) as u64;
            (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - Self::PLACES.ilog2())) as usize
        };
        let place = &mut self.places[at];
        match *place {
            (known, Some(number)) if known == view => number,
            _ => {
                let number = find();
                *place = (view, Some(number));
                number
            }
        }
    }
}

/// A dictionary's strings as Arrow refers to them, and where they lie then.
pub(super) fn views_of(strings: &Dictionary) -> (Vec<u128>, Vec<u8>) {
    let (mut heap, mut views) = (Vec::new(), Vec::with_capacity(strings.len()));
    for string in (0..).map_while(|code| strings.get(code)) {
        views.push(view(string, heap.len()));
        heap.extend_from_slice(string);
    }
    (views, heap)
}

/// Strings without those of their heap that are not among them, where these are most: who keeps or counts the few would keep and count
/// all.
pub(super) fn compact(texts: StringViewArray) -> StringViewArray {
    let held: usize = texts.data_buffers().iter().map(|heap| heap.len()).sum();
    if held <= HEAP_KEPT_MAX || held <= 2 * texts.total_buffer_bytes_used() { texts } else { texts.gc() }
}

fn binary(values: TextValues) -> Result<BinaryArray> {
    let TextValues { offsets, bytes, validity } = values;
    let nulls = nulls_of(validity, offsets.len() - 1);
    let offset = |offset: usize| i32::try_from(offset).map_err(|_| blocks::Error::TooLarge("strings of bytes"));
    let offsets = offsets.into_iter().map(offset).collect::<blocks::Result<Vec<i32>>>()?;
    Ok(BinaryArray::try_new(OffsetBuffer::new(offsets.into()), Buffer::from_vec(bytes), nulls)?)
}

fn gather_numbers(block: &Block, rows: &RowSet, form: &DataType) -> Result<ArrayRef> {
    Ok(match form {
        DataType::Boolean => {
            let Values { values, validity } = block.gather::<bool>(rows)?;
            let nulls = nulls_of(validity, values.len());
            Arc::new(BooleanArray::new(BooleanBuffer::from(values), nulls))
        }
        #[expect(clippy::cast_possible_truncation, reason = "the block was made of 16-bit values")]
        DataType::Int16 => primitive::<Int16Type, i32>(block, rows, form, |value| value as i16)?,
        DataType::Int32 => primitive::<Int32Type, i32>(block, rows, form, |value| value)?,
        DataType::Date32 => primitive::<Date32Type, i32>(block, rows, form, |value| value)?,
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the block was made of such values"
        )]
        DataType::UInt32 => primitive::<UInt32Type, i64>(block, rows, form, |value| value as u32)?,
        DataType::Int64 => primitive::<Int64Type, i64>(block, rows, form, |value| value)?,
        DataType::Time64(_) => primitive::<Time64MicrosecondType, i64>(block, rows, form, |value| value)?,
        DataType::Timestamp(..) => primitive::<TimestampMicrosecondType, i64>(block, rows, form, |value| value)?,
        DataType::Decimal128(..) => primitive::<Decimal128Type, i128>(block, rows, form, |value| value)?,
        DataType::FixedSizeBinary(_) => Arc::new(uuids_of(block.gather::<i128>(rows)?)?),
        DataType::Interval(_) => Arc::new(intervals_of(block.gather::<i128>(rows)?)?),
        DataType::Float32 => primitive::<Float32Type, f32>(block, rows, form, |value| value)?,
        _ => primitive::<Float64Type, f64>(block, rows, form, |value| value)?,
    })
}

fn primitive<T: ArrowPrimitiveType, V: Value>(
    block: &Block,
    rows: &RowSet,
    form: &DataType,
    convert: impl Fn(V) -> T::Native,
) -> Result<ArrayRef> {
    let Values { values, validity } = block.gather::<V>(rows)?;
    let nulls = nulls_of(validity, values.len());
    let values: Vec<T::Native> = values.into_iter().map(convert).collect();
    let values = PrimitiveArray::<T>::try_new(ScalarBuffer::from(values), nulls)?;
    Ok(Arc::new(values.with_data_type(form.clone())))
}

pub(super) fn nulls_of(validity: Option<Vec<u64>>, rows: usize) -> Option<NullBuffer> {
    validity.map(|words| NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(words), 0, rows)))
}

pub(super) fn view(string: &[u8], at: usize) -> u128 {
    make_view(string, 0, u32::try_from(at).expect("the strings of a block are fewer than 2^32 bytes"))
}

pub(super) fn texts_of(views: Vec<u128>, heap: Buffer, validity: Option<Vec<u64>>) -> StringViewArray {
    let nulls = nulls_of(validity, views.len());
    #[expect(
        unsafe_code,
        reason = "asking millions of strings again whether they are UTF-8 costs more than reading them"
    )]
    // SAFETY: every view is of a string that a `StringViewArray` gave to `of_texts`, or that was looked at when it came from a file, and
    // says where in `heap` that string lies.
    unsafe {
        StringViewArray::new_unchecked(ScalarBuffer::from(views), vec![heap], nulls)
    }
}
