//! Reads and writes files of the server for COPY.

mod read;
mod write;

#[cfg(test)]
mod tests;

pub(super) use read::{read_files, total_bytes};
pub(super) use write::FileWriter;
