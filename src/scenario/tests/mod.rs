//! Owns the tests of whole scenarios: what a right one becomes, and the message of every mistake.

use std::io::{Error, ErrorKind};
use std::path::Path;

use super::*;
use crate::results::{Protocol, Resumption, SectionKind, ServerOrder, SocketMode, WaitMode};
use crate::time::Span;

mod mistakes;
mod overriding;
mod reference;
mod robustness;
mod tools;
mod variants;

/// Two cores without siblings, the limits of a usual distribution.
pub(super) fn machine() -> Machine {
    Machine {
        cpus: vec![0, 1],
        cores: vec![vec![0], vec![1]],
        fd_hard_limit: 1024,
        ephemeral_ports: (32768, 60999),
        reserved_ports: vec![(40000, 40001)],
    }
}

/// An inline server.
pub(super) fn server(name: &str, protocols: &str) -> String {
    format!("[[server]]\nname = \"{name}\"\ncommand = [\"{name}\"]\nprotocols = {protocols}\n")
}

/// A scenario; without sections it gets one of `h1`.
pub(super) fn text(head: &str, servers: &str, sections: &str) -> String {
    let usual = "[[section]]\ntitle = \"t\"\nkind = \"closed-loop\"\nprotocol = \"h1\"\ncells = [\"1x1\"]\n";
    let sections = if sections.is_empty() { usual } else { sections };
    format!("format = 1\ntitle = \"T\"\n{head}{servers}{sections}")
}

/// The scenario of a text that has no mistake.
pub(super) fn checked(text: &str) -> Scenario {
    check_text(text, &Overrides::default()).expect("the scenario is right").scenario
}

const NGINX: &str = r#"name = "nginx"
label = "Nginx"
requires = ["nginx"]
render = ["nginx.conf"]
command = ["nginx", "-c", "{config}"]
env = { PORT = "{http_port}", LEVEL = "warn" }
protocols = ["h1", "h1s"]
version = ["nginx", "-v"]
stop = { signal = "SIGQUIT", grace = "3s" }
"#;

const SLIP: &str = "name = \"slip\"\ncommand = [\"slip\"]\nprotocol = [\"h1\"]\n";

/// A small tree: two servers and one config file.
fn files(scenario: &str, path: &Path) -> std::io::Result<String> {
    match path.to_str().expect("the tests use plain paths") {
        "/r/scenarios/a.toml" => Ok(scenario.to_owned()),
        "/r/servers" => Ok("nginx\nslip".to_owned()),
        "/r/servers/nginx/server.toml" => Ok(NGINX.to_owned()),
        "/r/servers/nginx/nginx.conf" => Ok("daemon off;".to_owned()),
        "/r/servers/slip/server.toml" => Ok(SLIP.to_owned()),
        _ => Err(Error::new(ErrorKind::NotFound, "no such file")),
    }
}

fn check_text(text: &str, overrides: &Overrides) -> Result<Checked, ScenarioError> {
    check(Path::new("/r/scenarios/a.toml"), &|path| files(text, path), &machine(), overrides)
}

const FULL: &str = r#"format = 1
title = "Everything"
report = "ALL_RESULTS"
template = "http"

[run]
rounds = 5
duration = "1m"
warmup = "0s"
drain = "250ms"
settle = "1ms"
timeout = "3s"
connect_timeout = "4s"
build_deadline = "5m"
start_deadline = "6s"
cell_grace = "7s"
server_deadline = "8m"
run_deadline = "1h"
percentiles = [50, 99.9]
unstable_above = 0.05
wait = "poll"
socket = "shared"
pacing = true
order = "abba"

[pin]
servers = [1]
generator = "0"
workers = 2
generator_threads = 1

[expect]
path = "/16k?a=b"
status = 200
body = "Hello, World!\n"
length = 14

[[server]]
use = "nginx"
label = "nginx, warm"
env = { LEVEL = "error" }
port = 8080

[[server]]
name = "own"
dir = "../own"
build = ["make", "-C", "{dir}", "W={workers}"]
command = ["./own", "${HOME}", "{ json }", "{port}", "{cert}{key}"]
protocols = ["h1"]
tls_port = 40001
note = "by hand"

[[section]]
title = "Plaintext"
kind = "closed-loop"
protocol = "h1"
cells = ["1x1", "50x1"]

[[section]]
title = "TLS"
kind = "closed-loop"
protocols = ["h1s"]
cells = ["10x1"]
requests = 1000
warmup = "1s"

[[section]]
title = "Set-up"
kind = "setup"
protocols = ["h1", "h1s"]
connections = 100
"#;

