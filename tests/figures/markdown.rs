//! Owns the reading of a report's Markdown: tables with what they stand under, and numbers as they are printed.

/// A table and where it stands.
pub(crate) struct Table {
    /// Text of the `##` heading.
    pub(crate) heading: String,
    /// Text of the `###` heading below it, or nothing.
    pub(crate) sub: String,
    /// What folds it, or nothing.
    pub(crate) summary: String,
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// Every table of a report.
pub(crate) fn tables(text: &str) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let (mut heading, mut sub, mut summary) = (String::new(), String::new(), String::new());
    let mut inside = false;
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            (heading, sub, summary) = (plain(&unescaped(title)), String::new(), String::new());
        } else if let Some(title) = line.strip_prefix("### ") {
            (sub, summary) = (title.to_owned(), String::new());
        } else if let Some((_, rest)) = line.split_once("<summary>") {
            summary = rest.trim_end_matches("</summary>").to_owned();
        } else if line.contains("</details>") {
            summary.clear();
        }
        let is_row = line.starts_with('|');
        match (is_row, inside) {
            (true, false) => tables.push(Table {
                heading: heading.clone(),
                sub: sub.clone(),
                // The rounds are folded when there are many; they are the same table.
                summary: if summary == "Every round" { String::new() } else { summary.clone() },
                header: row(line),
                rows: Vec::new(),
            }),
            (true, true) if !line.starts_with("|-") => {
                tables.last_mut().expect("a table was begun").rows.push(row(line));
            }
            _ => {}
        }
        inside = is_row;
    }
    tables
}

/// The `##` heading that a line, a part of `text`, stands under.
pub(crate) fn heading_of(text: &str, line: &str) -> Option<String> {
    let at = line.as_ptr() as usize - text.as_ptr() as usize;
    let title = text[..at].lines().rev().find_map(|line| line.strip_prefix("## "))?;
    Some(plain(&unescaped(title)))
}

fn row(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut escaped = false;
    for c in line.trim_matches('|').chars() {
        match c {
            '|' if !escaped => cells.push(String::new()),
            _ => cells.last_mut().expect("there is one").push(c),
        }
        escaped = c == '\\' && !escaped;
    }
    let bare = |cell: &str| {
        let bold = cell.strip_prefix("**").and_then(|cell| cell.strip_suffix("**"));
        plain(&unescaped(bold.unwrap_or(cell)))
    };
    cells.iter().map(|cell| bare(cell.trim())).collect()
}

/// Without what makes foreign text harmless.
pub(crate) fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    out.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// On one line, as reports print labels and titles.
pub(crate) fn plain(text: &str) -> String {
    text.split([' ', '\n', '\t']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A number as printed and half the unit of its last digit: `**1 234**†`, `±1.2 %`, `0.61×`, `≥ 3.4`.
pub(crate) fn number(printed: &str) -> Option<(f64, f64)> {
    const MARKS: &str = "‡§†¶◊¤∂°";
    let bare = printed.trim_matches('*').trim_end_matches(|c| MARKS.contains(c)).trim_matches('*');
    let bare = bare.trim_start_matches("≥ ").trim_start_matches('±');
    let bare = bare.trim_end_matches(" %").trim_end_matches('×').replace('\u{202f}', "");
    if bare.is_empty() || !bare.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let decimals = bare.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    Some((bare.parse().ok()?, 0.5 / 10f64.powi(i32::try_from(decimals).ok()?)))
}

/// `1m30s`, `41.3s`, `100ms` in seconds.
pub(crate) fn duration_s(printed: &str) -> Option<f64> {
    let mut total = 0.0;
    let mut rest = printed;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (value, behind) = rest.split_at(digits);
        let unit = behind.find(|c: char| c.is_ascii_digit()).unwrap_or(behind.len());
        let seconds = match &behind[..unit] {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            _ => return None,
        };
        total += value.parse::<f64>().ok()? * seconds;
        rest = &behind[unit..];
    }
    Some(total)
}
