//! Order-preserving encoding of composite keys: the byte order of encoded keys is the order of their parts.
//!
//! Integers are big-endian: signed ones with the sign bit flipped, descending ones complemented. Byte strings end in
//! `00 00`, and every `00` inside is written as `00 FF`, so that no encoded string is a prefix of another.

use crate::{Error, Result};

#[cfg(test)]
mod tests;

/// Encoder that builds a key part by part.
#[derive(Debug, Clone, Default)]
pub struct KeyWriter {
    bytes: Vec<u8>,
}

impl KeyWriter {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn u8(mut self, value: u8) -> Self {
        self.bytes.push(value);
        self
    }

    #[must_use]
    pub fn u32(mut self, value: u32) -> Self {
        self.bytes.extend(value.to_be_bytes());
        self
    }

    #[must_use]
    pub fn u64(mut self, value: u64) -> Self {
        self.bytes.extend(value.to_be_bytes());
        self
    }

    /// Appends a number in descending order, as for commit timestamps: larger values sort first.
    #[must_use]
    pub fn u64_descending(self, value: u64) -> Self {
        self.u64(!value)
    }

    #[must_use]
    pub fn u128(mut self, value: u128) -> Self {
        self.bytes.extend(value.to_be_bytes());
        self
    }

    #[must_use]
    pub fn i64(self, value: i64) -> Self {
        self.u64(value.cast_unsigned() ^ SIGN_BIT)
    }

    /// Appends a byte string of any length, escaped and terminated.
    #[must_use]
    pub fn bytes(mut self, value: &[u8]) -> Self {
        for &byte in value {
            self.bytes.push(byte);
            if byte == 0 {
                self.bytes.push(ESCAPED_ZERO);
            }
        }
        self.bytes.extend([0, BYTES_END]);
        self
    }

    /// Appends text as UTF-8, whose byte order is code point order.
    #[must_use]
    pub fn str(self, value: &str) -> Self {
        self.bytes(value.as_bytes())
    }

    /// Returns the encoded key.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Decoder that reads a key part by part. On bytes that no [`KeyWriter`] wrote, methods fail and never panic.
#[derive(Debug, Clone)]
pub struct KeyReader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> KeyReader<'a> {
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    pub fn u8(&mut self) -> Result<u8> {
        Ok(u8::from_be_bytes(self.take("one byte")?))
    }

    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.take("four bytes")?))
    }

    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_be_bytes(self.take("eight bytes")?))
    }

    pub fn u64_descending(&mut self) -> Result<u64> {
        Ok(!self.u64()?)
    }

    pub fn u128(&mut self) -> Result<u128> {
        Ok(u128::from_be_bytes(self.take("sixteen bytes")?))
    }

    pub fn i64(&mut self) -> Result<i64> {
        Ok((self.u64()? ^ SIGN_BIT).cast_signed())
    }

    pub fn bytes(&mut self) -> Result<Vec<u8>> {
        let mut value = Vec::new();
        loop {
            let [byte] = self.take("the end of a byte string")?;
            if byte != 0 {
                value.push(byte);
                continue;
            }
            match self.take("the end of a byte string")? {
                [BYTES_END] => return Ok(value),
                [ESCAPED_ZERO] => value.push(0),
                [_] => return Err(self.malformed("an escaped zero")),
            }
        }
    }

    pub fn str(&mut self) -> Result<String> {
        let value = self.bytes()?;
        String::from_utf8(value).map_err(|_| self.malformed("UTF-8"))
    }

    /// Checks that the key has been read to its end.
    pub fn finish(&self) -> Result<()> {
        if self.position == self.bytes.len() { Ok(()) } else { Err(self.malformed("the end of the key")) }
    }

    fn take<const N: usize>(&mut self, expected: &'static str) -> Result<[u8; N]> {
        let part = self.bytes[self.position..].first_chunk::<N>().ok_or_else(|| self.malformed(expected))?;
        self.position += N;
        Ok(*part)
    }

    fn malformed(&self, expected: &'static str) -> Error {
        Error::MalformedKey { expected, position: self.position }
    }
}

/// Returns the smallest key that is greater than every key with `prefix`; `None` if there is none, as for `FF FF`.
#[must_use]
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

const SIGN_BIT: u64 = 1 << 63;
const BYTES_END: u8 = 0x00;
const ESCAPED_ZERO: u8 = 0xFF;