#[test]
fn a_full_scenario_becomes_what_it_says() {
    let scenario = checked(FULL);
    assert_eq!((scenario.title.as_str(), scenario.report.as_str()), ("Everything", "ALL_RESULTS"));
    assert_eq!(scenario.text, FULL);
    assert_eq!(
        scenario.run,
        RunSettings {
            rounds: 5,
            duration: Span::from_secs(60),
            warmup: Span::ZERO,
            drain: Span::from_millis(250),
            settle: Span::from_millis(1),
            timeout: Span::from_secs(3),
            connect_timeout: Span::from_secs(4),
            build_deadline: Span::from_secs(300),
            start_deadline: Span::from_secs(6),
            cell_grace: Span::from_secs(7),
            server_deadline: Some(Span::from_secs(480)),
            run_deadline: Some(Span::from_secs(3600)),
            percentiles: vec![50.0, 99.9],
            unstable_above: 0.05,
            wait: WaitMode::Poll,
            socket: SocketMode::Shared,
            pacing: true,
            order: ServerOrder::Abba,
        }
    );
    assert_eq!(scenario.pin, Pin { servers: vec![1], generator: vec![0], workers: 2, generator_threads: 1 });
    assert_eq!(
        scenario.expect,
        Expected {
            path: "/16k?a=b".into(),
            status: Some(200),
            body: Some(b"Hello, World!\n".to_vec()),
            length: Some(14),
        }
    );
    assert_eq!(scenario.overrides, Vec::<String>::new());
}

#[test]
fn a_server_overrides_the_file_it_uses() {
    let scenario = checked(FULL);
    let nginx = &scenario.servers[0];
    assert_eq!((nginx.name.as_str(), nginx.label.as_str()), ("nginx", "nginx, warm"));
    assert_eq!((nginx.dir.as_str(), nginx.port, nginx.tls_port), ("/r/servers/nginx", Some(8080), None));
    assert_eq!((nginx.stop_signal.as_str(), nginx.stop_grace), ("QUIT", Span::from_secs(3)));
    let env: Vec<_> = nginx.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(env, ["LEVEL=error", "PORT={http_port}"]);
    let own = &scenario.servers[1];
    assert_eq!((own.label.as_str(), own.dir.as_str(), own.stop_signal.as_str()), ("own", "/r/own", "TERM"));
    assert_eq!((own.tls_port, own.note.as_deref()), (Some(40001), Some("by hand")));
}

#[test]
fn sections_take_their_limits_and_warm_ups() {
    let sections = checked(FULL).sections;
    let cell = |connections| Cell::new(connections, 1);
    assert_eq!(sections[0].cells, [cell(1), cell(50)]);
    assert_eq!(
        (sections[0].limit, sections[0].warmup),
        (SectionLimit::Duration(Span::from_secs(60)), Span::ZERO)
    );
    assert_eq!((sections[1].limit, sections[1].warmup), (SectionLimit::Requests(1000), Span::from_secs(1)));
    assert_eq!((sections[2].limit, sections[2].warmup), (SectionLimit::Requests(100), Span::ZERO));
    assert_eq!((sections[2].kind, &sections[2].cells), (SectionKind::Setup, &vec![cell(20)]));
    assert_eq!(sections[2].protocols, [Protocol::H1, Protocol::H1s]);
}

#[test]
fn a_handshake_section_has_a_cell_for_each_resumption_that_a_protocol_has() {
    let scenario = checked(&text(
        "[run]\nrounds = 2\nsocket = \"shared\"\n",
        &[server("new", "[\"h1s\", \"h3\"]"), server("old", "[\"h1s\"]")].concat(),
        "[[section]]\ntitle = \"h\"\nkind = \"handshake\"\nprotocols = [\"h3\", \"h1s\"]\nresumption = [\"off\", \
         \"ticket\", \"0rtt\"]\nconnections = 200\nrequests = 3\nconcurrency = 4\npacing = true\n\
         [[section]]\ntitle = \"s\"\nkind = \"setup\"\nprotocol = \"h1s\"\nresumption = \"ticket\"\n\
         [[section]]\ntitle = \"o\"\nkind = \"handshake\"\nprotocol = \"h1s\"\n",
    ));
    let [handshake, setup, off] = &scenario.sections[..] else { panic!("three sections") };
    let names = |protocol| handshake.cells_of(protocol).map(|cell| cell.to_string()).collect::<Vec<_>>();
    assert_eq!(names(Protocol::H3), ["4x1/off", "4x1/ticket", "4x1/0rtt"]);
    assert_eq!(names(Protocol::H1s), ["4x1/off", "4x1/ticket"]);
    assert!(handshake.cells.iter().all(|cell| cell.requests_per_connection == Some(3)));
    assert_eq!((handshake.limit, handshake.warmup), (SectionLimit::Requests(600), Span::from_millis(500)));
    assert_eq!((handshake.socket, handshake.pacing), (SocketMode::Shared, true));
    assert_eq!(setup.cells, [Cell { resumption: Resumption::Ticket, ..Cell::new(20, 1) }]);
    assert_eq!((setup.warmup, setup.pacing), (Span::from_millis(500), false));
    // Nothing to resume, and so nothing to seed.
    assert_eq!((off.limit, off.warmup), (SectionLimit::Requests(1000), Span::ZERO));
    // h3 of one server, h1s of two; then two more, and two more.
    let estimate = scenario.estimate();
    assert_eq!((estimate.cells, estimate.starts), (3 + 2 * 2 + 2 + 2, 2 * (1 + 2 + 2 + 2)));
}

