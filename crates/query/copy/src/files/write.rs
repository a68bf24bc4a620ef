//! Writes a file beside its place and moves it there whole, so that a failed COPY leaves what was there before.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use external_files::{Purpose, broken, cannot_open};
use types::{Condition, QueryId, SqlError, SqlResult};

/// A file under construction; dropped without [`FileWriter::finish`] it leaves nothing.
#[derive(Debug)]
pub(crate) struct FileWriter {
    target: PathBuf,
    temporary: PathBuf,
    file: Option<File>,
}

impl FileWriter {
    /// Starts the file that will be at `target`, an absolute path.
    ///
    /// # Errors
    /// PostgreSQL's for a relative path or a place that cannot be written.
    pub(crate) fn create(target: &Path, query: QueryId) -> SqlResult<FileWriter> {
        if !target.is_absolute() {
            return Err(SqlError::new(Condition::InvalidName, "relative path not allowed for COPY to file"));
        }
        let name = match target.file_name() {
            Some(name) if !target.is_dir() => name,
            _ => {
                return Err(SqlError::new(
                    Condition::WrongObjectType,
                    format!("\"{}\" is a directory", target.display()),
                ));
            }
        };
        let temporary = target.with_file_name(format!(".{}.{query}.tmp", name.to_string_lossy()));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&temporary)
            .map_err(|error| cannot_open(target, Purpose::Writing, &error))?;
        Ok(FileWriter { target: target.to_owned(), temporary, file: Some(file) })
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// 53100 when the disk is full, 58030 for other failures.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> SqlResult<()> {
        let file = self.file.as_mut().expect("a file is written before it is finished");
        file.write_all(bytes).map_err(|error| broken(&self.target, Purpose::Writing, &error))
    }

    /// Makes the bytes durable and moves the file to its place.
    ///
    /// # Errors
    /// As [`FileWriter::write`].
    pub(crate) fn finish(mut self) -> SqlResult<()> {
        let file = self.file.take().expect("a file is finished once");
        let moved = file.sync_all().and_then(|()| std::fs::rename(&self.temporary, &self.target)).and_then(|()| {
            let folder = self.target.parent().expect("an absolute path of a file has a folder");
            File::open(folder)?.sync_all()
        });
        moved.map_err(|error| {
            let _ = std::fs::remove_file(&self.temporary);
            broken(&self.target, Purpose::Writing, &error)
        })
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}
