//! Owns text as Markdown (GFM) takes it: foreign strings made harmless, figures in the precision
//! readers expect, tables whose source lines up.

use crate::units::group_thousands;

/// What stands where there is no figure.
pub(super) const MISSING: &str = "n/a";

/// A foreign string (a label, a version, a log line, a path) as inline text: one line, and every
/// character that could start markup, HTML, a table cell or a mention made literal. An underscore inside a word
/// is literal already and stays readable.
pub(super) fn escape(text: &str) -> String {
    let text = one_line(text);
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    for (i, c) in chars.iter().enumerate() {
        let inside_word = || {
            let word =
                |at: Option<usize>| at.and_then(|at| chars.get(at)).is_some_and(|c| c.is_alphanumeric());
            word(i.checked_sub(1)) && word(Some(i + 1))
        };
        // A tilde can only end strikethrough after something that is not a space; before a figure
        // it says "about".
        let about = || {
            i.checked_sub(1).is_none_or(|at| chars[at].is_whitespace())
                && chars.get(i + 1).is_some_and(|c| c.is_alphanumeric())
        };
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // In a comment on GitHub these would call people, and link issues.
            '@' => out.push_str("&#64;"),
            '#' if chars.get(i + 1).is_some_and(char::is_ascii_digit) => out.push_str("&#35;"),
            '_' if inside_word() => out.push('_'),
            '~' if about() => out.push('~'),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '$' => out.extend(['\\', *c]),
            c => out.push(*c),
        }
    }
    out
}

