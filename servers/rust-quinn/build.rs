//! Bakes the versions that `--version` prints into the program: those of quinn and h3 from the lock
//! file, the compiler's from the compiler.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=Cargo.lock");
    let lock = std::fs::read_to_string("Cargo.lock").expect("the lock file is committed");
    for name in ["quinn", "h3"] {
        let version = lock
            .split("[[package]]")
            .find(|package| package.contains(&format!("name = \"{name}\"\n")))
            .and_then(|package| package.split("version = \"").nth(1)?.split('"').next())
            .expect("it is a dependency");
        println!("cargo::rustc-env={}_VERSION={version}", name.to_uppercase());
    }

    let rustc = std::env::var_os("RUSTC").expect("cargo sets RUSTC");
    let output = Command::new(rustc).arg("--version").output().expect("the compiler runs");
    // `rustc 1.95.0 (hash date)`: the second word is the version.
    let line = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("cargo::rustc-env=RUSTC_VERSION={}", line.split(' ').nth(1).unwrap_or("unknown"));
}
