//! Owns the names of the ways in which a generator can wait.

use super::WaitMode;

impl WaitMode {
    /// Every way, in the order of the enumeration.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Poll, Self::Sleep];

    /// The name in scenarios, on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Poll => "poll",
            Self::Sleep => "sleep",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_one_in_the_json() {
        for wait in WaitMode::ALL {
            assert_eq!(serde_json::to_value(wait).unwrap(), wait.name());
        }
    }
}
