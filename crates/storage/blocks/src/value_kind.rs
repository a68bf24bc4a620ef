//! Types of the values of a block.

/// Type of a block's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// Booleans, as 0 and 1.
    Boolean,
    /// 32-bit integers and dates.
    Int32,
    /// 64-bit integers, timestamps and decimals of up to 18 digits.
    Int64,
    /// 128-bit integers: decimals of more than 18 digits.
    Int128,
    /// Single-precision floats.
    Float32,
    /// Double-precision floats.
    Float64,
    /// Dictionary indices.
    Code,
    /// Byte strings.
    Text,
}

impl ValueKind {
    const ALL: [Self; 8] =
        [Self::Boolean, Self::Int32, Self::Int64, Self::Int128, Self::Float32, Self::Float64, Self::Code, Self::Text];

    /// Returns the stored tag byte.
    pub(crate) fn tag(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_tag(tag: u8) -> Option<Self> {
        Self::ALL.get(usize::from(tag)).copied()
    }

    /// Whether the values are integers, including booleans and dictionary indices.
    pub fn is_integer(self) -> bool {
        !self.is_float() && self != Self::Text
    }

    /// Whether the values are floats.
    pub fn is_float(self) -> bool {
        matches!(self, Self::Float32 | Self::Float64)
    }
}
