//! Owns the reading of Rust source for the layering test: which paths a file names outside its
//! comments, literals and test code, and as which module each path resolves.
//!
//! This is no parser: it knows comments, literals, `use` trees, `mod` nesting and `::` chains.
//! Macros that build paths from pieces, and `#[path]`, are beyond it.

use std::collections::BTreeSet;

/// What one file names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    /// Paths into this crate from its root, e.g. `["results", "Protocol"]`.
    pub internal: BTreeSet<Vec<String>>,
    /// Paths that start elsewhere, e.g. `["std", "net", "TcpStream"]`. Those
    /// that start with a name in scope, such as `Vec::new`, are among them.
    pub external: BTreeSet<Vec<String>>,
    /// Modules declared outside test code, in their order.
    pub declares: Vec<String>,
    /// Modules declared in files of their own for tests alone (`#[cfg(test)] mod name;`).
    pub test_modules: BTreeSet<String>,
    /// True when the word `unsafe` occurs, in test code too.
    pub uses_unsafe: bool,
}

/// Reads `source`, the file of `module` (`["load", "plan"]`; the crate's root is empty).
pub(crate) fn names<S: AsRef<str>>(module: &[S], source: &str) -> Names {
    let all = tokens(&blank(source));
    let mut names = Names { uses_unsafe: all.contains(&"unsafe".to_owned()), ..Names::default() };
    let tokens = without_tests(&all, &mut names.test_modules);
    names.declares = tokens.windows(2).filter(|pair| pair[0] == "mod").map(|pair| pair[1].clone()).collect();

    // The module a path is relative to, and the brace depth at which each nested one opened.
    let mut here: Vec<String> = module.iter().map(|name| name.as_ref().to_owned()).collect();
    let mut nested = Vec::new();
    let mut depth = 0usize;
    let mut at = 0;
    while at < tokens.len() {
        let paths = match tokens[at].as_str() {
            "{" => {
                depth += 1;
                at += 1;
                continue;
            }
            "}" => {
                depth = depth.saturating_sub(1);
                if nested.last() == Some(&depth) {
                    nested.pop();
                    here.pop();
                }
                at += 1;
                continue;
            }
            "mod" if tokens.get(at + 2).is_some_and(|token| token == "{") => {
                nested.push(depth);
                here.push(tokens[at + 1].clone());
                at += 2;
                continue;
            }
            "use" => {
                at += 1;
                use_tree(&tokens, &mut at, &[])
            }
            // A method with a turbofish is no path.
            token if is_name(token) && joined(&tokens, at) && (at == 0 || tokens[at - 1] != ".") => {
                vec![chain(&tokens, &mut at)]
            }
            _ => {
                at += 1;
                continue;
            }
        };
        for path in paths {
            match resolve(&here, &names.declares, &path) {
                Some(internal) => names.internal.insert(internal),
                None => names.external.insert(path),
            };
        }
    }
    names
}

/// `path` from the crate's root, or `None` when it does not lead into this crate.
fn resolve(here: &[String], children: &[String], path: &[String]) -> Option<Vec<String>> {
    let (base, skip) = match path[0].as_str() {
        "crate" => (0, 1),
        "self" => (here.len(), 1),
        "super" => {
            let supers = path.iter().take_while(|segment| *segment == "super").count();
            (here.len().saturating_sub(supers), supers)
        }
        _ if children.contains(&path[0]) => (here.len(), 0),
        _ => return None,
    };
    let rest = path[skip..].iter().filter(|segment| *segment != "*" && *segment != "self");
    Some(here[..base].iter().chain(rest).cloned().collect())
}

/// The paths of the `use` tree that starts at `at`, each after `prefix`.
fn use_tree(tokens: &[String], at: &mut usize, prefix: &[String]) -> Vec<Vec<String>> {
    let mut path = prefix.to_vec();
    while let Some(token) = tokens.get(*at) {
        match token.as_str() {
            "::" => *at += 1,
            "as" => *at += 2,
            "{" => {
                *at += 1;
                let mut paths = Vec::new();
                while tokens.get(*at).is_some_and(|token| token != "}") {
                    let before = *at;
                    paths.extend(use_tree(tokens, at, &path));
                    if tokens.get(*at).is_some_and(|token| token == ",") || *at == before {
                        *at += 1;
                    }
                }
                *at += 1;
                return paths;
            }
            name if is_name(name) || name == "*" => {
                path.push(name.to_owned());
                *at += 1;
            }
            _ => break,
        }
    }
    if path.len() > prefix.len() { vec![path] } else { Vec::new() }
}

