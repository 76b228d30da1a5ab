//! Holds the layer table of `docs/architecture.md` to the code: which module may use which, which
//! do no I/O, which libraries are kept to which modules, where `unsafe` may stand.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

#[path = "layering/scan.rs"]
mod scan;

/// What a row marked `no I/O` names nothing of: sockets, files, threads, processes, the
/// environment and clocks, and the libraries that lead to them.
const IO: &[&str] = &[
    "std::net",
    "std::fs",
    "std::thread",
    "std::process",
    "std::env",
    "std::time::Instant",
    "std::time::SystemTime",
    "nix",
    "libc",
    "io_uring",
];

/// The one module whose code may be `unsafe`.
const UNSAFE: &str = "load::uring";

#[test]
fn code_keeps_to_the_table_of_the_architecture_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let table = Table::parse(&text("docs/architecture.md")).unwrap();
    let mut files = BTreeMap::new();
    collect(&root.join("src"), "", &mut files);
    assert!(files.contains_key("lib.rs"), "no sources found");

    let complaints = complaints(&table, &files, &dependencies(&text("Cargo.toml")));
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    /// Path from the crate's root, e.g. `load::plan`.
    module: String,
    /// Modules and libraries it may use.
    may_use: BTreeSet<String>,
    /// Whether it is held to naming nothing of [`IO`].
    no_io: bool,
}

/// The table: a module belongs to the row with the longest path that leads to it.
#[derive(Debug)]
struct Table(Vec<Row>);

impl Table {
    /// Reads the table headed `module | owns | may use` in `markdown`.
    fn parse(markdown: &str) -> Result<Self, String> {
        let mut lines = markdown.lines().map(cells);
        lines
            .find(|cells| *cells == ["module", "owns", "may use"])
            .ok_or("no table headed `module | owns | may use`")?;
        let rows = lines
            .skip(1)
            .take_while(|cells| !cells.is_empty())
            .map(|cells| match &cells[..] {
                [module, _, may_use] if quoted(module).len() == 1 => Ok(Row {
                    module: quoted(module).remove(0),
                    may_use: quoted(may_use).into_iter().collect(),
                    no_io: may_use.contains("no I/O"),
                }),
                _ => Err(format!("not a row of one quoted module and two more cells: {cells:?}")),
            })
            .collect::<Result<Vec<_>, _>>()?;
        if rows.is_empty() { Err("the table is empty".to_owned()) } else { Ok(Self(rows)) }
    }

    fn row(&self, path: &[String]) -> Option<&Row> {
        (1..=path.len()).rev().find_map(|length| self.named(&path[..length].join("::")))
    }

    fn named(&self, module: &str) -> Option<&Row> {
        self.0.iter().find(|row| row.module == module)
    }

    /// Entries that are no rows: libraries, which only the rows that list them may name.
    fn libraries(&self) -> BTreeSet<&str> {
        let entries = self.0.iter().flat_map(|row| &row.may_use).map(String::as_str);
        entries.filter(|entry| self.named(entry).is_none()).collect()
    }

    /// What is wrong with the table itself, given the files and dependencies there are.
    fn complaints(&self, files: &BTreeMap<String, String>, dependencies: &BTreeSet<String>) -> Vec<String> {
        let mut complaints = Vec::new();
        for (at, row) in self.0.iter().enumerate() {
            let path = row.module.replace("::", "/");
            if !files.contains_key(&format!("{path}.rs")) && !files.contains_key(&format!("{path}/mod.rs")) {
                complaints.push(format!("the table lists {}, which is no module", row.module));
            }
            for other in self.0[at..].iter().filter(|other| row.may_use.contains(&other.module)) {
                complaints.push(format!(
                    "the table lets {} use {}, which is not above it",
                    row.module, other.module
                ));
            }
            if row.no_io && row.may_use.contains("clock") {
                complaints.push(format!("the table lets {} read clocks without I/O", row.module));
            }
        }
        for library in self.libraries() {
            if !dependencies.contains(library) {
                complaints.push(format!("the table lists {library}, which is neither row nor dependency"));
            }
        }
        complaints
    }
}

/// Everything in `files` (sources by path below `src/`) that breaks the rules of `table`.
fn complaints(
    table: &Table,
    files: &BTreeMap<String, String>,
    dependencies: &BTreeSet<String>,
) -> Vec<String> {
    let mut complaints = table.complaints(files, dependencies);
    let scans: BTreeMap<Vec<String>, (&str, scan::Names)> = files
        .iter()
        .map(|(file, source)| {
            let module = module_of(file);
            let names = scan::names(&module, source);
            (module, (file.as_str(), names))
        })
        .collect();
    let only_tests: BTreeSet<Vec<String>> = scans
        .iter()
        .flat_map(|(module, (_, names))| {
            names.test_modules.iter().map(move |name| [&module[..], std::slice::from_ref(name)].concat())
        })
        .collect();

    for (module, (file, names)) in &scans {
        if !files[*file].starts_with("//!") {
            complaints.push(format!("{file} does not open with `//!` and what it owns"));
        }
        if names.uses_unsafe && table.row(module).is_none_or(|row| row.module != UNSAFE) {
            complaints.push(format!("{file} has unsafe code, which belongs into {UNSAFE}"));
        }
        let in_tests = (1..=module.len()).any(|length| only_tests.contains(&module[..length]));
        if module.is_empty() {
            complaints.extend(root_complaints(table, names));
        } else if !in_tests {
            match table.row(module) {
                Some(row) => complaints.extend(file_complaints(table, row, file, names)),
                None => complaints.push(format!("{file} belongs to no row")),
            }
        }
    }
    complaints
}