/// A foreign string as a code span (CommonMark 6.1): the fence is longer than any run of backticks
/// inside. Not for table cells, where a pipe would still end the cell.
pub(super) fn code(text: &str) -> String {
    let text = one_line(text);
    let fence = "`".repeat(longest_backtick_run(&text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    if text.is_empty() { String::new() } else { format!("{fence}{pad}{text}{pad}{fence}") }
}

/// Lines of a log as a fenced block (CommonMark 4.5), each cut to [`LOG_LINE_LIMIT`] characters.
pub(super) fn fenced(lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| cut(&printable(line), LOG_LINE_LIMIT)).collect();
    let longest = lines.iter().map(|line| longest_backtick_run(line)).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{}\n{fence}", lines.join("\n"))
}

/// The text on one line, without control characters.
pub(super) fn one_line(text: &str) -> String {
    printable(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `text`, at most `limit` characters of it.
pub(super) fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// A commit's hash as people name it.
pub(super) fn short_hash(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

/// Control characters, and those that reorder or hide the text around them, become spaces; terminal
/// colours and other escape sequences (ECMA-48 5.4) are left out whole.
pub(super) fn printable(text: &str) -> String {
    let hidden =
        |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' && chars.next_if_eq(&'[').is_some() {
            while chars.next_if(|c| matches!(c, ' '..='?')).is_some() {}
            let _final_byte = chars.next_if(|c| matches!(c, '@'..='~'));
        } else {
            out.push(if c.is_control() || hidden(c) { ' ' } else { c });
        }
    }
    out
}

fn longest_backtick_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// A rate: whole numbers in groups of three, two decimals below ten.
pub(super) fn rate(per_second: f64) -> String {
    number(per_second, |v| if v < 10.0 { 2 } else { 0 })
}

/// A latency in ms: two decimals, three below a tenth, none from a hundred on.
pub(super) fn millis(micros: f64) -> String {
    number(micros / 1e3, |v| match v {
        v if v < 0.1 => 3,
        v if v < 100.0 => 2,
        _ => 0,
    })
}

/// A ratio: two decimals, three below a hundredth, none from a hundred on.
pub(super) fn times(ratio: f64) -> String {
    let decimals = |v| match v {
        v if v < 0.01 => 3,
        v if v < 100.0 => 2,
        _ => 0,
    };
    number(ratio, decimals) + "×"
}

/// CPU time in µs: two decimals, none from a thousand on.
pub(super) fn micros(micros: f64) -> String {
    number(micros, |v| if v < 1000.0 { 2 } else { 0 })
}

/// Memory in MiB: one decimal, none from a hundred on.
pub(super) fn mebibytes(kib: u64) -> String {
    number(kib as f64 / 1024.0, |v| if v < 100.0 { 1 } else { 0 })
}

/// A share as a percentage.
pub(super) fn percent(share: f64) -> String {
    number(share * 100.0, |_| 0) + " %"
}

/// A spread, `±1.2 %`.
pub(super) fn plus_minus(spread: f64) -> String {
    format!("±{} %", number(spread * 100.0, |_| 1))
}

/// A figure of unknown magnitude: four digits where it has as many, none after the point from a thousand
/// on.
pub(super) fn plain(value: f64) -> String {
    let whole = value.fract() == 0.0;
    number(value, |v| match v {
        _ if whole => 0,
        v if v >= 1000.0 => 0,
        v if v >= 1.0 => 3 - (v.log10() as usize).min(3),
        v if v > 0.0 => (3.0 - v.log10().floor()).min(12.0) as usize,
        _ => 0,
    })
}

fn number(value: f64, decimals: impl Fn(f64) -> usize) -> String {
    if !value.is_finite() || value < 0.0 {
        return MISSING.into();
    }
    let decimals = decimals(value);
    if decimals == 0 { group_thousands(value.round() as u64) } else { format!("{value:.decimals$}") }
}

/// Which side a column's text stands on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Left,
    Right,
}

/// A GFM table whose source lines up. Cells are Markdown already; each row has as many as `header`.
pub(super) fn table(header: &[(String, Side)], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.chain([&header[column].0]).map(|cell| cell.chars().count()).max().unwrap_or(0).max(3)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded = cells.zip(&widths).zip(header).map(|((cell, width), (_, side))| {
            let space = " ".repeat(width.saturating_sub(cell.chars().count()));
            match side {
                Side::Left => format!("{cell}{space}"),
                Side::Right => format!("{space}{cell}"),
            }
        });
        format!("| {} |\n", padded.collect::<Vec<_>>().join(" | "))
    };
    let mut out = line(&mut header.iter().map(|(title, _)| title.as_str()));
    out.push('|');
    for (width, (_, side)) in widths.iter().zip(header) {
        out.push_str(&"-".repeat(width + 1));
        out.push_str(if *side == Side::Right { ":|" } else { "-|" });
    }
    out.push('\n');
    for row in rows {
        out.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    out.pop();
    out
}

const LOG_LINE_LIMIT: usize = 200;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn foreign_strings_cannot_leave_their_place() {
        for (text, markdown) in [
            ("nginx/1.26.2", "nginx/1.26.2"),
            ("a|b", r"a\|b"),
            ("two\nlines\r\n", "two lines"),
            ("<img src=x>", "&lt;img src=x&gt;"),
            ("`code` **bold** [link](x)", r"\`code\` \*\*bold\*\* \[link\](x)"),
            ("HTTP_RESULTS _emphasis_", r"HTTP_RESULTS \_emphasis\_"),
            ("~72.6 in flight ~~gone~~", r"~72.6 in flight \~\~gone\~\~"),
            ("back\\slash &amp; \u{1b}[1;31mred\u{1b}[", r"back\\slash &amp;amp; red"),
            ("right\u{202e}to left", "right to left"),
        ] {
            assert_eq!(escape(text), markdown);
        }
        assert_eq!(code("a `b` c"), "``a `b` c``");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(fenced(&["```".into(), "x".into()]), "````text\n```\nx\n````");
    }

    #[test]
    fn figures_have_the_precision_readers_expect() {
        assert_eq!(rate(109_983.4), "109\u{202f}983");
        assert_eq!(rate(0.5), "0.50");
        for (micros, text) in
            [(22.4, "0.022"), (140.0, "0.14"), (26_310.0, "26.31"), (2_950_000.0, "2\u{202f}950")]
        {
            assert_eq!(millis(micros), text);
        }
        assert_eq!(micros(11.474), "11.47");
        assert_eq!(mebibytes(9_216), "9.0");
        assert_eq!(plus_minus(0.0123), "±1.2 %");
        for bad in [f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!(rate(bad), MISSING);
        }
    }

    #[test]
    fn a_table_lines_up_in_its_source() {
        let text = table(
            &[("Server".into(), Side::Left), ("1 x 1".into(), Side::Right)],
            &[vec!["Rust".into(), "**13 551**".into()], vec!["N".into(), "9".into()]],
        );
        let expected = "\
| Server |      1 x 1 |
|--------|-----------:|
| Rust   | **13 551** |
| N      |          9 |";
        assert_eq!(text, expected);
    }

    proptest! {
        #[test]
        fn an_escaped_string_is_one_line_without_a_bare_pipe(text in "\\PC{0,40}|[|\\\\`<>\n ]{0,20}") {
            let escaped = escape(&text);
            prop_assert!(!escaped.contains(['\n', '<', '>']));
            let mut backslashes = 0;
            for c in escaped.chars() {
                prop_assert!(c != '|' || backslashes % 2 == 1, "{}", escaped);
                backslashes = if c == '\\' { backslashes + 1 } else { 0 };
            }
        }
    }
}
