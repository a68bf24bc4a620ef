//! Storage format of outcomes, in the space `Transactions`.
//!
//! | key | value |
//! |---|---|
//! | 1 (1 byte), role (4), token | format (1 byte), commit (8), its time (8), and for each statement its work (16), data (16) and rows (8), flags (1), tag |
//! | 2 (1 byte), the commit's time (8), role (4), token | |
//!
//! The second key finds expired outcomes.

use std::sync::Arc;

use bytes::Bytes;
use kv::key::{KeyReader, KeyWriter};
use kv::{Batch, Direction, KeyRange, Space, TxKv};
use types::{CommitTs, InjectedBug, Oid};

use super::{Outcome, StatementDigest, StatementOutcome, Token};
use crate::{Error, Result};

/// Maximum bytes of a token.
pub const TOKEN_BYTES_MAX: usize = 200;

/// Upper bounds of a key without its token, and of a statement without its tag.
const KEY_BYTES_MAX: usize = 32;
const STATEMENT_BYTES: usize = 64;

const KEY_BY_TOKEN: u8 = 1;
const KEY_BY_TIME: u8 = 2;
const FORMAT: u8 = 1;

const RETURNED_ROWS: u8 = 1;
const HAS_DATA_DIGEST: u8 = 2;

/// Returns the key of a token's outcome.
pub(super) fn key(token: &Token) -> Vec<u8> {
    KeyWriter::new().u8(KEY_BY_TOKEN).u32(token.role.0).str(&token.text).finish()
}

fn time_key(token: &Token, at_us: i64) -> Vec<u8> {
    KeyWriter::new().u8(KEY_BY_TIME).i64(at_us).u32(token.role.0).str(&token.text).finish()
}

/// Adds an outcome to the batch; the store has none for the token.
pub(crate) fn put(batch: &mut Batch, token: &Token, outcome: &Outcome) {
    if InjectedBug::TokenOutcomeNotStored.is_active() {
        return;
    }
    batch.put(Space::Transactions, key(token), encode(outcome));
    batch.put(Space::Transactions, time_key(token, outcome.at_us), Bytes::new());
}

/// Returns an upper bound of the bytes that an outcome takes in the store.
pub(crate) fn max_stored_bytes(statements: &[StatementOutcome]) -> u64 {
    let each = statements.iter().map(|written| STATEMENT_BYTES + 2 * written.command_tag.len());
    (2 * (KEY_BYTES_MAX + 2 * TOKEN_BYTES_MAX) + each.sum::<usize>()) as u64
}

/// Reads the outcome under a [`key`].
pub(super) fn read(kv: &dyn TxKv, key: &[u8]) -> Result<Option<Outcome>> {
    kv.get(Space::Transactions, key)?.map(|value| decode(&value)).transpose()
}

/// Lists the outcomes, sorted by token, optionally only those of one role or one token.
pub(super) fn list(kv: &dyn TxKv, role: Option<Oid>, token: Option<&str>) -> Result<Vec<(Token, Outcome)>> {
    let all = KeyWriter::new().u8(KEY_BY_TOKEN);
    let prefix = match (role, token) {
        (Some(role), Some(token)) => all.u32(role.0).str(token).finish(),
        (Some(role), None) => all.u32(role.0).finish(),
        (None, _) => all.finish(),
    };
    let mut found = Vec::new();
    for entry in kv.scan(Space::Transactions, KeyRange::prefix(&prefix), Direction::Forward)? {
        let (key, value) = entry?;
        let known = read_token(&key, KEY_BY_TOKEN)?;
        if token.is_none_or(|token| *token == *known.text) {
            found.push((known, decode(&value)?));
        }
    }
    Ok(found)
}

/// Counts the stored outcomes.
pub(super) fn count(kv: &dyn TxKv) -> Result<u64> {
    let mut count = 0;
    for entry in kv.scan(Space::Transactions, KeyRange::prefix(&[KEY_BY_TIME]), Direction::Forward)? {
        entry?;
        count += 1;
    }
    Ok(count)
}

/// Returns the tokens and commit times of at most `count` outcomes from before the cutoff.
pub(super) fn list_before(kv: &dyn TxKv, cutoff_us: i64, count: usize) -> Result<Vec<(Token, i64)>> {
    let end = KeyWriter::new().u8(KEY_BY_TIME).i64(cutoff_us).finish();
    let entries = kv.scan(Space::Transactions, KeyRange::between(vec![KEY_BY_TIME], end), Direction::Forward)?;
    let old = entries.take(count).map(|entry| {
        let (key, _) = entry?;
        let mut reader = KeyReader::new(key.get(1..).unwrap_or_default());
        let at_us = reader.i64().map_err(damaged)?;
        Ok((read_token(&key, KEY_BY_TIME)?, at_us))
    });
    old.collect()
}

/// Adds the removal of an outcome with this commit time to the batch.
pub(super) fn delete(batch: &mut Batch, token: &Token, at_us: i64) {
    batch.delete(Space::Transactions, key(token));
    batch.delete(Space::Transactions, time_key(token, at_us));
}

fn read_token(key: &[u8], kind: u8) -> Result<Token> {
    let mut reader = KeyReader::new(key);
    let found = reader.u8().map_err(damaged)?;
    if kind == KEY_BY_TIME {
        reader.i64().map_err(damaged)?;
    }
    let role = Oid(reader.u32().map_err(damaged)?);
    let text: Arc<str> = reader.str().map_err(damaged)?.into();
    reader.finish().map_err(damaged)?;
    if found == kind { Ok(Token { role, text }) } else { Err(Error::Damaged { what: OUTCOME_RECORD }) }
}

fn encode(outcome: &Outcome) -> Bytes {
    let mut value = KeyWriter::new().u8(FORMAT).u64(outcome.commit.0).i64(outcome.at_us);
    for StatementOutcome { digest: work, data_digest: data, command_tag: tag, rows, returned_rows: gave_rows } in
        &outcome.statements
    {
        let flags = if *gave_rows { RETURNED_ROWS } else { 0 } | if data.is_some() { HAS_DATA_DIGEST } else { 0 };
        let data = data.map_or(0, |data| data.0);
        value = value.u128(work.0).u128(data).u64(*rows).u8(flags).str(tag);
    }
    value.finish().into()
}

fn decode(value: &[u8]) -> Result<Outcome> {
    let mut reader = KeyReader::new(value);
    if reader.u8().map_err(damaged)? != FORMAT {
        return Err(Error::Damaged { what: OUTCOME_RECORD });
    }
    let (commit, at_us) = (CommitTs(reader.u64().map_err(damaged)?), reader.i64().map_err(damaged)?);
    let mut statements = Vec::new();
    while reader.finish().is_err() {
        let work = StatementDigest(reader.u128().map_err(damaged)?);
        let data = StatementDigest(reader.u128().map_err(damaged)?);
        let (rows, flags) = (reader.u64().map_err(damaged)?, reader.u8().map_err(damaged)?);
        let tag = reader.str().map_err(damaged)?;
        let data = (flags & HAS_DATA_DIGEST != 0).then_some(data);
        statements.push(StatementOutcome {
            digest: work,
            data_digest: data,
            command_tag: tag,
            rows,
            returned_rows: flags & RETURNED_ROWS != 0,
        });
    }
    Ok(Outcome { commit, at_us, statements })
}

const OUTCOME_RECORD: &str = "outcome of a token";

fn damaged(_: kv::Error) -> Error {
    Error::Damaged { what: OUTCOME_RECORD }
}