/// `lib.rs` declares the modules in the order of the table, and no more.
fn root_complaints(table: &Table, names: &scan::Names) -> Vec<String> {
    let mut order: Vec<&str> = table.0.iter().filter_map(|row| row.module.split("::").next()).collect();
    order.dedup();
    order.retain(|&module| module != "main");
    if names.declares != order {
        return vec![format!("lib.rs declares {:?}, the table's order is {order:?}", names.declares)];
    }
    names.internal.iter().map(|path| format!("lib.rs names {}", path.join("::"))).collect()
}

fn file_complaints(table: &Table, row: &Row, file: &str, names: &scan::Names) -> Vec<String> {
    let mut complaints = BTreeSet::new();
    let from_binary = names.external.iter().filter(|path| row.module == "main" && path[0] == "bench");
    for path in names.internal.iter().map(Vec::as_slice).chain(from_binary.map(|path| &path[1..])) {
        match table.row(path) {
            Some(target) if target.module == row.module || row.may_use.contains(&target.module) => {}
            Some(target) => {
                complaints.insert(format!("{file}: {} may not use {}", row.module, target.module));
            }
            None => {
                complaints.insert(format!("{file} names crate::{}, which no row covers", path.join("::")));
            }
        }
    }
    let libraries = table.libraries();
    for path in &names.external {
        let library = path[0].replace('_', "-");
        if libraries.contains(library.as_str()) && !row.may_use.contains(&library) {
            complaints.insert(format!("{file}: {} may not use the library {library}", row.module));
        }
        if row.no_io && IO.iter().any(|banned| leads_to(path, banned)) {
            complaints.insert(format!("{file}: {} does no I/O and names {}", row.module, path.join("::")));
        }
    }
    complaints.into_iter().collect()
}

/// Whether `path` is `banned`, lies in it, or imports a module whole that has it (`std::time`).
fn leads_to(path: &[String], banned: &str) -> bool {
    let banned = banned.split("::").collect::<Vec<_>>();
    path.iter().filter(|segment| *segment != "self").zip(&banned).all(|(segment, name)| segment == name)
}

/// The module of a file below `src/`: empty for the crate's root.
fn module_of(file: &str) -> Vec<String> {
    let path = file.trim_end_matches(".rs").trim_end_matches("/mod");
    if path == "lib" { Vec::new() } else { path.split('/').map(str::to_owned).collect() }
}

fn collect(dir: &Path, prefix: &str, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().expect("sources have UTF-8 names");
        if entry.file_type().unwrap().is_dir() {
            collect(&entry.path(), &format!("{prefix}{name}/"), files);
        } else if name.ends_with(".rs") {
            files.insert(format!("{prefix}{name}"), fs::read_to_string(entry.path()).unwrap());
        }
    }
}

/// Names in the `[dependencies]` section of a manifest.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let section = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let lines = section.take_while(|line| !line.starts_with('['));
    lines.filter_map(|line| Some(line.split_once(" =")?.0.to_owned())).collect()
}

/// The trimmed cells of a line of a Markdown table; none for any other line.
fn cells(line: &str) -> Vec<&str> {
    let inner = line.trim().strip_prefix('|').and_then(|line| line.strip_suffix('|'));
    inner.map_or(Vec::new(), |inner| inner.split('|').map(str::trim).collect())
}

