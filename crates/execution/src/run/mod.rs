//! How a query runs: planned and executed on the query threads, its batches handed over one by one.

mod attempts;
mod context;
mod executor;
#[cfg(test)]
mod memory_tests;
mod prepare;
mod row_stream;
#[cfg(test)]
mod tests;

pub(crate) use attempts::Attempts;
pub use context::RunContext;
pub use executor::Executor;
#[cfg(test)]
pub(crate) use prepare::operators;
pub use row_stream::RowStream;
