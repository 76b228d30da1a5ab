//! Owns the tests of whole sections and instructions.
