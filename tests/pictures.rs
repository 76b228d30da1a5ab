//! Owns the tests of pictures: some as snapshots, and what must hold for all of them: well-formed, every
//! text within its picture, no figure that is none, the same bytes each time.

#[path = "common/results.rs"]
mod build;
#[path = "common/results_http2.rs"]
mod http2;
#[path = "common/results_http3.rs"]
mod http3;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use bench::report::picture::{Picture, Theme, folder};
use bench::report::{page, report};
use bench::results::*;
use build::{cell, empty, lost_round, measured, section, server, summarised, with_rounds};
use predicates::prelude::*;

/// Two servers in two cells: one ordinary, one that is starved in one cell and failed in the other, with
/// a name that means harm.
fn small() -> Results {
    let h1 = |server: &str, c| cell(server, Protocol::H1, c, 1);
    let mut failed = h1("go", 50);
    failed.rounds =
        vec![lost_round(1, CellStatus::Failed, "exit status 1", &["</pre><script>alert(1)</script>"])];
    let cells = vec![
        measured(h1("rust-hyper", 1), 15_000.0, 65.0),
        with_rounds(h1("rust-hyper", 50), &[130_000.0, 118_000.0, 131_000.0], 380.0),
        measured(h1("go", 1), 9_000.0, 72.0),
        failed,
    ];
    summarised(Results {
        title: format!("Mean {HARM}"),
        scenario: ScenarioRecord { path: HARM.into(), text: format!("# {HARM}\n") },
        servers: vec![server("rust-hyper", "Rust", "1"), server("go", HARM, HARM)],
        sections: vec![section(&format!("Plaintext {HARM}"), SectionKind::ClosedLoop, cells)],
        ..empty()
    })
}

/// As many servers and cells as a picture is made for, labels too long for it, and figures of every size.
fn large(servers: usize, cells: u32) -> Results {
    let label = |n: usize| match n % 3 {
        0 => format!("WWWW a server of forty wide characters {n:02}"),
        1 => format!("サーバー{}{n}", "ー".repeat(30)),
        _ => format!("s{n}"),
    };
    let names: Vec<String> = (0..servers).map(|n| format!("server-{n}")).collect();
    let mut list = Vec::new();
    for (n, name) in names.iter().enumerate() {
        for c in 1..=cells {
            let cell = cell(name, Protocol::H2, c * 100, 10);
            // From a thousandth to a thousand million.
            let rate = 10f64.powi((n as i32 + c as i32) % 13 - 3);
            list.push(measured(cell, rate, (1e9 / rate).min(1e8)));
        }
    }
    let servers = names.iter().enumerate().map(|(n, name)| server(name, &label(n), "1")).collect();
    summarised(Results {
        servers,
        sections: vec![section(&"A long title ".repeat(20), SectionKind::ClosedLoop, list)],
        ..empty()
    })
}

/// A run in which nothing was measured.
fn nothing() -> Results {
    let kinds = [SectionKind::ClosedLoop, SectionKind::Setup, SectionKind::Ratio, SectionKind::Handshake];
    let of = |kind| {
        let cells = [Protocol::H1, Protocol::H2c].map(|protocol| {
            let mut cell = cell("a", protocol, 1, 1);
            cell.rounds = vec![lost_round(1, CellStatus::Absent, "not there", &[])];
            cell
        });
        section("Nothing", kind, cells.to_vec())
    };
    summarised(Results { servers: vec![server("a", "A", "1")], sections: kinds.map(of).to_vec(), ..empty() })
}

fn pictures(results: &Results) -> Vec<Picture> {
    report(results, "X").unwrap().pictures
}

#[test]
fn pictures_of_a_small_run() {
    for (name, picture) in ["figures", "latency"].iter().zip(pictures(&small())) {
        insta::assert_snapshot!(format!("small_{name}"), picture.svg(Theme::Light));
    }
}

#[test]
fn pictures_of_a_ratio() {
    let pictures = pictures(&http2::odd());
    let ratio = pictures.iter().find(|p| p.file_name(Theme::Dark).starts_with("2-")).unwrap();
    insta::assert_snapshot!(ratio.svg(Theme::Dark));
}

#[test]
fn every_picture_can_be_read() {
    let mut seen = 0;
    for results in [
        small(),
        large(1, 1),
        large(2, 10),
        large(12, 2),
        large(12, 10),
        nothing(),
        http2::odd(),
        http3::odd(),
    ] {
        let (first, second) = (pictures(&results), pictures(&results));
        let mut names = BTreeSet::new();
        for (picture, again) in first.iter().zip(&second) {
            for theme in Theme::ALL {
                assert!(names.insert(picture.file_name(theme)), "{}", picture.file_name(theme));
                let svg = picture.svg(theme);
                assert_eq!(svg, again.svg(theme));
                readable(&svg);
                seen += 1;
            }
        }
    }
    assert!(seen > 40);
}

