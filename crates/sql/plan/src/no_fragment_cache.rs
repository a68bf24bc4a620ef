//! The mark of a session that does not use the fragment cache.

/// Extension of a session's configuration: its queries neither read nor fill the fragment cache.
#[derive(Debug)]
pub struct NoFragmentCache;
