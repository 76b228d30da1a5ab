//! Owns how quantities are read from and printed for people: durations (`10s`, `1m30s`, `200ms`),
//! counts in groups of three, and sizes in bytes.

use crate::time::Span;

/// The separator between groups of three digits: a narrow no-break space.
pub const THIN_SPACE: char = '\u{202f}';

/// Reads a duration: one or more `<number><unit>` with units `ns`, `us`, `ms`, `s`, `m`, `h`, e.g.
/// `10s`, `1m30s`, `1.5s`. A bare number is refused, because its unit would be a guess.
///
/// # Errors
/// A sentence fragment that says what is wrong and what a right value looks like.
pub fn parse_duration(text: &str) -> Result<Span, String> {
    let bad =
        |what: &str| Err(format!("{what} in duration `{text}`; write it like `10s`, `200ms` or `1m30s`"));
    let mut rest = text.trim();
    if rest.is_empty() {
        return bad("nothing");
    }
    let mut nanos = 0f64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Ok(value) = rest[..digits].parse::<f64>() else { return bad("no number") };
        rest = &rest[digits..];
        let letters = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        let factor = match &rest[..letters] {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            "" => return bad("no unit"),
            unit => return bad(&format!("unknown unit `{unit}`")),
        };
        nanos += value * factor;
        rest = &rest[letters..];
    }
    // A year is far beyond any run and keeps every sum of durations inside 64 bits.
    if nanos > 366.0 * 86_400e9 {
        return bad("over a year");
    }
    Ok(Span::from_nanos(nanos.round() as u64))
}

/// Prints a duration so that [`parse_duration`] reads the same value back: `10s`, `1m30s`, `1.5ms`.
pub fn format_duration(span: Span) -> String {
    let mut nanos = span.as_nanos();
    if nanos == 0 {
        return "0s".into();
    }
    let mut out = String::new();
    for (unit, size) in [("h", 3_600_000_000_000), ("m", 60_000_000_000)] {
        if nanos >= size {
            out += &format!("{}{unit}", nanos / size);
            nanos %= size;
        }
    }
    let (unit, size) = match nanos {
        0 => return out,
        1_000_000_000.. => ("s", 1e9),
        1_000_000.. => ("ms", 1e6),
        1_000.. => ("us", 1e3),
        _ => ("ns", 1.0),
    };
    out + &format!("{}{unit}", nanos as f64 / size)
}

/// Reads a share written as a percentage, `5%` or `0.5 %`, as 0.05 or 0.005. A bare number is refused:
/// `0.05` could mean either.
///
/// # Errors
/// A sentence fragment that says what a right value looks like.
pub fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').map(str::trim_end);
    // `f64::from_str` would also take `inf`, `nan`, exponents and signs.
    let plain = |number: &&str| number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let share = number.filter(plain).and_then(|number| number.parse::<f64>().ok());
    share
        .map(|percent| percent / 100.0)
        .ok_or_else(|| format!("`{text}` is no percentage; write it like `5%` or `0.5%`"))
}

/// Prints a count in groups of three: `1 234 567`.
pub fn group_thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() * 2);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(THIN_SPACE);
        }
        out.push(digit);
    }
    out
}

/// Prints a size with a binary unit and three significant digits: `14 B`, `1.50 KiB`, `64.0 MiB`.
pub fn format_bytes(bytes: f64) -> String {
    let mut value = bytes;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1000.0 {
            return match (unit, value) {
                ("B", _) => format!("{value:.0} B"),
                (_, v) if v < 10.0 => format!("{v:.2} {unit}"),
                (_, v) if v < 100.0 => format!("{v:.1} {unit}"),
                _ => format!("{value:.0} {unit}"),
            };
        }
        value /= 1024.0;
    }
    format!("{value:.2} TiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_write_them() {
        for (text, nanos) in [
            ("10s", 10_000_000_000),
            ("200ms", 200_000_000),
            ("1m30s", 90_000_000_000),
            ("1.5s", 1_500_000_000),
            ("50us", 50_000),
            ("0s", 0),
        ] {
            assert_eq!(parse_duration(text), Ok(Span::from_nanos(nanos)), "{text}");
        }
        for text in ["", "10", "s", "10 s", "-1s", "1d", "1e3s", "9999999h", "1..5s", "NaNs"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn printed_durations_read_back() {
        for nanos in [
            0,
            1,
            999,
            1_500,
            200_000_000,
            1_500_000_000,
            90_000_000_000,
            3_600_000_000_000,
            5_400_250_000_000,
        ] {
            let span = Span::from_nanos(nanos);
            assert_eq!(parse_duration(&format_duration(span)), Ok(span), "{}", format_duration(span));
        }
    }

    #[test]
    fn percentages_need_their_sign() {
        for (text, share) in [("5%", 0.05), ("0.5 %", 0.005), (" 200% ", 2.0), ("0%", 0.0)] {
            assert_eq!(parse_percent(text), Ok(share), "{text}");
        }
        for text in ["", "5", "%", "-1%", "inf%", "NaN%", "1e3%", "5%%", "1.2.3%", "+1%"] {
            assert!(parse_percent(text).is_err(), "{text}");
        }
    }

    #[test]
    fn counts_stand_in_groups_of_three() {
        assert_eq!(group_thousands(0), "0");
        assert_eq!(group_thousands(999), "999");
        assert_eq!(group_thousands(1_234_567), "1\u{202f}234\u{202f}567");
    }
}
