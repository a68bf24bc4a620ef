//! Parsing of Kubernetes quantities.

/// Parses a quantity of memory or disk, such as `16Gi` or `500M`, to bytes. Returns `None` if it is malformed or does
/// not fit.
#[must_use]
pub fn parse_bytes(quantity: &str) -> Option<u64> {
    let digits = quantity.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = quantity.split_at(digits);
    let factor: u64 = match unit {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// Parses a quantity of cores, such as `4`, `1.5` or `500m`, to thousandths of a core. Returns `None` if it is
/// malformed or does not fit.
#[must_use]
pub fn parse_millicores(quantity: &str) -> Option<u32> {
    if let Some(thousandths) = quantity.strip_suffix('m') {
        return parse_digits(thousandths);
    }
    let (cores, part) = quantity.split_once('.').unwrap_or((quantity, ""));
    if 3 < part.len() || (quantity.contains('.') && part.is_empty()) {
        return None;
    }
    let thousandths = parse_digits(&format!("{part:0<3}"))?;
    parse_digits(cores)?.checked_mul(1_000)?.checked_add(thousandths)
}

/// Parses a number that consists of digits only, without a sign.
fn parse_digits(digits: &str) -> Option<u32> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bytes() {
        assert_eq!(parse_bytes("16Gi"), Some(16 << 30));
        assert_eq!(parse_bytes("500M"), Some(500_000_000));
        assert_eq!(parse_bytes("1024"), Some(1_024));
        for wrong in ["", "Gi", "-1Gi", "1.5Gi", "1 Gi", "1Pi", "99999999999Ti"] {
            assert_eq!(parse_bytes(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn cores_are_thousandths() {
        assert_eq!(parse_millicores("4"), Some(4_000));
        assert_eq!(parse_millicores("500m"), Some(500));
        assert_eq!(parse_millicores("1.5"), Some(1_500));
        assert_eq!(parse_millicores("0.125"), Some(125));
        for wrong in ["", "m", "1.", ".5", "1.2345", "-1", "+1", "1.5m", "99999999999"] {
            assert_eq!(parse_millicores(wrong), None, "{wrong:?}");
        }
    }
}
