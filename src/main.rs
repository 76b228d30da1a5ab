//! The `bench` binary: arguments in, exit code out.

fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(bench::cli::main() as u8)
}
