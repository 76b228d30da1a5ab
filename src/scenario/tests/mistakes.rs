//! Owns the mistakes: pieces of the full scenario, and what to put in their place to go wrong. The
//! messages stand in the snapshot beside it.

use super::*;

#[test]
fn every_mistake_has_its_message() {
    let mut messages = String::new();
    for (right, wrong) in MISTAKES {
        assert!(FULL.contains(right), "{right}");
        let result = check_text(&FULL.replacen(right, wrong, 1), &Overrides::default());
        let error = result.map(|_| ()).expect_err(wrong).to_string();
        assert!(!error.contains('\n'), "one line: {error}");
        messages += &format!("{}\n    {error}\n", wrong.trim_end().replace('\n', "\n... "));
    }
    insta::assert_snapshot!(messages);
}

/// What only a server of both protocols gets as far as.
#[test]
fn the_cells_of_http2_have_mistakes_of_their_own() {
    let of = |kind: &str, protocols: &str, cells: &str| {
        let section =
            format!("[[section]]\ntitle = \"t\"\nkind = \"{kind}\"\nprotocols = {protocols}\n{cells}\n");
        let text = text("", &server("a", "[\"h1\", \"h1s\", \"h2c\", \"h2\"]"), &section);
        check_text(&text, &Overrides::default()).map(|_| ()).map_err(|error| {
            let error = error.to_string();
            error
                .split_once(": ")
                .and_then(|(_, rest)| rest.split_once(": "))
                .map_or(error.clone(), |m| m.1.into())
        })
    };
    for (kind, protocols, cells, message) in [
        ("closed-loop", "[\"h2c\"]", "cells = [\"1x100\", \"50x10\"]", None),
        ("ratio", "[\"h2\", \"h1s\"]", "cells = [\"1x1\", \"50x1\"]", None),
        ("ratio", "[\"h1\", \"h2c\"]", "cells = [\"1x1\"]\nrequests = 100", None),
        ("setup", "[\"h2\", \"h1s\"]", "connections = 100", None),
        (
            "ratio",
            "[\"h2\", \"h1s\"]",
            "cells = [\"10x10\"]",
            Some(
                "10x10 asks for 10 requests at once on a connection of both protocols, HTTP/1.1 has one; write \
                 `10x1`",
            ),
        ),
        ("ratio", "[\"h2\", \"h1s\"]", "", Some("missing; write cells like `[\"1x1\", \"50x1\"]`")),
        (
            "ratio",
            "[\"h2\", \"h1s\"]",
            "cells = [\"1x1\"]\nconnections = 9",
            Some(
                "counts fresh connections, which only setup and handshake sections open; write `requests`, or say \
                 how many connections in `cells`",
            ),
        ),
        (
            "closed-loop",
            "[\"h2\"]",
            "cells = [\"10x10\"]\nrequests = 99",
            Some("99 requests are too few to fill the largest cell once; write 100 or more"),
        ),
        (
            "closed-loop",
            "[\"h2\"]",
            "cells = [\"900x1200\"]",
            Some(
                "900x1200 keeps 1080000 requests in flight, more than the 1000000 a generator has memory for; \
                 write smaller numbers",
            ),
        ),
        (
            "setup",
            "[\"h2\"]",
            "cells = [\"10x2\"]",
            Some("10x2 in a setup section, where each connection carries one request; write `10x1`"),
        ),
    ] {
        assert_eq!(of(kind, protocols, cells).err().as_deref(), message, "{kind} {protocols} {cells}");
    }
}

/// What is said of connections, with a server that has every protocol.
#[test]
fn handshakes_and_resumption_have_mistakes_of_their_own() {
    for (first, rest, message) in CONNECTION_MISTAKES {
        let section = format!("[[section]]\ntitle = \"t\"\n{first}{rest}\n");
        let text = text("", &server("a", "[\"h1\", \"h1s\", \"h2c\", \"h2\", \"h3\"]"), &section);
        let found = check_text(&text, &Overrides::default()).err().map(|error| error.to_string());
        let found =
            found.as_deref().map(|error| error.split_once("section[1]").map_or(error, |(_, rest)| rest));
        assert_eq!(found, *message, "{section}");
    }
}

#[test]
fn a_file_that_cannot_be_read_says_why() {
    let error =
        check(Path::new("/r/scenarios/b.toml"), &|path| files("", path), &machine(), &Overrides::default());
    assert_eq!(
        error.unwrap_err().to_string(),
        "/r/scenarios/b.toml: cannot read the scenario: no such file; correct the path"
    );
}

