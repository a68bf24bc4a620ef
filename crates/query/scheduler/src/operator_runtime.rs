//! Memory and disk space that all operators share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use functions::error::from_datafusion;
use types::allocation_counters::set_large_block_limit;
use types::{Condition, SqlError, SqlResult};

/// Prefix of DataFusion's spill folders.
const SPILL_PREFIX: &str = "datafusion-";

/// Approximate bytes of large blocks that the process needs besides queries and caches.
const PROCESS_BYTES: usize = 256 << 20;

/// Limits the memory of values that no operator has accounted yet, given the memory of queries and caches. The limit
/// for all large blocks is a third above that of queries, by default four fifths of the machine.
pub fn limit_large_values(memory_bytes: usize, cache_bytes: u64) {
    let with_caches =
        memory_bytes.saturating_add(usize::try_from(cache_bytes).unwrap_or(usize::MAX)).saturating_add(PROCESS_BYTES);
    set_large_block_limit(with_caches.max(memory_bytes.saturating_add(memory_bytes / 3)));
}

/// Spill folder of operators and its limit.
#[derive(Debug, Clone)]
pub struct SpillSettings {
    /// Folder used for nothing else: DataFusion's folders left there by a killed server are removed.
    pub folder: PathBuf,
    /// Maximum bytes in the folder.
    pub bytes_max: u64,
}

/// Returns DataFusion's runtime for operators: a pool that shares `memory_bytes` fairly among consumers that can spill,
/// and the spill folder, without leftovers of a killed server.
///
/// # Errors
/// `58030` if the folder cannot be used.
pub fn operator_runtime(memory_bytes: usize, spill: &SpillSettings) -> SqlResult<Arc<RuntimeEnv>> {
    clean_spill_folder(&spill.folder).map_err(|error| {
        let folder = spill.folder.display();
        SqlError::new(Condition::IoError, format!("could not use the spill folder \"{folder}\": {error}"))
    })?;
    let disk = DiskManagerBuilder::default()
        .with_mode(DiskManagerMode::Directories(vec![spill.folder.clone()]))
        .with_max_temp_directory_size(spill.bytes_max);
    RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(FairSpillPool::new(memory_bytes)))
        .with_disk_manager_builder(disk)
        .build_arc()
        .map_err(from_datafusion)
}

/// Creates the folder if it is missing, and removes leftovers of a killed server.
fn clean_spill_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && entry.file_name().to_string_lossy().starts_with(SPILL_PREFIX) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}
