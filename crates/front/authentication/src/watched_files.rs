//! Files that are watched for changes, with their content as last read.

use std::io;
use std::path::PathBuf;

/// Content of each file, or the path and error of the first that cannot be read.
pub(crate) type FilesContent = Result<Vec<Vec<u8>>, (PathBuf, io::Error)>;

/// Files that are read together.
pub(crate) struct WatchedFiles {
    paths: Vec<PathBuf>,
    /// Content as last read; `None` if the files could not be read or count as changed.
    last_content: Option<Vec<Vec<u8>>>,
    /// True if the last read failed, which is reported once.
    is_failure_reported: bool,
}

/// Debug output without the content, which may be secret.
impl std::fmt::Debug for WatchedFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatchedFiles").field("paths", &self.paths).finish_non_exhaustive()
    }
}

impl WatchedFiles {
    pub(crate) fn new(paths: Vec<PathBuf>) -> Self {
        Self { paths, last_content: None, is_failure_reported: false }
    }

    /// Reads the files.
    pub(crate) fn read(&mut self) -> FilesContent {
        self.last_content = None;
        let read = self.paths.iter().map(|path| std::fs::read(path).map_err(|error| (path.clone(), error)));
        let content = read.collect::<Result<Vec<_>, _>>();
        self.is_failure_reported = content.is_err();
        self.last_content = content.as_ref().ok().cloned();
        content
    }

    /// Reads the files and returns their content if it has changed since the last read; a failure is returned once.
    pub(crate) fn read_if_changed(&mut self) -> Option<FilesContent> {
        let (seen, is_told) = (self.last_content.take(), self.is_failure_reported);
        match self.read() {
            Ok(content) if seen.as_ref() == Some(&content) => None,
            Err(_) if is_told => None,
            read => Some(read),
        }
    }

    /// Discards the content last read, so that the next [`Self::read_if_changed`] returns it as changed.
    pub(crate) fn mark_changed(&mut self) {
        self.last_content = None;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn only_what_is_new_is_told() {
        let folder = TempDir::new().unwrap();
        let paths = vec![folder.path().join("a"), folder.path().join("b")];
        fs::write(&paths[0], "1").unwrap();
        let mut watched = WatchedFiles::new(paths.clone());
        assert_eq!(watched.read().unwrap_err().0, paths[1]);
        assert!(watched.read_if_changed().is_none(), "that it is missing was told");
        fs::write(&paths[1], "2").unwrap();
        assert_eq!(watched.read_if_changed().unwrap().unwrap(), [b"1", b"2"]);
        assert!(watched.read_if_changed().is_none());
        watched.mark_changed();
        assert_eq!(watched.read_if_changed().unwrap().unwrap(), [b"1", b"2"]);
        fs::remove_file(&paths[0]).unwrap();
        assert_eq!(watched.read_if_changed().unwrap().unwrap_err().0, paths[0]);
        assert!(watched.read_if_changed().is_none());
        fs::write(&paths[0], "1").unwrap();
        assert_eq!(watched.read_if_changed().unwrap().unwrap(), [b"1", b"2"], "it is back");
    }
}
