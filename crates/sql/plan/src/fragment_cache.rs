//! What a session says of the cache of fragments.

/// In a session's configuration: its queries make all groups anew.
#[derive(Debug)]
pub struct NoFragmentCache;
