//! In-memory representation of values between steps: batches of columns with few physical types.
//!
//! - `column.rs`, `physical_type.rs`, `bitmap.rs`, `dictionary.rs`, `opaque_arrays.rs`: a column's values, its physical
//!   type, validity bitmaps, dictionaries and values the engine does not interpret
//! - `batch.rs`: batches and row selections
//! - `concat.rs`, `interleave.rs`: one column made of the rows of several
//! - `string_interner.rs`: dense numbering of distinct strings

mod batch;
mod bitmap;
mod column;
mod concat;
mod dictionary;
mod interleave;
pub(crate) mod opaque_arrays;
mod physical_type;
mod string_interner;

pub use batch::{Batch, Selection};
pub use bitmap::Bitmap;
pub use column::{Bounds, Column, ColumnData};
pub(crate) use concat::{concat, concat_bitmaps, copied_bytes};
pub use dictionary::Dictionary;
pub(crate) use interleave::interleave;
pub use physical_type::PhysicalType;
pub(crate) use string_interner::StringInterner;