/// Whether an SVG document is well-formed, says what it shows, and has every text inside.
fn readable(svg: &str) {
    let document = roxmltree::Document::parse(svg).unwrap_or_else(|e| panic!("{e}: {svg}"));
    let root = document.root_element();
    assert_eq!(root.attribute("role"), Some("img"));
    let named = |name: &str| root.children().find(|n| n.has_tag_name((SVG, name))).and_then(|n| n.text());
    assert!(named("title").is_some_and(|t| !t.trim().is_empty()));
    assert!(named("desc").is_some_and(|t| !t.trim().is_empty()));
    let number = |node: &roxmltree::Node<'_, '_>, name| {
        node.attribute(name).map_or(0.0, |value| value.parse::<f64>().unwrap())
    };
    let (width, height) = (number(&root, "width"), number(&root, "height"));
    assert!(width == 840.0 && (60.0..=2_600.0).contains(&height), "{height}");
    for node in document.descendants().filter(|node| node.is_element()) {
        for attribute in node.attributes() {
            let value = attribute.value();
            assert!(!value.contains("NaN") && !value.contains("inf"), "{} in {svg}", attribute.name());
        }
        if !node.has_tag_name((SVG, "text")) {
            continue;
        }
        let text = node.text().unwrap_or_default().trim();
        assert!(!["NaN", "inf", "-inf"].contains(&text), "{svg}");
        let class = node.attribute("class").unwrap_or_default();
        let size = match class {
            "title" => 14.0,
            "soft" => 11.0,
            _ => 12.0,
        };
        // What a common font takes, Helvetica, and a square for East Asian characters.
        let advance = |c: char| match c {
            ' ' | 'i' | 'j' | 'l' | 't' | 'f' | 'I' | '.' | ',' | ':' | ';' | '/' | '(' | ')' => 0.28,
            'A'..='Z' => 0.7,
            '\u{2fff}'.. => 1.0,
            _ => 0.56,
        };
        let long = text.chars().map(advance).sum::<f64>() * size;
        let (x, y) = (number(&node, "x"), number(&node, "y"));
        let (from, to) = match node.attribute("text-anchor") {
            Some("end") => (x - long, x),
            Some("middle") => (x - long / 2.0, x + long / 2.0),
            _ => (x, x + long),
        };
        assert!(
            from >= 0.0 && to <= width && y >= size && y + 3.0 <= height,
            "`{text}` at {from} {y} in {svg}"
        );
    }
}

#[test]
fn the_words_of_a_picture_say_its_finding() {
    let of =
        |results: &Results| pictures(results).iter().map(|p| p.description().to_owned()).collect::<Vec<_>>();
    let http2 = of(&http2::odd());
    assert!(http2[0].starts_with("HTTP/2 in cleartext: "), "{}", http2[0]);
    for part in ["Best req/s: at ", "Best CPU µs/req: at "] {
        assert!(http2[0].contains(part), "{}", http2[0]);
    }
    assert_eq!(
        of(&nothing())[0],
        "Nothing, HTTP/1.1: A at C = 1. req/s: at C = 1 n/a. CPU µs/req: at C = 1 n/a."
    );
    let harmful = report(&small(), "a \"b\"").unwrap().text;
    assert!(harmful.contains("srcset=\"a%20%22b%22.pictures/1-plaintext-script"), "{harmful}");
    assert!(!harmful.contains(HARM));
}

#[test]
fn the_command_keeps_pictures_beside_the_report() {
    let scratch = tempfile::tempdir().unwrap();
    let json = scratch.path().join("X.json");
    store::save(&json, &http2::odd()).unwrap();
    let bench = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
        command.arg("report").args(args).arg(&json);
        command.assert()
    };
    let folder = scratch.path().join(folder("X"));
    bench(&["--stdout"]).code(0);
    assert!(!folder.exists());
    bench(&[]).code(0);
    let expected: BTreeSet<String> = pictures(&http2::odd())
        .iter()
        .flat_map(|picture| Theme::ALL.map(|theme| picture.file_name(theme)))
        .collect();
    assert_eq!(names(&folder), expected);
    let text = fs::read_to_string(scratch.path().join("X.md")).unwrap();
    assert!(expected.iter().all(|name| text.contains(&format!("\"X.pictures/{name}\""))), "{text}");
    bench(&["--check"]).code(0).stderr("");

    // One changed, one gone, one too many, and one that is none of ours.
    let mut files = expected.iter();
    let (changed, gone) = (files.next().unwrap(), files.next().unwrap());
    fs::write(folder.join(changed), "<svg/>").unwrap();
    fs::remove_file(folder.join(gone)).unwrap();
    fs::write(folder.join("9-old-figures-dark.svg"), "<svg/>").unwrap();
    fs::write(folder.join("mine.svg"), "<svg/>").unwrap();
    bench(&["--check"])
        .code(1)
        .stderr(predicate::str::contains(format!("{changed}: is not what the results give")))
        .stderr(predicate::str::contains(format!("{gone}: cannot be read")))
        .stderr(predicate::str::contains("9-old-figures-dark.svg: the report does not show it"));
    bench(&[]).code(0);
    let mut kept = expected.clone();
    kept.insert("mine.svg".into());
    assert_eq!(names(&folder), kept);
    bench(&["--check"]).code(0);

    bench(&["--html", "--check"]).code(1).stderr(predicate::str::contains("X.html: cannot be read"));
    bench(&["--html"]).code(0).stdout(predicate::str::contains("X.html"));
    assert_eq!(fs::read_to_string(scratch.path().join("X.html")).unwrap(), page(&http2::odd()).unwrap());
    bench(&["--html", "--check"]).code(0);
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn the_pictures_that_the_readme_shows_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let shown: Vec<&str> = readme.split('"').filter(|part| part.ends_with(".svg")).collect();
    assert!(!shown.is_empty());
    for path in shown {
        assert!(root.join(path).is_file(), "{path}");
    }
}

