//! Owns the generator: a [`plan::LoadPlan`] in, one [`crate::results::Measurement`] out.

pub mod plan;
