//! Owns the options that narrow a scenario or override it, the same for every command that reads one.

use crate::scenario::Overrides;
use crate::time::Span;
use crate::units::parse_duration;

/// What to leave out of the scenario, or to replace in it. The report says what was.
#[derive(clap::Args, Clone, PartialEq, Debug, Default)]
#[command(next_help_heading = "Narrowing")]
pub struct Narrow {
    /// Only this server, by name or label; repeat for more
    #[arg(long = "server", value_name = "NAME")]
    pub servers: Vec<String>,

    /// Only this generator of those compared, by name or label; repeat for more
    #[arg(long = "generator", value_name = "NAME")]
    pub generators: Vec<String>,

    /// Only this section, by its number from 1, its title or a part of it; repeat for more
    #[arg(long = "section", value_name = "N|TITLE")]
    pub sections: Vec<String>,

    /// Only this cell, in every section that has it; repeat for more
    #[arg(long = "cell", value_name = "CxM")]
    pub cells: Vec<String>,

    /// Rounds, in place of the scenario's
    #[arg(long, value_name = "N")]
    pub rounds: Option<u32>,

    /// Length of each window, e.g. `5s`; a window ended by a count keeps its count
    #[arg(long, value_name = "TIME")]
    pub duration: Option<String>,

    /// Warm-up before each window, e.g. `500ms`; set-up sections without one stay without
    #[arg(long, value_name = "TIME")]
    pub warmup: Option<String>,
}

impl Narrow {
    /// The options as the scenario takes them.
    ///
    /// # Errors
    /// A duration that cannot be read, with its option.
    pub fn overrides(&self) -> Result<Overrides, String> {
        let span = |option: &str, text: &Option<String>| -> Result<Option<Span>, String> {
            let parsed = text.as_deref().map(parse_duration).transpose();
            parsed.map_err(|what| format!("{option}: {what}"))
        };
        Ok(Overrides {
            servers: self.servers.clone(),
            generators: self.generators.clone(),
            sections: self.sections.clone(),
            cells: self.cells.clone(),
            rounds: self.rounds,
            duration: span("--duration", &self.duration)?,
            warmup: span("--warmup", &self.warmup)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        narrow: Narrow,
    }

    fn overrides(line: &[&str]) -> Result<Overrides, String> {
        let line = Line::try_parse_from([&["bench"], line].concat()).map_err(|error| error.to_string())?;
        line.narrow.overrides()
    }

    #[test]
    fn options_become_overrides() {
        let given = [
            "--server",
            "a",
            "--server=b",
            "--generator",
            "w",
            "--section",
            "2",
            "--cell",
            "10x1",
            "--rounds",
            "1",
        ];
        let times = ["--duration", "1m30s", "--warmup", "0s"];
        let overrides = overrides(&[&given[..], &times].concat()).unwrap();
        assert_eq!(
            overrides,
            Overrides {
                servers: vec!["a".into(), "b".into()],
                generators: vec!["w".into()],
                sections: vec!["2".into()],
                cells: vec!["10x1".into()],
                rounds: Some(1),
                duration: Some(Span::from_secs(90)),
                warmup: Some(Span::ZERO),
            }
        );
    }

    #[test]
    fn nothing_given_overrides_nothing() {
        assert_eq!(overrides(&[]), Ok(Overrides::default()));
    }

    #[test]
    fn a_bad_duration_names_its_option() {
        assert_eq!(
            overrides(&["--warmup", "3"]),
            Err("--warmup: no unit in duration `3`; write it like `10s`, `200ms` or `1m30s`".into())
        );
    }
}
