//! AS OF in the names of relations: the moment is written as their catalog, because nothing else of a name goes through DataFusion unchanged.

use types::{CommitTs, Moment};

/// What a relation's name begins with, as a catalog, where it is one of the past: no name that is written has the byte.
const MARK: &str = "past\u{1}";

/// The first part of the names of relations as of the moment.
pub(crate) fn mark(moment: Moment) -> String {
    match moment {
        Moment::Newest => format!("{MARK}n"),
        Moment::Time(us) => format!("{MARK}t{us}"),
        Moment::Commit(commit) => format!("{MARK}c{commit}"),
    }
}

/// The moment that [`mark`] was made of.
pub(crate) fn marked(catalog: &str) -> Option<Moment> {
    let moment = catalog.strip_prefix(MARK)?;
    match moment.split_at_checked(1)? {
        ("n", "") => Some(Moment::Newest),
        ("t", us) => us.parse().ok().map(Moment::Time),
        ("c", commit) => commit.parse().ok().map(|commit| Moment::Commit(CommitTs(commit))),
        _ => None,
    }
}
