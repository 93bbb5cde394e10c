//! Decimals: a scale, and a whole number of any size that is divided by ten to that power.
//!
//! A float is sent with all of its digits, as Python's `Decimal` has it.

use crate::session::StatementValue;

/// No float has more digits behind the point.
const MOST_DIGITS: usize = 1074;
/// Beyond this, what is read is no value of a statement, and not worth its digits.
const MOST_OCTETS: usize = 512;

/// Gives the octets of a number.
pub fn to_octets(value: &StatementValue) -> Option<Vec<u8>> {
    let (is_negative, digits, scale) = to_digits(value)?;
    // From the lowest octet on; one more for the sign.
    let mut number = vec![0_u8];
    for digit in digits.bytes() {
        let mut carry = u16::from(digit - b'0');
        for octet in &mut number {
            let [high, low] = (u16::from(*octet) * 10 + carry).to_be_bytes();
            (*octet, carry) = (low, high.into());
        }
        if carry > 0 {
            number.push(carry.to_be_bytes()[1]);
        }
    }
    number.push(0);
    number.reverse();
    if is_negative {
        negate(&mut number);
    }
    let mut octets = i32::try_from(scale).ok()?.to_be_bytes().to_vec();
    octets.extend_from_slice(super::values::to_varint(&number));
    Some(octets)
}

/// Gives the number that octets are, if a value of a statement can be it.
pub fn from_octets(octets: &[u8]) -> Option<StatementValue> {
    let (scale, number) = octets.split_first_chunk::<4>()?;
    let scale = i64::from(i32::from_be_bytes(*scale));
    let is_negative = number.first()? & 0x80 != 0;
    if number.len() > MOST_OCTETS || scale.unsigned_abs() > MOST_DIGITS as u64 {
        return None;
    }
    let mut number = number.to_vec();
    if is_negative {
        negate(&mut number);
    }
    let mut digits = Vec::new();
    while number.iter().any(|octet| *octet > 0) {
        let mut rest = 0;
        for octet in &mut number {
            let part = rest << 8 | u16::from(*octet);
            (*octet, rest) = ((part / 10).to_be_bytes()[1], part % 10);
        }
        digits.push(b'0' + rest.to_be_bytes()[1]);
    }
    digits.reverse();
    let said = String::from_utf8(digits).ok()?;
    let sign = if is_negative { "-" } else { "" };
    let real = format!(
        "{sign}{}e{}",
        if said.is_empty() { "0" } else { &said },
        -scale
    );
    let real = StatementValue::Real(real.parse().ok()?);
    let found = simplify(is_negative, &said, scale);
    let (is_negative, digits, exact) = to_digits(&real)?;
    if simplify(is_negative, &digits, exact) == found {
        return Some(real);
    }
    // A whole one that is beyond what a float tells apart.
    let zeros = usize::try_from(-found.2).ok()?;
    let whole = format!("{sign}{}{}", found.1, "0".repeat(zeros));
    whole.parse().ok().map(StatementValue::Whole)
}

fn to_digits(value: &StatementValue) -> Option<(bool, String, i64)> {
    match value {
        StatementValue::Bool(flag) => Some((false, u8::from(*flag).to_string(), 0)),
        StatementValue::Whole(whole) => Some((*whole < 0, whole.unsigned_abs().to_string(), 0)),
        StatementValue::Real(real) => {
            let said = format!("{:.MOST_DIGITS$}", real.abs());
            let (whole, rest) = said.trim_end_matches('0').split_once('.')?;
            let scale = i64::try_from(rest.len()).ok()?;
            Some((*real < 0.0, format!("{whole}{rest}"), scale))
        }
        StatementValue::Text(_) | StatementValue::Uuid(_) => None,
    }
}

/// Leaves out zeros at both ends.
fn simplify(is_negative: bool, digits: &str, scale: i64) -> (bool, &str, i64) {
    let digits = digits.trim_start_matches('0');
    let short = digits.trim_end_matches('0');
    if short.is_empty() {
        return (false, short, 0);
    }
    let zeros = i64::try_from(digits.len() - short.len()).unwrap_or_default();
    (is_negative, short, scale - zeros)
}

/// Takes a number, from its highest octet on, to the same one of the other sign.
fn negate(number: &mut [u8]) {
    let mut carry = true;
    for octet in number.iter_mut().rev() {
        (*octet, carry) = (!*octet).overflowing_add(carry.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use StatementValue::{Bool, Real, Whole};

    /// What the Python driver sends for the same values.
    #[test]
    fn numbers_are_sent_with_all_of_their_digits() {
        for (value, said) in PYTHON {
            let (octets, _) = said.as_bytes().as_chunks::<2>();
            let octets: Vec<u8> = octets
                .iter()
                .map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap())
                .collect();
            assert_eq!(to_octets(value), Some(octets), "{value:?}");
        }
        assert_eq!(to_octets(&StatementValue::Text("5".into())), None);
    }

    #[test]
    fn what_was_sent_is_read_as_what_it_is_worth() {
        let ends = [5e-324, f64::MAX, f64::MIN].map(|real| (Real(real), ""));
        for (value, _) in PYTHON.iter().chain(&ends) {
            let found = from_octets(&to_octets(value).unwrap()).unwrap();
            assert!(
                crate::values::statements::are_equal(&found, value),
                "{found:?} of {value:?}"
            );
        }
        // 5.00, 500e2, and a third that no float is.
        assert_eq!(from_octets(b"\0\0\0\x02\x01\xf4"), Some(Real(5.0)));
        assert_eq!(
            from_octets(b"\xff\xff\xff\xfe\x01\xf4"),
            Some(Real(50_000.0))
        );
        assert_eq!(from_octets(b"\0\0\0\x01\x01"), None);
        assert_eq!(from_octets(b"\0\0\0\0"), None);
        assert_eq!(from_octets(b""), None);
    }

    const PYTHON: &[(StatementValue, &str)] = &[
        (Whole(0), "0000000000"),
        (Bool(true), "0000000001"),
        (Whole(-1), "00000000ff"),
        (Whole(128), "000000000080"),
        (Whole(-128), "0000000080"),
        (Whole(-129), "00000000ff7f"),
        (Whole(-(1 << 63)), "000000008000000000000000"),
        (Whole((1 << 53) + 1), "0000000020000000000001"),
        (Real(0.0), "0000000000"),
        (Real(0.5), "0000000105"),
        (Real(-0.5), "00000001fb"),
        (Real(5.0), "0000000005"),
        (
            Real(0.1),
            "000000370a70c3c40a64e6eedca81934f99191f8a4242d97d9f649",
        ),
        (
            Real(-123.456),
            "0000002eff27c06a3b9f416794be4bb5155416051707660631",
        ),
        (Real(1e22), "00000000021e19e0c9bab2400000"),
    ];
}
