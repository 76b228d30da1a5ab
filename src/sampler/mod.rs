//! Owns what is read from `/proc` and `/sys`: text to structs (pure), a process tree's CPU and
//! memory at an instant, and the facts of the machine.

mod difference;
mod doctor;
mod environment;
mod ledger;
mod machine;
mod read;
mod stat;
mod tree;

pub use difference::difference;
pub use doctor::doctor;
pub use environment::environment;
pub use ledger::ProcessId;
pub use machine::machine;
pub use stat::{CpuTimes, Memory, format_cpu_list, parse_cpu_list};
pub use tree::{ThreadId, ThreadUse, TreeCpu, TreeSampler, TreeSnapshot};
