//! Memory and spill space that all operators share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use functions::error::from_datafusion;
use types::allocated::limit_large;
use types::{Condition, SqlError, SqlResult};

/// How the names of DataFusion's spill folders begin.
const SPILL_PREFIX: &str = "datafusion-";

/// The process needs about this many bytes of large blocks beside queries and caches.
const OWN_BYTES: usize = 256 << 20;

/// Bounds what values may take that no operator holds yet, by what queries share and what caches have: they have a third more, by default four fifths of
/// the machine in all.
pub fn bound_values(memory_bytes: usize, cache_bytes: u64) {
    let with_caches =
        memory_bytes.saturating_add(usize::try_from(cache_bytes).unwrap_or(usize::MAX)).saturating_add(OWN_BYTES);
    limit_large(with_caches.max(memory_bytes.saturating_add(memory_bytes / 3)));
}

/// The spill folder of operators, and its limit.
#[derive(Debug, Clone)]
pub struct SpillSettings {
    /// A folder of its own: folders of DataFusion's that a killed server left there are removed.
    pub folder: PathBuf,
    /// The most that may lie there.
    pub bytes_max: u64,
}

/// DataFusion's runtime for operators: a pool that shares `memory_bytes` fairly among those that can spill, and the spill folder, emptied of what a killed
/// server left.
///
/// # Errors
/// `58030` where the folder cannot be used.
pub fn runtime(memory_bytes: usize, spill: &SpillSettings) -> SqlResult<Arc<RuntimeEnv>> {
    clean(&spill.folder).map_err(|error| {
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

/// Makes the folder if it is not there, and removes what a killed server left in it.
fn clean(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && entry.file_name().to_string_lossy().starts_with(SPILL_PREFIX) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}
