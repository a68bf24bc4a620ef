//! What flows between steps: batches of columns, their values in few forms.

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
