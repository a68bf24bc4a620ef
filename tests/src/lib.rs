//! Integration tests live in `it/`, SQL files in `slt/`; this library is empty so that there is one test binary.
