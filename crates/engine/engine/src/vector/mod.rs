//! In-memory representation of values between steps: batches of columns with few physical types.
//!
//! - `column`, `form`, `bits`, `strings`, `opaque`: a column's values, its physical type, validity bitmaps,
//!   dictionaries and values the engine does not interpret
//! - `batch`: batches and row selections
//! - `concat`, `interleave`: one column made of the rows of several
//! - `text_numbers`: dense numbering of distinct strings

mod batch;
mod bits;
mod column;
mod concat;
mod form;
mod interleave;
pub(crate) mod opaque;
mod strings;
mod text_numbers;

pub use batch::{Batch, Selection};
pub use bits::Bits;
pub use column::{Bounds, Column, Data};
pub(crate) use concat::{append, bytes_copied, concat};
pub use form::Form;
pub(crate) use interleave::interleave;
pub use strings::Strings;
pub(crate) use text_numbers::TextNumbers;
