//! Page of a column in the form that scans read: packed blocks, Arrow arrays or, uncached, as in the file. Built from
//! Arrow arrays and turned back into arrays for selected rows.

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
use blocks::{
    Block, BlockValue, Compression, Dictionary, DictionaryBuilder, RowSet, TextValues, ValidityBitmap, Values,
};

use super::int128_conversion::{UUID_BYTES, interval_to_i128, intervals_from_i128, uuid_to_i128, uuids_from_i128};
use super::uncached_page::UncachedPage;
use crate::{Error, Result};

/// Largest precision of decimals that fit 64 bits; others need 128.
pub(super) const I64_DECIMAL_DIGITS_MAX: u8 = 18;
/// String buffers up to this many bytes are never compacted.
const UNCOMPACTED_HEAP_BYTES_MAX: usize = 64 << 10;
/// Strings are dictionary-encoded if each distinct one occurs at least this often on average.
pub(super) const DICTIONARY_REPEATS_MIN: usize = 8;
/// Number of strings after which dictionary encoding is given up if more than half of them were distinct.
const DICTIONARY_TRIAL_ROWS: usize = 1024;

/// Page of a column: up to [`blocks::BLOCK_ROWS`] rows.
#[derive(Debug)]
pub enum ColumnBlock {
    /// Booleans, integers, decimals, dates, times and floats; UUIDs and intervals as 128-bit numbers (`int128_conversion.rs`).
    Numbers(Block),
    /// Strings that rarely repeat.
    Texts(Block),
    /// Byte strings (`bytea`).
    Bytes(Block),
    /// Dictionary-encoded strings.
    Dictionary {
        /// Index into the dictionary, for each row.
        codes: Block,
        /// Distinct strings, in order.
        strings: Dictionary,
        /// Arrow string view of each dictionary entry, pointing into `heap`.
        views: Vec<u128>,
        /// Bytes of all dictionary entries.
        heap: Buffer,
    },
    /// Values of a type that blocks cannot encode, such as SQL arrays, as an Arrow array.
    Arrays(ArrayRef),
    /// Page that was read without being cached, as it is in the file.
    Uncached(UncachedPage),
}

impl ColumnBlock {
    /// Encodes an Arrow array as a block; falls back to the array itself where a block would be too large.
    pub(super) fn from_array(values: &ArrayRef) -> Result<Self> {
        match Self::try_encode(values) {
            // Dictionaries can hold more bytes than the sizes of their pages suggest.
            Err(Error::Block(blocks::Error::TooLarge(_))) => Ok(Self::Arrays(Arc::clone(values))),
            block => block,
        }
    }

