//! Owns `bench completions`: a shell's completion script, generated from the argument definitions.

use clap::Command;
use clap_complete::Shell;

use super::{Exit, print};

/// Print a shell's completion script
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    bench completions bash > ~/.local/share/bash-completion/completions/bench\n  \
    bench completions zsh > ~/.zfunc/_bench\n  \
    bench completions fish > ~/.config/fish/completions/bench.fish")]
pub struct Args {
    /// The shell
    shell: Shell,
}

/// Runs the command.
pub fn run(args: Args) -> Exit {
    print(&script(args.shell))
}

fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut without_hidden(&super::command()), "bench", &mut script);
    script
}

/// `command` less the commands that the program starts itself with: the scripts would offer them.
fn without_hidden(command: &Command) -> Command {
    Command::new("bench")
        .version(env!("CARGO_PKG_VERSION"))
        .args(command.get_arguments())
        .subcommands(command.get_subcommands().filter(|command| !command.is_hide_set()))
}

#[cfg(test)]
mod tests {
    use super::super::visible_options;
    use super::*;

    #[test]
    fn every_option_of_every_command_can_be_completed() {
        // Each shell's script spells an option in its own way.
        for (shell, spell) in [
            (Shell::Bash, (|long| format!("--{long}")) as fn(&str) -> String),
            (Shell::Zsh, |long| format!("--{long}")),
            (Shell::Fish, |long| format!("-l {long}")),
        ] {
            let script = String::from_utf8(script(shell)).unwrap();
            let mut seen = 0;
            for (command, options) in visible_options() {
                assert!(script.contains(&command), "{shell}: no command {command}");
                for long in options {
                    assert!(script.contains(&spell(&long)), "{shell}: {command} has no --{long}");
                    seen += 1;
                }
            }
            assert!(seen > 0, "no option was looked for");
        }
    }

    #[test]
    fn hidden_commands_are_not_offered() {
        let command = Command::new("bench")
            .subcommand(Command::new("shown"))
            .subcommand(Command::new("internal").hide(true));
        let names: Vec<_> =
            without_hidden(&command).get_subcommands().map(|command| command.get_name().to_owned()).collect();
        assert_eq!(names, ["shown"]);
    }
}
