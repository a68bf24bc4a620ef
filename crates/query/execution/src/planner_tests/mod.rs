//! Plans and runs statements over small catalogs with rows in memory.

mod bind;
mod cached_plans;
mod context;
mod write;
