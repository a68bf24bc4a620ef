//! What flows between steps: batches of columns, their values in few forms.

mod batch;
mod bits;
mod column;
mod strings;

pub use batch::{Batch, Selection};
pub use bits::Bits;
pub use column::{Bounds, Column, Data};
pub use strings::Strings;
