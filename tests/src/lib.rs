//! Integration tests live in `it/`, SQL files in `slt/`; this library holds the simulation alone, so that there is one test binary of each kind.

#[cfg(test)]
mod simulation;