    /// Encodes an Arrow array as a block.
    fn try_encode(values: &ArrayRef) -> Result<Self> {
        let nulls = values.nulls().filter(|nulls| nulls.null_count() != 0);
        let validity = nulls.map(|nulls| ValidityBitmap::new(nulls.validity(), nulls.offset()));
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
            DataType::Decimal128(digits, _) if *digits <= I64_DECIMAL_DIGITS_MAX => {
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
                let values: Vec<i128> =
                    values.as_fixed_size_binary().iter().map(|id| id.map_or(0, uuid_to_i128)).collect();
                blocks::encode_i128(&values, validity)?
            }
            DataType::Interval(IntervalUnit::MonthDayNano) => {
                let values = values.as_primitive::<IntervalMonthDayNanoType>().values();
                let values: Vec<i128> = values.iter().map(interval_to_i128).collect();
                blocks::encode_i128(&values, validity)?
            }
            DataType::Binary => {
                let values: Vec<&[u8]> = values.as_binary::<i32>().iter().map(Option::unwrap_or_default).collect();
                return Ok(Self::Bytes(Block::open(blocks::encode_text(&values, validity, Compression::None)?)?));
            }
            DataType::Utf8View => return Self::from_string_views(values.as_string_view(), validity),
            _ => return Ok(Self::Arrays(Arc::clone(values))),
        };
        Ok(Self::Numbers(Block::open(bytes)?))
    }

    /// Encodes strings, with a dictionary if they repeat.
    fn from_string_views(values: &StringViewArray, validity: Option<ValidityBitmap<'_>>) -> Result<Self> {
        let (mut strings, mut seen) = (DictionaryBuilder::default(), ViewCache::new());
        let mut numbers: Vec<u32> = Vec::with_capacity(values.len());
        for (row, view) in values.views().iter().enumerate() {
            if values.len() < strings.len() * DICTIONARY_REPEATS_MIN {
                let texts: Vec<&[u8]> = values.iter().map(|value| value.unwrap_or_default().as_bytes()).collect();
                return Ok(Self::Texts(Block::open(blocks::encode_text(&texts, validity, Compression::None)?)?));
            }
            // The view at a NULL is arbitrary.
            let view = if values.is_valid(row) { *view } else { 0 };
            let number = seen.number_or_insert(view, || {
                strings.insert(if values.is_valid(row) { values.value(row).as_bytes() } else { &[] })
            });
            numbers.push(number);
        }
        Self::from_dictionary_builder(strings, &numbers, validity)
    }

    /// Encodes strings, with a dictionary if they repeat; NULL rows hold the empty string.
    pub(super) fn from_strings(texts: &[&[u8]], validity: Option<ValidityBitmap<'_>>) -> Result<Self> {
        let mut strings = DictionaryBuilder::default();
        let mut numbers: Vec<u32> = Vec::with_capacity(texts.len());
        for (row, text) in texts.iter().enumerate() {
            if texts.len() < strings.len() * DICTIONARY_REPEATS_MIN
                || (row == DICTIONARY_TRIAL_ROWS && DICTIONARY_TRIAL_ROWS / 2 < strings.len())
            {
                return Ok(Self::Texts(Block::open(blocks::encode_text(texts, validity, Compression::None)?)?));
            }
            numbers.push(strings.insert(text));
        }
        Self::from_dictionary_builder(strings, &numbers, validity)
    }

    /// Builds a dictionary-encoded block from each row's insertion number in `strings`.
    fn from_dictionary_builder(
        strings: DictionaryBuilder,
        numbers: &[u32],
        validity: Option<ValidityBitmap<'_>>,
    ) -> Result<Self> {
        let (strings, code_of) = strings.finish()?;
        let codes: Vec<u32> = numbers.iter().map(|number| code_of[*number as usize]).collect();
        Ok(Self::from_codes(Block::open(blocks::encode_codes(&codes, validity)?)?, strings))
    }

    /// Builds a dictionary-encoded block.
    pub(super) fn from_codes(codes: Block, strings: Dictionary) -> Self {
        let (views, heap) = dictionary_views(&strings);
        Self::Dictionary { codes, strings, views, heap: Buffer::from_vec(heap) }
    }

    pub(super) fn rows(&self) -> usize {
        match self {
            Self::Numbers(block) | Self::Texts(block) | Self::Bytes(block) => block.header().rows,
            Self::Dictionary { codes, .. } => codes.header().rows,
            Self::Arrays(values) => values.len(),
            Self::Uncached(passing) => passing.rows,
        }
    }

    /// Returns the approximate memory size in bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        const OVERHEAD_BYTES: usize = 256;
        let bytes = match self {
            Self::Numbers(block) | Self::Texts(block) | Self::Bytes(block) => block.bytes().len(),
            Self::Dictionary { codes, strings, views, heap } => {
                codes.bytes().len() + strings.bytes().len() + views.len() * size_of::<u128>() + heap.len()
            }
            Self::Arrays(values) => values.get_array_memory_size(),
            Self::Uncached(page) => page.memory_bytes(),
        };
        (bytes + OVERHEAD_BYTES) as u64
    }

    /// Returns true if the block is dictionary-encoded.
    #[must_use]
    pub fn has_dictionary(&self) -> bool {
        match self {
            Self::Dictionary { .. } => true,
            Self::Uncached(page) => page.has_dictionary(),
            _ => false,
        }
    }

    /// Returns the dictionary of a dictionary-encoded block, in the order of its codes.
    #[must_use]
    pub fn strings(&self) -> Option<StringViewArray> {
        match self {
            Self::Dictionary { views, heap, .. } => Some(string_view_array(views.clone(), heap.clone(), None)),
            Self::Uncached(page) => page.strings(),
            _ => None,
        }
    }

    /// Returns the values of the selected rows as an Arrow array of the type `form`.
    ///
    /// # Errors
    /// If the block's values have another type.
    pub fn gather(&self, rows: &RowSet, data_type: &DataType) -> Result<ArrayRef> {
        match self {
            Self::Numbers(block) => gather_numbers(block, rows, data_type),
            Self::Texts(block) => {
                let texts = block.gather_text(rows)?;
                let views =
                    texts.offsets.windows(2).map(|ends| view(&texts.bytes[ends[0]..ends[1]], ends[0])).collect();
                Ok(Arc::new(string_view_array(views, Buffer::from_vec(texts.bytes), texts.validity)))
            }
            Self::Bytes(block) => Ok(Arc::new(to_binary_array(block.gather_text(rows)?)?)),
            Self::Dictionary { codes, views, heap, .. } => {
                let Values { values: codes, validity } = codes.gather::<u32>(rows)?;
                // NULL rows have code 0, and the dictionary may be empty.
                let views = codes.iter().map(|code| views.get(*code as usize).copied().unwrap_or_default()).collect();
                Ok(Arc::new(compact_strings(string_view_array(views, heap.clone(), validity))))
            }
            Self::Arrays(values) => {
                let places = rows.iter().map(|row| u32::try_from(row).expect("a block has fewer than 2^32 rows"));
                Ok(take(values, &UInt32Array::from_iter_values(places), None)?)
            }
            Self::Uncached(page) => page.gather(rows, data_type),
        }
    }
}

