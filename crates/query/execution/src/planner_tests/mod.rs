//! Plans and runs statements over small catalogs with rows in memory.

mod bind;
mod context;
mod kept;
mod write;