#[test]
fn use_without_a_servers_folder_says_where_it_was_looked_for() {
    let alone = |path: &Path| match path.to_str() {
        Some("/x/a.toml") => Ok(FULL.to_owned()),
        _ => Err(Error::from(ErrorKind::NotFound)),
    };
    let error = check(Path::new("/x/a.toml"), &alone, &machine(), &Overrides::default());
    assert_eq!(
        error.unwrap_err().to_string(),
        "/x/a.toml:39:7: server[1].use: no folder above the scenario holds `servers/`; make \
         `servers/nginx/server.toml`, or describe the server here"
    );
}

/// What a right piece of [`FULL`] is replaced with.
const MISTAKES: &[(&str, &str)] = &[
    // The file.
    ("title = \"Everything\"", "title = \"Everything"),
    ("title = \"Everything\"", "title = \"Everything\"\ntitle = \"Again\""),
    ("format = 1\n", ""),
    ("format = 1", "format = 2\nnew_key = true"),
    ("format = 1", "format = 0"),
    ("format = 1", "format = \"1\""),
    ("title = \"Everything\"\n", ""),
    ("title = \"Everything\"", "title = \" \""),
    ("title = \"Everything\"", "title = \"a\\nb\""),
    ("title = \"Everything\"", "titel = \"Everything\""),
    ("report = \"ALL_RESULTS\"", "report = \"../ALL\""),
    ("report = \"ALL_RESULTS\"", "report = \"ALL.md\""),
    ("template = \"http\"", "template = \"htpp\""),
    ("template = \"http\"", "template = \"http3\"\n[rnu]"),
    ("template = \"http\"", "template = \"table\""),
    // [run]
    ("rounds = 5", "rounds = 0"),
    ("rounds = 5", "rounds = -1"),
    ("rounds = 5", "rounds = 2.5"),
    ("rounds = 5", "rounds = 0xffffffffffffffffff"),
    ("rounds = 5", "requests = 100"),
    ("rounds = 5", "speed = 100"),
    ("duration = \"1m\"", "duration = 10"),
    ("duration = \"1m\"", "duration = \"10\""),
    ("duration = \"1m\"", "duration = \"0s\""),
    ("duration = \"1m\"", "Duration = \"1m\""),
    ("drain = \"250ms\"", "drain = \"1 minute\""),
    ("run_deadline = \"1h\"", "run_deadline = \"0s\""),
    ("percentiles = [50, 99.9]", "percentiles = [50, 100]"),
    ("percentiles = [50, 99.9]", "percentiles = [0]"),
    ("percentiles = [50, 99.9]", "percentiles = [50.0, 50]"),
    ("percentiles = [50, 99.9]", "percentiles = []"),
    ("percentiles = [50, 99.9]", "percentiles = 99"),
    ("percentiles = [50, 99.9]", "percentiles = [nan]"),
    ("percentiles = [50, 99.9]", "percentiles = [\"p50\"]"),
    ("unstable_above = 0.05", "unstable_above = 5"),
    ("wait = \"poll\"", "wait = \"pool\""),
    ("wait = \"poll\"", "wait = \"spin\""),
    ("socket = \"shared\"", "socket = \"share\""),
    ("pacing = true", "pacing = \"yes\""),
    // [pin]
    ("servers = [1]", "servers = \"0-1\""),
    ("servers = [1]", "servers = \"99\""),
    ("servers = [1]", "servers = 1"),
    ("servers = [1]", "servers = []"),
    ("servers = [1]", "servers = [-1]"),
    ("servers = [1]", "servers = \"1-0\""),
    ("servers = [1]", "servers = \"0-9999999\""),
    ("servers = [1]", "servers = \"atuo\""),
    ("servers = [1]\n", "servers = \"auto\"\ngenerator = \"0-1\"\n#"),
    ("servers = [1]", "cores = \"0-3\""),
    ("workers = 2", "workers = 0"),
    ("generator_threads = 1", "generator_threads = 2"),
    ("[pin]", "[expect]"),
    // [expect]
    ("path = \"/16k?a=b\"", "path = \"16k\""),
    ("path = \"/16k?a=b\"", "path = \"/a b\""),
    ("status = 200", "status = 100"),
    ("status = 200", "status = \"200\""),
    ("status = 200", "status = 204"),
    ("length = 14", "length = 13"),
    ("length = 14", "length = -1"),
    // [[server]]
    ("use = \"nginx\"", "use = \"ngnix\""),
    ("use = \"nginx\"", "use = \"apache\""),
    ("use = \"nginx\"", "use = \"../nginx\""),
    ("use = \"nginx\"", "use = \"slip\""),
    ("use = \"nginx\"", "use = \"nginx\"\ndir = \"x\""),
    ("use = \"nginx\"", "use = \"nginx\"\nrender = [\"missing.conf\"]"),
    ("use = \"nginx\"", "use = \"nginx\"\nrender = [\"../../etc/passwd\"]"),
    ("use = \"nginx\"", "use = \"nginx\"\nrender = [\"/etc/passwd\"]"),
    ("use = \"nginx\"", "use = \"nginx\"\nstop = { signal = \"TREM\" }"),
    ("use = \"nginx\"", "use = \"nginx\"\nstop = { signal = \"TERM\", after = \"2s\" }"),
    ("use = \"nginx\"", "use = \"nginx\"\nstop = \"TERM\""),
    ("use = \"nginx\"\n", ""),
    ("name = \"own\"", "name = \"nginx\""),
    ("name = \"own\"", "name = \"my own\""),
    ("command = [\"./own\"", "cmd = [\"./own\""),
    ("command = [\"./own\", ", "command = \"./own\"\nrequires = ["),
    ("command = [\"./own\"", "command = [\"\""),
    ("command = [\"./own\"", "command = [\"{prot}\""),
    ("command = [\"./own\"", "command = [\"{config}\""),
    ("command = [\"./own\"", "command = [1"),
    ("\"W={workers}\"", "\"{port}\""),
    ("protocols = [\"h1\"]", "protocols = [\"h1\"]\nversion = [\"own\", \"{workers}\"]"),
    ("protocols = [\"h1\"]", "protocols = [\"h1\"]\nrequires = [\"{dir}/own\"]"),
    ("protocols = [\"h1\"]", "protocols = [\"h4\"]"),
    ("protocols = [\"h1\"]", "protocols = [\"h1\", \"h1\"]"),
    ("protocols = [\"h1\"]", "protocols = []"),
    ("protocols = [\"h1\"]", "protocols = \"h1\""),
    ("env = { LEVEL = \"error\" }", "env = { LEVEL = 3 }"),
    ("env = { LEVEL = \"error\" }", "env = { LEVEL = \"{hots}\" }"),
    ("env = { LEVEL = \"error\" }", "env = { \"A=B\" = \"c\" }"),
    ("port = 8080", "port = 40001"),
    ("port = 8080", "port = 40002"),
    ("port = 8080", "port = 0"),
    ("port = 8080", "port = 8080\ntls_port = 8080"),
    ("note = \"by hand\"", "note = \"\""),
    // [[section]]
    ("title = \"Plaintext\"", "title = \"TLS\""),
    ("title = \"Plaintext\"\n", ""),
    ("kind = \"closed-loop\"\n", ""),
    ("kind = \"closed-loop\"", "kind = \"closedloop\""),
    ("kind = \"closed-loop\"", "kind = \"ratio\""),
    ("protocol = \"h1\"\n", ""),
    ("protocol = \"h1\"\n", "protocol = \"h2\"\n"),
    ("kind = \"closed-loop\"\nprotocol = \"h1\"", "kind = \"ratio\"\nprotocols = [\"h2\"]"),
    ("kind = \"closed-loop\"\nprotocol = \"h1\"", "kind = \"ratio\"\nprotocols = [\"h2c\", \"h1s\"]"),
    ("kind = \"closed-loop\"\nprotocol = \"h1\"", "kind = \"ratio\"\nprotocols = [\"h2\", \"h1\"]"),
    ("kind = \"closed-loop\"\nprotocol = \"h1\"", "kind = \"ratio\"\nprotocols = [\"h1\", \"h1\"]"),
    ("kind = \"closed-loop\"\nprotocol = \"h1\"", "kind = \"ratio\"\nprotocols = [\"h2c\", \"h1\", \"h1s\"]"),
    ("kind = \"closed-loop\"\nprotocol = \"h1\"", "kind = \"ratio\"\nprotocols = [\"h2c\", \"h1\"]"),
    ("protocol = \"h1\"", "protocol = \"http\""),
    ("protocol = \"h1\"", "protocol = \"h1\"\nprotocols = [\"h1\"]"),
    ("protocols = [\"h1s\"]", "protocols = [\"h1s\", \"h1\"]"),
    ("cells = [\"1x1\", \"50x1\"]\n", ""),
    ("cells = [\"1x1\", \"50x1\"]", "cells = []"),
    ("cells = [\"1x1\", \"50x1\"]", "conections = [1]"),
    ("cells = [\"1x1\", \"50x1\"]", "cells = [\"1x1\"]\nconcurrency = 1"),
    ("cells = [\"1x1\", \"50x1\"]", "cells = [1, 50]"),
    ("cells = [\"1x1\", \"50x1\"]", "cells = [\"1x1\", \"0x1\"]"),
    ("cells = [\"1x1\", \"50x1\"]", "cells = [\"1x0\"]"),
    ("cells = [\"1x1\", \"50x1\"]", "cells = [\"50\"]"),
    ("cells = [\"1x1\", \"50x1\"]", "cells = [\"1X1\"]"),
    ("cells = [\"1x1\", \"50x1\"]", "cells = [\"x\"]"),
    ("cells = [\"1x1\", \"50x1\"]", "cells = [\"-1x1\"]"),
    ("cells = [\"1x1\", \"50x1\"]", "cells = [\"99999999999999999999x1\"]"),
    ("cells = [\"1x1\", \"50x1\"]", "cells = [\"1x1\", \"50x1\", \"1x1\"]"),
    ("cells = [\"1x1\", \"50x1\"]", "cells = [\"1x1\", \"10x10\"]"),
    ("cells = [\"1x1\", \"50x1\"]", "cells = [\"1x1\", \"1000x1\"]"),
    ("cells = [\"1x1\", \"50x1\"]", "cells = [\"1x1\"]\nduration = \"0s\""),
    ("cells = [\"1x1\", \"50x1\"]", "cells = [\"1x1\"]\nconnections = 5"),
    ("cells = [\"1x1\", \"50x1\"]", "cells = [\"1x1\"]\nsocket = \"shared\""),
    ("cells = [\"1x1\", \"50x1\"]", "cells = [\"1x1\"]\nresumption = \"ticket\""),
    ("cells = [\"10x1\"]", "cells = [\"10x1\"]\nresumption = \"0rtt\""),
    ("cells = [\"10x1\"]", "cells = [\"10x1\"]\nresumption = \"tickets\""),
    ("cells = [\"10x1\"]", "cells = [\"10x1\"]\nresumption = [\"off\", \"ticket\"]"),
    ("connections = 100", "connections = 100\nresumption = \"ticket\""),
    ("requests = 1000", "requests = 1000\nduration = \"1s\""),
    ("requests = 1000", "requests = 0"),
    ("requests = 1000", "requests = 9"),
    ("connections = 100", "connections = 100\nduration = \"1s\""),
    ("connections = 100", "requests = 100"),
    ("connections = 100", "connections = 100\ncells = [\"10x2\"]"),
    ("connections = 100", "connections = 100\nrounds = 2"),
];

