//! Memory and spill space that all operators share.

use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use planner::error::from_datafusion;
use types::{Condition, SqlError, SqlResult};

use crate::Config;

/// How the names of DataFusion's spill folders begin.
const SPILL_PREFIX: &str = "datafusion-";

/// A pool that shares memory fairly among what can spill, and an empty spill folder.
pub(crate) fn runtime(config: &Config) -> SqlResult<Arc<RuntimeEnv>> {
    clean(&config.spill_folder).map_err(|error| {
        let folder = config.spill_folder.display();
        SqlError::new(Condition::IoError, format!("could not use the spill folder \"{folder}\": {error}"))
    })?;
    let spill = DiskManagerBuilder::default()
        .with_mode(DiskManagerMode::Directories(vec![config.spill_folder.clone()]))
        .with_max_temp_directory_size(config.spill_bytes_max);
    RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(FairSpillPool::new(config.memory_bytes)))
        .with_disk_manager_builder(spill)
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
