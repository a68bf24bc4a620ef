//! Files of the server: read by COPY FROM, written by COPY TO.

mod read;
mod write;

#[cfg(test)]
mod tests;

pub(super) use read::{read_files, total_bytes};
pub(super) use write::FileWriter;