/// What is said of connections: the first part of a section, the rest of it, and its mistake.
const CONNECTION_MISTAKES: &[(&str, &str, Option<&str>)] = &[
    (HANDSHAKE, "", None),
    (HANDSHAKE, "resumption = [\"off\", \"ticket\", \"0rtt\"]\nconnections = 50\nconcurrency = 50", None),
    (HANDSHAKE, "resumption = \"ticket\"\nrequests = 3\nsocket = \"shared\"\npacing = true", None),
    ("", "kind = \"setup\"\nprotocols = [\"h3\"]\nresumption = \"0rtt\"", None),
    ("", "kind = \"ratio\"\nprotocols = [\"h3\", \"h1s\"]\ncells = [\"1x1\"]", None),
    (
        HANDSHAKE,
        "cells = [\"1x1\"]",
        Some(
            ".cells: a handshake section has one load; write `connections` for how many in all, and \
                 `concurrency` for how many at the same time",
        ),
    ),
    (
        HANDSHAKE,
        "duration = \"1s\"",
        Some(
            ".duration: a window of a handshake section ends with a number of connections; write `connections`",
        ),
    ),
    (
        HANDSHAKE,
        "connections = 9\nconcurrency = 10",
        Some(".connections: 9 connections in all are too few for 10 at the same time; write 10 or more"),
    ),
    (
        HANDSHAKE,
        "concurrency = 1001",
        Some(
            ".concurrency: 1000 connections in all are too few for 1001 at the same time; write 1001 or more",
        ),
    ),
    (
        HANDSHAKE,
        "connections = 5000\nconcurrency = 2000",
        Some(
            ".concurrency: 2000 connections need 2064 open files and the hard limit is 1024; write at most \
                 960 connections, or raise the limit as root with `ulimit -Hn 2064`",
        ),
    ),
    (HANDSHAKE, "requests = 0", Some(".requests: 0 requests on each connection; write 1 to 1000000")),
    (
        HANDSHAKE,
        "resumption = []",
        Some(".resumption: no resumption in the list; write at least one of off, ticket, 0rtt"),
    ),
    (
        HANDSHAKE,
        "resumption = [\"off\", \"off\"]",
        Some(".resumption[2]: off is listed twice; leave one out"),
    ),
    (
        HANDSHAKE,
        "resumption = [\"ticket\"]\nwarmup = \"0s\"",
        Some(
            ".warmup: no warm-up, in which the first connections get the tickets that later ones present; \
                 write one like `500ms`, or leave it out",
        ),
    ),
    (
        "",
        "kind = \"handshake\"\nprotocols = [\"h2\", \"h2c\"]",
        Some(
            ".protocols[2]: h2c has no handshake; write `h3`, `h2` or `h1s`, or `kind = \"setup\"` for how \
                 fast connections open",
        ),
    ),
    (
        "",
        "kind = \"handshake\"\nprotocols = [\"h2\"]\nresumption = [\"off\", \"0rtt\"]",
        Some(
            ".resumption[2]: early data is sent over h3 alone, and h2 cannot have it; write `\"ticket\"`, or \
                 another protocol",
        ),
    ),
    (
        "",
        "kind = \"setup\"\nprotocols = [\"h3\", \"h2\"]\nresumption = \"0rtt\"",
        Some(
            ".resumption: early data is sent over h3 alone, and h2 cannot have it; write `\"ticket\"`, or \
                 another protocol",
        ),
    ),
    (
        "",
        "kind = \"ratio\"\nprotocols = [\"h3\", \"h2\"]\ncells = [\"1x1\"]\nresumption = \"ticket\"",
        Some(
            ".resumption: a ratio compares connections that are kept, whose handshakes come before the \
                 window; leave it out, or write `kind = \"handshake\"`",
        ),
    ),
    (
        "",
        "kind = \"ratio\"\nprotocols = [\"h3\", \"h2c\"]\ncells = [\"1x1\"]",
        Some(
            ".protocols[2]: h3 runs over QUIC and h2c in cleartext, on different listeners; a ratio compares \
                 two protocols of one, like `[\"h3\", \"h2\"]`",
        ),
    ),
    (
        "",
        "kind = \"closed-loop\"\nprotocol = \"h2\"\ncells = [\"1x1\"]\npacing = true",
        Some(".pacing: is about QUIC, and the section has no h3; leave it out"),
    ),
    (
        "",
        "kind = \"closed-loop\"\nprotocol = \"h2\"\ncells = [\"1x1\"]\nruns = true\n\
         headers = { Accept-Encoding = \"gzip\", x-a = \"\" }",
        None,
    ),
    (
        "",
        "kind = \"closed-loop\"\nprotocol = \"h2\"\ncells = [\"1x1\"]\nheaders = { \"two words\" = \"x\" }",
        Some(".headers.two words: header name \"two words\" is not a token; use letters, digits and `-`"),
    ),
    (
        "",
        "kind = \"closed-loop\"\nprotocol = \"h2\"\ncells = [\"1x1\"]\nheaders = { x-a = \"one\\ntwo\" }",
        Some(".headers.x-a: value of header x-a holds a line break or another control character; remove it"),
    ),
    (
        "",
        "kind = \"closed-loop\"\nprotocol = \"h1s\"\ncells = [\"1x1\"]\nheaders = { Transfer-Encoding = \"gzip\" }",
        Some(
            ".headers.Transfer-Encoding: header Transfer-Encoding would break the framing; remove it, bodies are \
                 sent with Content-Length",
        ),
    ),
    (
        "",
        "kind = \"ratio\"\nprotocols = [\"h2\", \"h1s\"]\ncells = [\"1x1\"]\nheaders = { Connection = \"close\" }",
        Some(
            ".headers.Connection: header connection manages an HTTP/1.1 connection and has no meaning here; \
                 remove it",
        ),
    ),
    (
        "",
        "kind = \"closed-loop\"\nprotocol = \"h2\"\ncells = [\"1x1\"]\nheaders = { te = \"trailers\", TE = \"trailers\" }",
        Some(
            ".headers.te: header te is given twice, in another case; field names have none, so leave one out",
        ),
    ),
    (
        "",
        "kind = \"closed-loop\"\nprotocol = \"h2\"\ncells = [\"1x1\"]\nheaders = [\"Accept-Encoding: br\"]",
        Some(".headers: an array where a table belongs; write it like `{ NAME = \"value\" }`"),
    ),
    (
        "",
        "kind = \"closed-loop\"\nprotocol = \"h2\"\ncells = [\"1x1\"]\nruns = \"yes\"",
        Some(".runs: a string where a boolean belongs; write `true` or `false`"),
    ),
];

const HANDSHAKE: &str = "kind = \"handshake\"\nprotocols = [\"h3\", \"h2\", \"h1s\"]\n";
