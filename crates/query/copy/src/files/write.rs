//! Writes a file under a temporary name and renames it at the end, so that a failed COPY leaves an existing file
//! unchanged.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use external_files::{FileOperation, cannot_open, io_failure};
use types::{Condition, QueryId, SqlError, SqlResult};

/// Writer of a file that appears atomically; dropped without [`FileWriter::finish`] it leaves nothing.
#[derive(Debug)]
pub(crate) struct FileWriter {
    target: PathBuf,
    temporary: PathBuf,
    file: Option<File>,
}

impl FileWriter {
    /// Creates the temporary file for `target`, an absolute path.
    ///
    /// # Errors
    /// PostgreSQL's errors for a relative path or a path that cannot be written.
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
            .map_err(|error| cannot_open(target, FileOperation::Writing, &error))?;
        Ok(FileWriter { target: target.to_owned(), temporary, file: Some(file) })
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// 53100 if the disk is full, 58030 for other failures.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> SqlResult<()> {
        let file = self.file.as_mut().expect("`finish` consumes the writer, so the file is open");
        file.write_all(bytes).map_err(|error| io_failure(&self.target, FileOperation::Writing, &error))
    }

    /// Syncs the file and renames it to its target.
    ///
    /// # Errors
    /// As [`FileWriter::write`].
    pub(crate) fn finish(mut self) -> SqlResult<()> {
        let file = self.file.take().expect("`finish` consumes the writer, so the file is open");
        let moved = file.sync_all().and_then(|()| std::fs::rename(&self.temporary, &self.target)).and_then(|()| {
            let folder = self.target.parent().expect("an absolute path of a file has a folder");
            File::open(folder)?.sync_all()
        });
        moved.map_err(|error| {
            let _ = std::fs::remove_file(&self.temporary);
            io_failure(&self.target, FileOperation::Writing, &error)
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
