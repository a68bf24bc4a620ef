//! Id of the instance: a UUID that is generated once and stored in the data folder. The claim on the storage names it.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use types::Random;
use uuid::Uuid;

#[cfg(test)]
mod tests;

/// Name of the file in the data folder.
const FILE_NAME: &str = "instance";

/// Returns the instance's id. The first start generates it and makes it durable, so that later starts recognise the
/// instance's own claim on the storage.
pub(crate) fn load_or_create(data: &Path, random: &dyn Random) -> anyhow::Result<Uuid> {
    let path = id_file(data);
    match fs::read_to_string(&path) {
        Ok(text) => {
            let text = text.trim();
            Uuid::parse_str(text).with_context(|| format!("{} holds {text:?}, which is no UUID", path.display()))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let instance = random.uuid();
            write_id(data, instance).with_context(|| format!("cannot write {}", path.display()))?;
            Ok(instance)
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Writes the file atomically and durably.
pub(crate) fn write_id(data: &Path, instance: Uuid) -> std::io::Result<()> {
    let draft = temporary_file(data);
    let mut written = File::create(&draft)?;
    writeln!(written, "{instance}")?;
    written.sync_all()?;
    fs::rename(&draft, id_file(data))?;
    File::open(data)?.sync_all()
}

/// Returns the path of the file with the id.
pub(crate) fn id_file(data: &Path) -> PathBuf {
    data.join(FILE_NAME)
}

/// Returns the path of the temporary file that is renamed to [`id_file`].
pub(crate) fn temporary_file(data: &Path) -> PathBuf {
    data.join(format!("{FILE_NAME}.new"))
}
