//! Files that others replace, as they were when they were last read.

use std::io;
use std::path::PathBuf;

/// What each holds, or the first that cannot be read.
pub(crate) type Content = Result<Vec<Vec<u8>>, (PathBuf, io::Error)>;

/// Files that belong together.
pub(crate) struct Watched {
    paths: Vec<PathBuf>,
    /// `None` where they could not be read, or are to be read as if for the first time.
    seen: Option<Vec<Vec<u8>>>,
    is_told_unreadable: bool,
}

/// What they hold stays out of logs.
impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched").field("paths", &self.paths).finish_non_exhaustive()
    }
}

impl Watched {
    pub(crate) fn new(paths: Vec<PathBuf>) -> Self {
        Self { paths, seen: None, is_told_unreadable: false }
    }

    /// What they hold.
    pub(crate) fn read(&mut self) -> Content {
        self.seen = None;
        let read = self.paths.iter().map(|path| std::fs::read(path).map_err(|error| (path.clone(), error)));
        let content = read.collect::<Result<Vec<_>, _>>();
        self.is_told_unreadable = content.is_err();
        self.seen = content.as_ref().ok().cloned();
        content
    }

    /// What they hold, where it is not what was read last; that they cannot be read is said once.
    pub(crate) fn look(&mut self) -> Option<Content> {
        let (seen, is_told) = (self.seen.take(), self.is_told_unreadable);
        match self.read() {
            Ok(content) if seen.as_ref() == Some(&content) => None,
            Err(_) if is_told => None,
            read => Some(read),
        }
    }

    /// What was read is of no use yet: the next look gives it again.
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