/// The parts of `text` in backticks.
fn quoted(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

mod the_rules {
    use super::*;

    const TABLE: &str = "\
text

| module | owns | may use |
|---|---|---|
| `base` | ground | no I/O |
| `mid::plan` | data | `base`, `serde` |
| `load::uring` | the ring | `base` |
| `load` | work | `base`, `mid::plan`, `load::uring` |
| `main` | start | `load` |

| module | something else |
";

    fn check(changed: &[(&str, &str)]) -> Vec<String> {
        let mut files: BTreeMap<String, String> = [
            ("lib.rs", "//! a\npub mod base; pub mod mid; pub mod load;"),
            ("main.rs", "//! a\nfn main() { bench::load::go() }"),
            ("base.rs", "//! a\nuse std::time::Duration;"),
            ("mid/plan.rs", "//! a\nuse crate::base::X; use serde::Serialize;"),
            (
                "load/mod.rs",
                "//! a\nmod uring; use crate::{base::X, mid::plan::{Plan, Event}}; use self::uring::R;",
            ),
            ("load/uring.rs", "//! a\nfn f() { unsafe { super::uring::g() } }"),
        ]
        .map(|(file, source)| (file.to_owned(), source.to_owned()))
        .into();
        for (file, source) in changed {
            files.insert((*file).to_owned(), format!("//! a\n{source}"));
        }
        complaints(&Table::parse(TABLE).unwrap(), &files, &BTreeSet::from(["serde".to_owned()]))
    }

    #[test]
    fn code_that_keeps_to_them_passes() {
        assert_eq!(check(&[]), [""; 0]);
        // Test code may use anything.
        assert_eq!(
            check(&[("base.rs", "#[cfg(test)] mod tests { use crate::load; use std::fs; }")]),
            [""; 0]
        );
        let tests = ("base/tests.rs", "use crate::load; use std::fs;");
        assert_eq!(check(&[("base.rs", "#[cfg(test)] mod tests;"), tests]), [""; 0]);
    }

    #[test]
    fn each_way_to_break_them_is_found() {
        for (file, source, expected) in [
            ("base.rs", "use crate::load::go;", "base.rs: base may not use load"),
            ("base.rs", "fn f() { super::mid::plan::go() }", "base.rs: base may not use mid::plan"),
            ("load/deep/er.rs", "use crate::main::x;", "load/deep/er.rs: load may not use main"),
            ("load/uring.rs", "use super::Client;", "load/uring.rs: load::uring may not use load"),
            ("load/x.rs", "use serde::Serialize;", "load/x.rs: load may not use the library serde"),
            ("load/x.rs", "use crate::strange;", "load/x.rs names crate::strange, which no row covers"),
            (
                "load/x.rs",
                "fn f() { unsafe {} }",
                "load/x.rs has unsafe code, which belongs into load::uring",
            ),
            (
                "base.rs",
                "use std::{io, net::TcpStream};",
                "base.rs: base does no I/O and names std::net::TcpStream",
            ),
            ("base.rs", "use std::time;", "base.rs: base does no I/O and names std::time"),
            (
                "base.rs",
                "use std::time::{self, Duration};",
                "base.rs: base does no I/O and names std::time::self",
            ),
            ("base.rs", "fn f() { nix::unistd::x() }", "base.rs: base does no I/O and names nix::unistd::x"),
            ("mid/other.rs", "", "mid/other.rs belongs to no row"),
            ("main.rs", "use bench::base;", "main.rs: main may not use base"),
            ("lib.rs", "pub mod base; pub mod mid; pub mod load; pub use load::X;", "lib.rs names load::X"),
            (
                "lib.rs",
                "pub mod load; pub mod base; pub mod mid;",
                r#"lib.rs declares ["load", "base", "mid"], the table's order is ["base", "mid", "load"]"#,
            ),
        ] {
            assert_eq!(check(&[(file, source)]), [expected], "{file}: {source}");
        }
        let silent = BTreeMap::from([("base.rs".to_owned(), "fn f() {}".to_owned())]);
        let table = Table(vec![Row { module: "base".to_owned(), may_use: BTreeSet::new(), no_io: true }]);
        assert_eq!(
            complaints(&table, &silent, &BTreeSet::new()),
            ["base.rs does not open with `//!` and what it owns"]
        );
    }

    #[test]
    fn a_table_that_contradicts_itself_or_the_tree_is_refused() {
        let table = Table::parse(
            "|module|owns|may use|\n|-|-|-|\n|`a`|x|`b`, `clock`; no I/O|\n|`b`|x|`b`, `gone`|\n|`clock`|x||",
        )
        .unwrap();
        let files = ["a.rs", "clock/mod.rs"].map(|file| (file.to_owned(), String::new())).into();
        assert_eq!(
            table.complaints(&files, &BTreeSet::new()),
            [
                "the table lets a use b, which is not above it",
                "the table lets a use clock, which is not above it",
                "the table lets a read clocks without I/O",
                "the table lists b, which is no module",
                "the table lets b use b, which is not above it",
                "the table lists gone, which is neither row nor dependency",
            ]
        );
        for bad in [
            "no table",
            "| module | owns | may use |\n|---|---|---|\n",
            "| module | owns | may use |\n|---|---|---|\n| units | x | y |",
            "| module | owns | may use |\n|---|---|---|\n| `units` | x |",
        ] {
            assert!(Table::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn dependencies_are_those_of_the_program() {
        let manifest = "[package]\nname = \"x\"\n[dependencies]\n# why\na-b = \"1\"\nc = { version = \"1\" }\n\n[dev-dependencies]\nd = \"1\"\n";
        assert_eq!(dependencies(manifest), BTreeSet::from(["a-b".to_owned(), "c".to_owned()]));
    }
}
