//! Owns `bench man`: manual pages generated from the argument definitions, one for `bench` and one
//! for each command.

use std::io;
use std::path::{Path, PathBuf};

use clap_mangen::Man;

use super::{Exit, print};

/// Print or write the manual pages
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    bench man load | man -l -\n  \
    bench man --out ~/.local/share/man/man1")]
pub struct Args {
    /// The command whose page is printed; without it, the page of `bench` itself
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    page: Option<String>,

    /// Write every page into this folder, which is created when missing
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: Args) -> Exit {
    let pages = pages();
    if let Some(dir) = args.out {
        return match write_all(&dir, &pages) {
            Ok(()) => Exit::Measured,
            Err(error) => {
                eprintln!("error: cannot write manual pages to {}: {error}", dir.display());
                Exit::CouldNot
            }
        };
    }
    let wanted = args.page.map_or("bench".to_owned(), |command| format!("bench-{command}"));
    match pages.iter().find(|page| page.name == wanted) {
        Some(page) => print(&page.roff),
        None => {
            let commands: Vec<_> = pages.iter().filter_map(|page| page.name.strip_prefix("bench-")).collect();
            eprintln!("error: no such command; there are {}", commands.join(", "));
            Exit::CouldNot
        }
    }
}

/// One manual page of section 1.
struct Page {
    /// `bench` or `bench-<command>`.
    name: String,
    roff: Vec<u8>,
}

fn pages() -> Vec<Page> {
    // `bench help` has no page of its own, and must not be listed as if it had.
    let mut root = super::command().disable_help_subcommand(true);
    // Building gives each command its full name, `bench-load`, and usage line, `bench load`.
    root.build();
    let source = format!("bench {}", env!("CARGO_PKG_VERSION"));
    let commands = root.get_subcommands().filter(|command| !command.is_hide_set());
    std::iter::once(&root)
        .chain(commands)
        .map(|command| {
            let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
            let man = Man::new(command.clone()).title(&name).source(&source).manual("bench manual");
            let mut roff = Vec::new();
            man.render(&mut roff).expect("writing to memory does not fail");
            Page { name, roff }
        })
        .collect()
}

fn write_all(dir: &Path, pages: &[Page]) -> io::Result<()> {
    std::fs::create_dir_all(dir)?;
    for page in pages {
        std::fs::write(dir.join(format!("{}.1", page.name)), &page.roff)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::visible_options;
    use super::*;

    #[test]
    fn every_option_is_in_the_page_of_its_command() {
        let pages = pages();
        let mut seen = 0;
        for (command, options) in visible_options() {
            let name = if command == "bench" { command } else { format!("bench-{command}") };
            let page =
                pages.iter().find(|page| page.name == name).unwrap_or_else(|| panic!("no page {name}"));
            let text = String::from_utf8_lossy(&page.roff);
            for long in options {
                // roff writes a hyphen that is not a line-break opportunity as `\-`.
                let escaped = format!("\\-\\-{}", long.replace('-', "\\-"));
                assert!(text.contains(&escaped), "{name} has no --{long}");
                seen += 1;
            }
        }
        assert!(seen > 0, "no option was looked for");
    }

    #[test]
    fn every_page_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("man/man1");
        write_all(&out, &pages()).unwrap();
        for page in pages() {
            let text = std::fs::read(out.join(format!("{}.1", page.name))).unwrap();
            assert!(text.windows(4).any(|w| w == b".TH "), "{} has no title line", page.name);
        }
    }
}