/// Whether `::` follows the token at `at`.
fn joined(tokens: &[String], at: usize) -> bool {
    tokens.get(at + 1).is_some_and(|next| next == "::")
}

/// The names joined by `::` from `at` on.
fn chain(tokens: &[String], at: &mut usize) -> Vec<String> {
    let mut path = vec![tokens[*at].clone()];
    *at += 1;
    while tokens.get(*at).is_some_and(|token| token == "::")
        && tokens.get(*at + 1).is_some_and(|t| is_name(t))
    {
        path.push(tokens[*at + 1].clone());
        *at += 2;
    }
    path
}

/// `tokens` without the items below `#[cfg(test)]`; test modules in other files go to `elsewhere`.
fn without_tests(tokens: &[String], elsewhere: &mut BTreeSet<String>) -> Vec<String> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if !tokens[at..].iter().take(MARK.len()).eq(MARK.iter()) {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        at += MARK.len();
        let start = at;
        // The item ends with its first semicolon or closing brace outside every bracket, or where
        // what surrounds it ends.
        let mut depth = 0i32;
        while let Some(token) = tokens.get(at) {
            match token.as_str() {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            if depth < 0 {
                break;
            }
            at += 1;
            if depth == 0 && (token == ";" || token == "}") {
                break;
            }
        }
        if let [.., keyword, name, end] = &tokens[start..at]
            && keyword == "mod"
            && end == ";"
        {
            elsewhere.insert(name.clone());
        }
    }
    kept
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Names, `::` and single punctuation characters.
fn tokens(source: &str) -> Vec<String> {
    let chars: Vec<char> = source.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let start = at;
        if chars[at].is_alphanumeric() || chars[at] == '_' {
            while at < chars.len() && (chars[at].is_alphanumeric() || chars[at] == '_') {
                at += 1;
            }
        } else if chars[at..].starts_with(&[':', ':']) {
            at += 2;
        } else {
            at += 1;
        }
        if !chars[start].is_whitespace() {
            tokens.push(chars[start..at].iter().collect());
        }
    }
    tokens
}

/// `source` with comments and the insides of string and character literals left out.
fn blank(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut code = String::with_capacity(source.len());
    let mut at = 0;
    while at < chars.len() {
        let end = comment_end(&chars, at).or_else(|| literal_end(&chars, at));
        match end {
            Some(end) => {
                code.push(' ');
                at = end;
            }
            None if chars[at].is_alphanumeric() || chars[at] == '_' => {
                // A whole word, so that the `r` of `for"` is not taken for a raw string's prefix.
                while at < chars.len() && (chars[at].is_alphanumeric() || chars[at] == '_') {
                    code.push(chars[at]);
                    at += 1;
                }
            }
            None => {
                code.push(chars[at]);
                at += 1;
            }
        }
    }
    code
}