/// The text itself, whatever a browser makes of it: every table and picture of the report is there, and
/// nothing in it leads out of it.
#[test]
fn a_page_has_everything_within_itself() {
    for results in [empty(), small(), nothing(), http2::odd(), http3::odd()] {
        let page = page(&results).unwrap();
        assert_eq!(page, bench::report::page(&results).unwrap());
        let report = report(&results, "X").unwrap();
        let count = |text: &str, part: &str| text.matches(part).count();
        assert_eq!(count(&page, "<svg "), report.pictures.len());
        // A table of Markdown has one line of dashes.
        let is_rule = |line: &&str| line.starts_with("|-") && line.chars().all(|c| "|-:".contains(c));
        let tables = report.text.lines().filter(is_rule).count();
        let of_rounds = results.sections.iter().filter(|s| s.cells.iter().any(|c| !c.rounds.is_empty()));
        assert_eq!(count(&page, "<table>"), tables + of_rounds.count());
        assert_eq!(count(&page, "<details>"), count(&page, "</details>"));
        for (part, what) in [
            ("&lt;details", "a template's own HTML is shown as text"),
            ("&lt;picture", "a template's own HTML is shown as text"),
            ("<!-- picture", "a placeholder is left"),
            ("<script", "a script"),
            ("<img", "an image"),
            (" src=\"", "an address"),
            ("@import", "an address"),
            ("url(", "an address"),
        ] {
            assert_eq!(count(&page, part), 0, "{what}");
        }
        for link in page.split("href=\"").skip(1) {
            assert!(link.starts_with('#') || link.starts_with("data:,\""), "{}", &link[..40]);
        }
    }
}

/// Opened by a browser without a network: it finds nothing to complain of, and foreign strings do nothing.
#[test]
fn a_browser_takes_the_page_as_it_is() {
    let Some(browser) = browser() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let opened = |name: &str, html: &str| {
        let path = scratch.path().join(name);
        fs::write(&path, html).unwrap();
        let output = Command::new(browser)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--enable-logging=stderr", "--dump-dom"])
            .arg("--host-resolver-rules=MAP * ~NOTFOUND")
            .arg(format!("--user-data-dir={}", scratch.path().join("profile").display()))
            .arg(format!("file://{}", path.display()))
            .timeout(std::time::Duration::from_secs(120))
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let log = text(&output.stderr);
        assert!(output.status.success(), "{log}");
        let complaints: Vec<String> =
            log.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
        (text(&output.stdout), complaints)
    };
    // That a complaint is seen when there is one.
    let page_of_small = page(&small()).unwrap();
    let broken = page_of_small.replace("<main>", "<main><script>document.title = 'owned'</script>");
    let (_, complaints) = opened("broken.html", &broken);
    assert!(!complaints.is_empty(), "a script that the page forbids goes unnoticed");

    for (name, results) in [("small", small()), ("http2", http2::odd()), ("http3", http3::odd())] {
        let html = page(&results).unwrap();
        let (dom, complaints) = opened(&format!("{name}.html"), &html);
        assert!(complaints.is_empty(), "{complaints:?}");
        for part in ["<svg ", "<table>", "<details>", "<h2 "] {
            assert_eq!(dom.matches(part).count(), html.matches(part).count(), "{part}");
        }
        assert!(!dom.contains("<script") && !dom.contains("<img"), "{dom}");
        assert!(dom.contains("<title>") && !dom.contains("<title>owned"));
    }
}

/// A Chromium by one of its names. Without one a test says so and passes, unless the environment asks for
/// all that tests can use.
fn browser() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let there = |name: &&&str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
    };
    let found = names.iter().find(there).copied();
    if found.is_none() {
        let missing = format!("none of {} is on PATH", names.join(", "));
        assert!(std::env::var_os("BENCH_REQUIRE_SERVERS").is_none(), "{missing}");
        eprintln!("skipped: {missing}");
    }
    found
}

/// A name that would do something if it were taken for anything but text.
const HARM: &str = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">";
const SVG: &str = "http://www.w3.org/2000/svg";
