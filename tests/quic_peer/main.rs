//! The QUIC client against quinn-proto as the server, in memory and under a virtual clock: whatever a path
//! does to their datagrams, every request is answered or accounted for, byte by byte.
//!
//! A case is made of its seed alone. `BENCH_QUIC_SEEDS=first..last` runs these instead of the usual ones.

#[path = "../common/mod.rs"]
mod common;

mod case;
mod client;
mod server;
mod world;

use std::ops::Range;

use case::{Case, Kind};

/// Cases of each kind; many more without debug assertions, which is how the release step runs them.
const SEEDS: u64 = if cfg!(debug_assertions) { 100 } else { 1000 };

/// Runs cases of a kind, and names the ones that come out wrong.
fn survive(kind: Kind) {
    let mut wrong = Vec::new();
    for seed in seeds() {
        let case = Case::new(kind, seed);
        let run = std::panic::catch_unwind(|| world::run(&case));
        if let Err(panic) = run {
            wrong.push(format!("seed {seed}: {}\n{case:?}", common::said(&*panic)));
        }
        if wrong.len() == MOST_TOLD {
            break;
        }
    }
    assert!(wrong.is_empty(), "{kind:?}: {}", wrong.join("\n"));
}

fn seeds() -> Range<u64> {
    let Ok(asked) = std::env::var("BENCH_QUIC_SEEDS") else { return 0..SEEDS };
    let (first, last) = asked.split_once("..").expect("BENCH_QUIC_SEEDS is first..last");
    let number = |text: &str| text.parse().expect("BENCH_QUIC_SEEDS has two numbers");
    number(first)..number(last)
}

#[test]
fn a_good_path_loses_nothing() {
    survive(Kind::Good);
}

#[test]
fn a_bad_path_costs_time_and_no_request() {
    survive(Kind::Bad);
}

#[test]
fn a_terrible_path_costs_more_time_and_no_request() {
    survive(Kind::Terrible);
}

#[test]
fn a_path_that_is_dark_for_a_while_costs_no_request() {
    survive(Kind::Dark);
}

#[test]
fn a_path_that_ends_leaves_every_request_accounted_for() {
    survive(Kind::Ending);
}

#[test]
fn a_server_that_resets_stops_and_closes_leaves_every_request_accounted_for() {
    survive(Kind::Hostile);
}

#[test]
fn early_data_survives_a_bad_path() {
    survive(Kind::Early);
}

#[test]
fn a_case_comes_out_the_same_each_time() {
    for seed in 0..5 {
        let case = Case::new(Kind::Bad, seed);
        assert_eq!(world::run(&case), world::run(&case), "seed {seed}");
    }
}

const MOST_TOLD: usize = 3;