/// Direct-mapped cache from string views to dictionary numbers. Comparing views is cheaper than hashing strings: equal
/// views mean equal strings, and an array read from a dictionary-encoded page has few distinct views.
struct ViewCache {
    /// View and its number; `None` in an unused slot.
    slots: Vec<(u128, Option<u32>)>,
}

impl ViewCache {
    const SLOTS: usize = 1 << 10;

    fn new() -> Self {
        Self { slots: vec![(0, None); Self::SLOTS] }
    }

    /// Returns the number of a view's string, from `find` if the view is not cached.
    #[inline]
    fn number_or_insert(&mut self, view: u128, find: impl FnOnce() -> u32) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "the two halves, and fewer bits than places")]
        let at = {
            let folded = (view as u64) ^ (view >> 64) as u64;
            (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - Self::SLOTS.ilog2())) as usize
        };
        let place = &mut self.slots[at];
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

/// Returns an Arrow string view for each dictionary entry, and the buffer into which the views point.
pub(super) fn dictionary_views(strings: &Dictionary) -> (Vec<u128>, Vec<u8>) {
    let (mut heap, mut views) = (Vec::new(), Vec::with_capacity(strings.len()));
    for string in (0..).map_while(|code| strings.get(code)) {
        views.push(view(string, heap.len()));
        heap.extend_from_slice(string);
    }
    (views, heap)
}

/// Copies the strings into a new buffer if they use less than half of their current one, so that a few strings do not
/// keep a large buffer alive and are not charged for it.
pub(super) fn compact_strings(texts: StringViewArray) -> StringViewArray {
    let held: usize = texts.data_buffers().iter().map(|heap| heap.len()).sum();
    if held <= UNCOMPACTED_HEAP_BYTES_MAX || held <= 2 * texts.total_buffer_bytes_used() { texts } else { texts.gc() }
}

