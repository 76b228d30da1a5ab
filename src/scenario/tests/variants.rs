//! Owns the tests of `[[server.variant]]` and of `workers`.

use super::*;
use crate::results::VariantRecord;

const USED: &str = "[[server]]\nuse = \"nginx\"\nport = 8080\nworkers = 3\n";

fn variants(server: &str, variants: &str) -> String {
    text("", &format!("{server}{variants}"), "")
}

#[test]
fn a_server_with_variants_stands_for_one_server_each() {
    let scenario = checked(&variants(
        USED,
        "[[server.variant]]\nlabel = \"as it is\"\n\
         [[server.variant]]\nlabel = \"LEVEL=info\"\nenv = { LEVEL = \"info\" }\nworkers = 4\n\
         [[server.variant]]\nlabel = \"µ\"\nname = \"micro\"\ncommand = [\"micro\"]\nprotocols = [\"h1\"]\n\
         note = \"by hand\"\nbuild = [\"make\"]\nrender = []\nrequires = [\"micro\"]\nversion = [\"micro\", \"-v\"]\n\
         [[server]]\nname = \"b\"\ncommand = [\"b\"]\nprotocols = [\"h1\"]\n",
    ));
    let names: Vec<_> = scenario.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["nginx-as-it-is", "nginx-level-info", "micro", "b"]);
    let labels: Vec<_> = scenario.servers.iter().map(|server| server.label.as_str()).collect();
    assert_eq!(labels, ["Nginx, as it is", "Nginx, LEVEL=info", "Nginx, µ", "b"]);
    let of = |label: &str| Some(VariantRecord { of: "nginx".into(), label: label.into() });
    let records: Vec<_> = scenario.servers.iter().map(|server| server.variant.clone()).collect();
    assert_eq!(records, [of("as it is"), of("LEVEL=info"), of("µ"), None]);
    let workers: Vec<_> = scenario.servers.iter().map(|server| server.workers).collect();
    assert_eq!(workers, [Some(3), Some(4), Some(3), None]);

    let plain = &checked(&text("", USED, "")).servers[0];
    let [same, level, micro, _] = &scenario.servers[..] else { panic!("four servers") };
    let named = |server: &ServerSpec| ServerSpec {
        name: server.name.clone(),
        label: server.label.clone(),
        variant: server.variant.clone(),
        ..plain.clone()
    };
    assert_eq!(*same, named(same), "what a variant leaves out is the server's");
    let env: Vec<_> = level.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(env, ["LEVEL=info", "PORT={http_port}"], "variables are merged");
    assert_eq!((&micro.command, &micro.render), (&vec!["micro".to_owned()], &vec![]));
    assert_eq!((micro.note.as_deref(), micro.port), (Some("by hand"), Some(8080)));
    assert_eq!((&micro.build[..], micro.version.len()), (&["make".to_owned()][..], 2));
}

#[test]
fn the_name_of_a_server_keeps_all_of_its_variants() {
    let text = variants(
        &[server("b", "[\"h1\"]"), server("a", "[\"h1\"]")].concat(),
        "[[server.variant]]\nlabel = \"one\"\n[[server.variant]]\nlabel = \"two\"\n",
    );
    for (asked, kept) in [
        ("a", &["a-one", "a-two"][..]),
        ("A", &["a-one", "a-two"]),
        ("a-two", &["a-two"]),
        ("a, one", &["a-one"]),
        ("b", &["b"]),
    ] {
        let overrides = Overrides { servers: vec![asked.into()], ..Overrides::default() };
        let scenario = check_text(&text, &overrides).expect("there is such a server").scenario;
        let names: Vec<_> = scenario.servers.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, kept, "{asked}");
    }
}

#[test]
fn every_mistake_of_a_variant_has_its_message() {
    let place = "/r/scenarios/a.toml";
    for (server, variant, message) in [
        (
            USED,
            "[[server.variant]]\nworkers = 2\n",
            "7:1: server[1].variant[1].label: missing; write what tells this variant from the others, like \
             `label = \"debug\"`",
        ),
        (
            USED,
            "[[server.variant]]\nlabel = \" \"\n",
            "8:9: server[1].variant[1].label: an empty text; write a few words",
        ),
        (
            USED,
            "[[server.variant]]\nlabel = \"µ\"\n",
            "8:9: server[1].variant[1].label: \"µ\" makes no name, which has letters and digits of ASCII; write \
             `name` as well",
        ),
        (
            USED,
            "[[server.variant]]\nlabel = \"x\"\n[[server.variant]]\nlabel = \"x\"\nname = \"y\"\n",
            "10:9: server[1].variant[2].label: `nginx-x` has the label \"Nginx, x\" already; give this one \
             another, tables could not tell them apart",
        ),
        (
            USED,
            "[[server.variant]]\nlabel = \"2 workers\"\n[[server.variant]]\nlabel = \"2-workers\"\n",
            "10:9: server[1].variant[2].label: there is a server `nginx-2-workers` already; give this one \
             another name, like `name = \"nginx-2-workers-2\"`",
        ),
        (
            USED,
            "[[server.variant]]\nlabel = \"x\"\nport = 1\n",
            "9:1: server[1].variant[1].port: unknown key in [[server.variant]]; it belongs in [[server]]",
        ),
        (
            USED,
            "[[server.variant]]\nlabel = \"x\"\nworkers = 0\n",
            "9:11: server[1].variant[1].workers: 0 worker threads; write 1 to 1024",
        ),
        (
            USED,
            "variant = { label = \"x\" }\n",
            "7:11: server[1].variant: a table where a list of tables belongs; write `[[server.variant]]`",
        ),
        (
            USED,
            "[[server.variant]]\nlabel = \"x\"\n[[server]]\nname = \"b\"\ncommand = [\"b\"]\nport = 8080\n\
             protocols = [\"h1\"]\n",
            "12:8: server[2].port: port 8080 is fixed for `nginx-x` already; write another, or leave it out to \
             have one allocated",
        ),
        (
            "[[server]]\ncommand = [\"a\"]\nprotocols = [\"h1\"]\n",
            "[[server.variant]]\nlabel = \"x\"\n",
            "3:1: server[1].name: missing; write `name`, or `use` for a server of servers/",
        ),
    ] {
        let result = check_text(&variants(server, variant), &Overrides::default());
        let error = result.map(|_| ()).expect_err(variant).to_string();
        assert_eq!(error, format!("{place}:{message}"));
    }
}

/// A server.toml describes one server; how it is varied is a question of the scenario.
#[test]
fn a_file_of_a_server_has_no_variants() {
    let read = |path: &Path| match path.to_str() {
        Some("/r/scenarios/a.toml") => Ok(text("", "[[server]]\nuse = \"own\"\n", "")),
        Some("/r/servers") => Ok("own".to_owned()),
        Some("/r/scenarios/servers") => Err(Error::from(ErrorKind::NotFound)),
        _ => {
            Ok("name = \"own\"\ncommand = [\"own\"]\nprotocols = [\"h1\"]\n[[variant]]\nlabel = \"x\"\n"
                .into())
        }
    };
    let checked = check(Path::new("/r/scenarios/a.toml"), &read, &machine(), &Overrides::default());
    let error = checked.map(|_| ()).expect_err("no key of a server.toml").to_string();
    assert_eq!(
        error,
        "/r/servers/own/server.toml:4:3: variant: unknown key in server.toml; it belongs in [[server]]"
    );
}
