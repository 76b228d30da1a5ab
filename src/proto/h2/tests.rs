//! Owns the tests of the connection as a state machine: frames in, frames and responses out.