/// A ratio needs both protocols of a server; other sections need the one.
#[test]
fn a_ratio_says_what_a_server_lacks() {
    let scenario = checked(&text(
        "",
        &[
            server("both", "[\"h1\", \"h2c\"]"),
            server("new", "[\"h2c\"]"),
            server("old", "[\"h1\"]"),
            server("tls", "[\"h1s\"]"),
        ]
        .concat(),
        "[[section]]\ntitle = \"r\"\nkind = \"ratio\"\nprotocols = [\"h2c\", \"h1\"]\ncells = [\"1x1\"]\n\
         [[section]]\ntitle = \"s\"\nkind = \"setup\"\nprotocols = [\"h2c\", \"h1\"]\n",
    ));
    let [ratio, setup] = &scenario.sections[..] else { panic!("two sections") };
    assert_eq!((ratio.kind, &ratio.protocols), (SectionKind::Ratio, &vec![Protocol::H2c, Protocol::H1]));
    assert_eq!(ratio.warmup, scenario.run.warmup);
    for (server, of_ratio, of_setup) in [
        (0, None, [None, None]),
        (1, Some("new does not offer h1, and a ratio needs both"), [None, Some("new does not offer h1")]),
        (2, Some("old does not offer h2c, and a ratio needs both"), [Some("old does not offer h2c"), None]),
        (
            3,
            Some("tls does not offer h2c or h1, and a ratio needs both"),
            [Some("tls does not offer h2c"), Some("tls does not offer h1")],
        ),
    ] {
        let server = &scenario.servers[server];
        for (protocol, of_setup) in [Protocol::H2c, Protocol::H1].into_iter().zip(of_setup) {
            assert_eq!(ratio.obstacle(server, protocol).as_deref(), of_ratio, "{}", server.name);
            assert_eq!(setup.obstacle(server, protocol).as_deref(), of_setup, "{}", server.name);
        }
    }
    // One server twice in the ratio; two servers over each protocol in the set-up section.
    assert_eq!(scenario.estimate().cells, 2 + 4);
}

#[test]
fn what_is_left_out_has_defaults() {
    let scenario = checked(&text("", &server("a", "[\"h1\"]"), ""));
    assert_eq!((scenario.report.as_str(), scenario.template.as_str()), ("A_RESULTS", "http"));
    assert_eq!(scenario.run, RunSettings::default());
    assert_eq!(scenario.pin, Pin { servers: vec![0], generator: vec![1], workers: 1, generator_threads: 1 });
    assert_eq!(scenario.expect, Expected { path: "/".into(), status: None, body: None, length: None });
    assert_eq!(scenario.servers[0].dir, "/r/scenarios");
}

/// Server sections stand for nothing on their own: both lists are needed.
#[test]
fn a_scenario_without_servers_or_sections_says_so() {
    let section = "[[section]]\ntitle = \"t\"\nkind = \"setup\"\nprotocol = \"h1\"\n";
    for (text, message) in [
        (text("", "", section), "/r/scenarios/a.toml:1:1: server: missing; add at least one [[server]]"),
        (
            text("server = []\n", "", section),
            "/r/scenarios/a.toml:1:1: server: missing; add at least one [[server]]",
        ),
        (
            format!("format = 1\ntitle = \"T\"\n{}", server("a", "[\"h1\"]")),
            "/r/scenarios/a.toml:1:1: section: missing; add at least one [[section]]",
        ),
        (
            text("", "[server]\nname = \"a\"\n", section),
            "/r/scenarios/a.toml:3:1: server: a table where a list of tables belongs; write `[[server]]`",
        ),
        (
            text("", &server("a", "[\"h1s\"]"), ""),
            "/r/scenarios/a.toml:10:12: section[1].protocol: no server offers h1; add `\"h1\"` to a server's \
             `protocols`, or take it out here",
        ),
    ] {
        assert_eq!(check_text(&text, &Overrides::default()).unwrap_err().to_string(), message);
    }
}

#[test]
fn the_disk_is_read_within_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    std::fs::write(file("b.toml"), "x = 1\n").unwrap();
    std::fs::write(file("a.toml"), vec![b'#'; (1 << 20) + 1]).unwrap();
    assert_eq!(read_from_disk(&file("b.toml")).unwrap(), "x = 1\n");
    // Only `servers/` is listed, for suggestions; any other folder given for a scenario is a mistake.
    assert_eq!(read_from_disk(folder.path()).unwrap_err().kind(), ErrorKind::IsADirectory);
    let servers = folder.path().join("servers");
    std::fs::create_dir_all(servers.join("nginx")).unwrap();
    std::fs::create_dir(servers.join("caddy")).unwrap();
    assert_eq!(read_from_disk(&servers).unwrap(), "caddy\nnginx");
    assert_eq!(read_from_disk(&file("a.toml")).unwrap_err().kind(), ErrorKind::FileTooLarge);
    assert_eq!(read_from_disk(&file("c.toml")).unwrap_err().kind(), ErrorKind::NotFound);
}
