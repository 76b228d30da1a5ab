//! Owns the limit of open files of this process, which every server and generator inherits.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::scenario::Scenario;

/// Raises the soft limit of open files to what the largest cell may need, as far as the hard limit
/// allows (setrlimit(2)). It is not raised further, because there are programs that close or poll
/// every descriptor up to the limit, and a hard limit may be 2³⁰.
pub(crate) fn raise_open_files(scenario: &Scenario) {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    let wanted = wanted(scenario).min(hard);
    if wanted > soft {
        // Refused, it stays as it is; cells that are too large for it then fail and say why.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, wanted, hard);
    }
}

/// A server may hold two descriptors for a connection (a proxy), and during a `setup` cell as many
/// again that are just closing; the rest is for its own files.
fn wanted(scenario: &Scenario) -> u64 {
    let cells = scenario.sections.iter().flat_map(|section| &section.cells);
    let most = cells.map(|cell| u64::from(cell.connections)).max().unwrap_or(0);
    most.saturating_mul(4).saturating_add(OWN_FILES)
}

/// Descriptors a server may use beside its connections.
const OWN_FILES: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Protocol;
    use crate::run::fixture;

    #[test]
    fn the_largest_cell_decides() {
        let scenario = fixture::scenario(1, &["a"], &[&[Protocol::H1]], &[1, 10_000, 50]);
        assert_eq!(wanted(&scenario), 41_024);
    }
}
