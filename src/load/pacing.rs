//! Owns the decision whether a request may be sent now. Sans-I/O.

/// The pace of one worker: a closed loop sends as soon as there is room, until its budget is used or
/// it is told to hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pace {
    left: u64,
}

impl Pace {
    /// Nothing may be sent.
    pub fn hold(&mut self) {
        self.left = 0;
    }

    /// `budget` requests may be sent; `None`: any number.
    pub fn go(&mut self, budget: Option<u64>) {
        self.left = budget.unwrap_or(u64::MAX);
    }

    /// Takes the permission for one request.
    #[inline]
    pub fn take(&mut self) -> bool {
        match self.left {
            0 => false,
            u64::MAX => true,
            _ => {
                self.left -= 1;
                true
            }
        }
    }

    /// True when nothing may be sent any more.
    pub fn exhausted(self) -> bool {
        self.left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_used_once() {
        let mut pace = Pace::default();
        assert!(!pace.take());
        pace.go(Some(2));
        assert_eq!([pace.take(), pace.take(), pace.take()], [true, true, false]);
        pace.go(None);
        assert!(pace.take() && pace.take() && !pace.exhausted());
        pace.hold();
        assert!(!pace.take() && pace.exhausted());
    }
}