fn to_binary_array(values: TextValues) -> Result<BinaryArray> {
    let TextValues { offsets, bytes, validity } = values;
    let nulls = null_buffer(validity, offsets.len() - 1);
    let offset = |offset: usize| {
        i32::try_from(offset)
            .map_err(|_| blocks::Error::TooLarge("the byte strings of a column page exceed the largest Arrow array"))
    };
    let offsets = offsets.into_iter().map(offset).collect::<blocks::Result<Vec<i32>>>()?;
    Ok(BinaryArray::try_new(OffsetBuffer::new(offsets.into()), Buffer::from_vec(bytes), nulls)?)
}

fn gather_numbers(block: &Block, rows: &RowSet, form: &DataType) -> Result<ArrayRef> {
    Ok(match form {
        DataType::Boolean => {
            let Values { values, validity } = block.gather::<bool>(rows)?;
            let nulls = null_buffer(validity, values.len());
            Arc::new(BooleanArray::new(BooleanBuffer::from(values), nulls))
        }
        #[expect(clippy::cast_possible_truncation, reason = "the block was made of 16-bit values")]
        DataType::Int16 => to_primitive_array::<Int16Type, i32>(block, rows, form, |value| value as i16)?,
        DataType::Int32 => to_primitive_array::<Int32Type, i32>(block, rows, form, |value| value)?,
        DataType::Date32 => to_primitive_array::<Date32Type, i32>(block, rows, form, |value| value)?,
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the block was made of such values"
        )]
        DataType::UInt32 => to_primitive_array::<UInt32Type, i64>(block, rows, form, |value| value as u32)?,
        DataType::Int64 => to_primitive_array::<Int64Type, i64>(block, rows, form, |value| value)?,
        DataType::Time64(_) => to_primitive_array::<Time64MicrosecondType, i64>(block, rows, form, |value| value)?,
        DataType::Timestamp(..) => {
            to_primitive_array::<TimestampMicrosecondType, i64>(block, rows, form, |value| value)?
        }
        DataType::Decimal128(..) => to_primitive_array::<Decimal128Type, i128>(block, rows, form, |value| value)?,
        DataType::FixedSizeBinary(_) => Arc::new(uuids_from_i128(block.gather::<i128>(rows)?)?),
        DataType::Interval(_) => Arc::new(intervals_from_i128(block.gather::<i128>(rows)?)?),
        DataType::Float32 => to_primitive_array::<Float32Type, f32>(block, rows, form, |value| value)?,
        _ => to_primitive_array::<Float64Type, f64>(block, rows, form, |value| value)?,
    })
}

fn to_primitive_array<T: ArrowPrimitiveType, V: BlockValue>(
    block: &Block,
    rows: &RowSet,
    form: &DataType,
    convert: impl Fn(V) -> T::Native,
) -> Result<ArrayRef> {
    let Values { values, validity } = block.gather::<V>(rows)?;
    let nulls = null_buffer(validity, values.len());
    let values: Vec<T::Native> = values.into_iter().map(convert).collect();
    let values = PrimitiveArray::<T>::try_new(ScalarBuffer::from(values), nulls)?;
    Ok(Arc::new(values.with_data_type(form.clone())))
}

/// Builds an Arrow null buffer from validity words.
pub(super) fn null_buffer(validity: Option<Vec<u64>>, rows: usize) -> Option<NullBuffer> {
    validity.map(|words| NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(words), 0, rows)))
}

/// Builds the Arrow string view of `string`, which starts at offset `at` of the first data buffer.
pub(super) fn view(string: &[u8], offset: usize) -> u128 {
    make_view(string, 0, u32::try_from(offset).expect("strings of a block have fewer than 2^32 bytes in total"))
}

/// Builds a string array from views into `heap`.
pub(super) fn string_view_array(views: Vec<u128>, heap: Buffer, validity: Option<Vec<u64>>) -> StringViewArray {
    let nulls = null_buffer(validity, views.len());
    #[expect(unsafe_code, reason = "validating the UTF-8 of millions of strings again costs more than reading them")]
    // SAFETY: every view refers to a string of `heap` that came from a valid `StringViewArray` or was validated as
    // UTF-8 when it was read from a file.
    unsafe {
        StringViewArray::new_unchecked(ScalarBuffer::from(views), vec![heap], nulls)
    }
}
