//! Files that are watched for changes, with their content as last read.

use std::io;
use std::path::PathBuf;

/// Content of each file, or the path and error of the first that cannot be read.
pub(crate) type Content = Result<Vec<Vec<u8>>, (PathBuf, io::Error)>;

/// Files that are read together.
pub(crate) struct Watched {
    paths: Vec<PathBuf>,
    /// Content as last read; `None` if the files could not be read or count as changed.
    seen: Option<Vec<Vec<u8>>>,
    /// True if the last read failed, which is reported once.
    is_told_unreadable: bool,
}

/// Debug output without the content, which may be secret.
impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched").field("paths", &self.paths).finish_non_exhaustive()
    }
}

impl Watched {
    pub(crate) fn new(paths: Vec<PathBuf>) -> Self {
        Self { paths, seen: None, is_told_unreadable: false }
    }

    /// Reads the files.
    pub(crate) fn read(&mut self) -> Content {
        self.seen = None;
        let read = self.paths.iter().map(|path| std::fs::read(path).map_err(|error| (path.clone(), error)));
        let content = read.collect::<Result<Vec<_>, _>>();
        self.is_told_unreadable = content.is_err();
        self.seen = content.as_ref().ok().cloned();
        content
    }

    /// Reads the files and returns their content if it has changed since the last read; a failure is returned once.
    pub(crate) fn look(&mut self) -> Option<Content> {
        let (seen, is_told) = (self.seen.take(), self.is_told_unreadable);
        match self.read() {
            Ok(content) if seen.as_ref() == Some(&content) => None,
            Err(_) if is_told => None,
            read => Some(read),
        }
    }

    /// Discards the content last read, so that the next [`Self::look`] returns it as changed.
    pub(crate) fn forget(&mut self) {
        self.seen = None;
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
        let mut watched = Watched::new(paths.clone());
        assert_eq!(watched.read().unwrap_err().0, paths[1]);
        assert!(watched.look().is_none(), "that it is missing was told");
        fs::write(&paths[1], "2").unwrap();
        assert_eq!(watched.look().unwrap().unwrap(), [b"1", b"2"]);
        assert!(watched.look().is_none());
        watched.forget();
        assert_eq!(watched.look().unwrap().unwrap(), [b"1", b"2"]);
        fs::remove_file(&paths[0]).unwrap();
        assert_eq!(watched.look().unwrap().unwrap_err().0, paths[0]);
        assert!(watched.look().is_none());
        fs::write(&paths[0], "1").unwrap();
        assert_eq!(watched.look().unwrap().unwrap(), [b"1", b"2"], "it is back");
    }
}