fn comment_end(chars: &[char], at: usize) -> Option<usize> {
    if chars[at..].starts_with(&['/', '/']) {
        let length = chars[at..].iter().position(|&c| c == '\n');
        return Some(length.map_or(chars.len(), |length| at + length));
    }
    if !chars[at..].starts_with(&['/', '*']) {
        return None;
    }
    let mut depth = 0;
    let mut at = at;
    while at < chars.len() {
        if chars[at..].starts_with(&['/', '*']) {
            depth += 1;
            at += 2;
        } else if chars[at..].starts_with(&['*', '/']) {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    Some(at.min(chars.len()))
}

fn literal_end(chars: &[char], at: usize) -> Option<usize> {
    let rest = &chars[at..];
    let prefix = rest.iter().take_while(|c| matches!(c, 'r' | 'b' | 'c')).count();
    let hashes = rest[prefix..].iter().take_while(|&&c| c == '#').count();
    match rest.get(prefix + hashes) {
        Some('"') if prefix > 0 && rest[..prefix].contains(&'r') => {
            let mut close = vec!['#'; hashes + 1];
            close[0] = '"';
            let body = &rest[prefix + hashes + 1..];
            let length = body.windows(close.len()).position(|window| window == close);
            Some(length.map_or(chars.len(), |length| at + prefix + hashes + 1 + length + close.len()))
        }
        Some('"') if hashes == 0 && prefix <= 1 => Some(quoted_end(chars, at + prefix + 1, '"')),
        // A lifetime has no closing quote after its first character.
        Some('\'') if hashes == 0 && prefix <= 1 => {
            let body = at + prefix + 1;
            let escaped = chars.get(body) == Some(&'\\');
            (escaped || chars.get(body + 1) == Some(&'\'')).then(|| quoted_end(chars, body, '\''))
        }
        _ => None,
    }
}

fn quoted_end(chars: &[char], mut at: usize, quote: char) -> usize {
    while at < chars.len() && chars[at] != quote {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn internal(module: &[&str], source: &str) -> Vec<String> {
        names(module, source).internal.iter().map(|path| path.join("::")).collect()
    }

    fn external(source: &str) -> Vec<String> {
        names(&["m"], source).external.iter().map(|path| path.join("::")).collect()
    }

    #[test]
    fn paths_into_the_crate() {
        for (module, source, expected) in [
            (&["a"][..], "use crate::b;", &["b"][..]),
            (&["a"], "pub(crate) use crate::{b, c::{self, D as E}, f::*};", &["b", "c", "c::D", "f"]),
            (&["a"], "use crate::{\n    b::{C, D},\n    e,\n};", &["b::C", "b::D", "e"]),
            (&["a", "b"], "use super::c::D; use super::super::e;", &["a::c::D", "e"]),
            (
                &["a", "b"],
                "use super::{self as up, x}; fn f() { self::y::z() }",
                &["a", "a::b::y::z", "a::x"],
            ),
            (&["a"], "fn f(x: &crate::b::C) -> Vec<super::d::E> {}", &["b::C", "d::E"]),
            (&["a"], "mod inner { use super::x; use super::super::y; } use super::z;", &["a::x", "y", "z"]),
            (
                &["a"],
                "mod child; pub use child::Thing; fn f() { child::go() }",
                &["a::child::Thing", "a::child::go"],
            ),
            (&["a"], "macro_rules! m { () => { $crate::b::c!() } }", &["b::c"]),
            (&["a"], "fn f() { crate::b::g::<crate::c::D>() }", &["b::g", "c::D"]),
        ] {
            assert_eq!(internal(module, source), expected, "{source}");
        }
    }

    #[test]
    fn paths_out_of_the_crate() {
        for (source, expected) in [
            (
                "use std::{net::{TcpStream, self}, io};",
                &["std::io", "std::net::TcpStream", "std::net::self"][..],
            ),
            (
                "#[derive(clap::Args)] struct A { at: std::time::Instant }",
                &["clap::Args", "std::time::Instant"],
            ),
            ("use ::nix::libc as c;", &["nix::libc"]),
            ("fn f() { x.time::<u8>(); a ? b : c; }", &[]),
        ] {
            assert_eq!(external(source), expected, "{source}");
        }
    }

    #[test]
    fn comments_literals_and_tests_name_nothing() {
        for source in [
            "// use crate::b;",
            "/// See [`crate::b`].\nfn f() {}",
            "/* outer /* crate::b */ crate::c */",
            r#"const A: &str = "use crate::b; \" crate::c";"#,
            r##"const A: &str = r#"crate::b " crate::c"#;"##,
            r#"const A: &[u8] = b"crate::b"; const B: &CStr = c"crate::c";"#,
            "#[cfg(test)] mod tests { use crate::b; fn f() { if true {} } }",
            "#[cfg(test)] use crate::b;",
            "#[cfg(test)] #[allow(dead_code)] fn f(x: [u8; 2]) { crate::b() }",
        ] {
            assert_eq!(internal(&["a"], source), [""; 0], "{source}");
        }
    }

    #[test]
    fn what_follows_a_blanked_part_is_still_read() {
        for source in [
            "/* a */ use crate::b;",
            "// a\nuse crate::b;",
            r#"const A: &str = "\\"; use crate::b;"#,
            r##"const A: &str = r#"""#; use crate::b;"##,
            r"const A: [char; 3] = ['\'', '{', '\u{41}']; use crate::b;",
            "fn f<'a>(x: &'a str) {} use crate::b;",
            "#[cfg(test)] mod tests { fn f() { let _ = '}'; } } use crate::b;",
            "struct A { #[cfg(test)] x: u8 } use crate::b;",
            "#[cfg(test)] mod tests; use crate::b;",
            "mod inner { } use super::b;",
        ] {
            assert_eq!(internal(&["a"], source), ["b"], "{source}");
        }
    }

    #[test]
    fn test_modules_and_unsafe_are_noticed() {
        let found = names(&["a"], "#[cfg(test)]\nmod tests;\n#[cfg(test)] mod inline {}\nmod other;");
        assert_eq!(found.test_modules, BTreeSet::from(["tests".to_owned()]));
        for (source, expected) in [
            ("fn f() { unsafe { g() } }", true),
            ("#[cfg(test)] mod tests { unsafe fn f() {} }", true),
            ("#![deny(unsafe_code)] // unsafe\nconst A: &str = \"unsafe\";", false),
        ] {
            assert_eq!(names(&["a"], source).uses_unsafe, expected, "{source}");
        }
    }
}
