//! Empty library, so that there is one test binary: integration tests are in `it/`, SQL files in `slt/`.
