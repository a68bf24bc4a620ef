//! Who this warehouse is: a UUID drawn once and kept in the data folder. The storage's claim names it.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use types::Random;
use uuid::Uuid;

#[cfg(test)]
mod tests;

/// Name of the file in the data folder.
const NAME: &str = "instance";

/// The instance's id; drawn and made durable on the first start, so that a claim on the storage is recognised ever after.
pub(crate) fn load_or_draw(data: &Path, random: &dyn Random) -> anyhow::Result<Uuid> {
    let path = file(data);
    match fs::read_to_string(&path) {
        Ok(text) => {
            let text = text.trim();
            Uuid::parse_str(text).with_context(|| format!("{} holds {text:?}, which is no UUID", path.display()))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let instance = random.uuid();
            write(data, instance).with_context(|| format!("cannot write {}", path.display()))?;
            Ok(instance)
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Whole or not at all, whenever the machine stops.
pub(crate) fn write(data: &Path, instance: Uuid) -> std::io::Result<()> {
    let draft = draft(data);
    let mut written = File::create(&draft)?;
    writeln!(written, "{instance}")?;
    written.sync_all()?;
    fs::rename(&draft, file(data))?;
    File::open(data)?.sync_all()
}

/// Where it lies.
pub(crate) fn file(data: &Path) -> PathBuf {
    data.join(NAME)
}

/// Where it is written first.
pub(crate) fn draft(data: &Path) -> PathBuf {
    data.join(format!("{NAME}.new"))
}
