//! The desired state of the clusters in a file of the data folder.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use control_plane::StateStore;

#[cfg(test)]
mod tests;

/// File name in the data folder.
const FILE_NAME: &str = "clusters";

/// File with the desired state, which is replaced atomically.
#[derive(Debug)]
pub struct DesiredStateFile {
    folder: PathBuf,
}

impl DesiredStateFile {
    /// Creates a store in this folder, which must exist.
    #[must_use]
    pub fn in_folder(folder: &Path) -> DesiredStateFile {
        DesiredStateFile { folder: folder.to_owned() }
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.join(FILE_NAME)
    }
}

impl StateStore for DesiredStateFile {
    fn load(&self) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.path()) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn save(&self, bytes: &[u8]) -> io::Result<()> {
        let draft = self.folder.join(format!("{FILE_NAME}.new"));
        let mut written = File::create(&draft)?;
        written.write_all(bytes)?;
        written.sync_all()?;
        fs::rename(&draft, self.path())?;
        File::open(&self.folder)?.sync_all()
    }
}
