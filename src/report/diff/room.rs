//! Owns how a comparison is cut to the size that a platform takes.

use crate::report::RenderError;

/// Where a text has to fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// A comment on GitHub: 65 536 characters (code points).
    Comment,
    /// What one step of a GitHub workflow may write to its summary: 1 MiB.
    Summary,
}

impl Room {
    /// The length of a text as the platform counts it.
    fn length(self, text: &str) -> usize {
        match self {
            Self::Comment => text.chars().count(),
            Self::Summary => text.len(),
        }
    }

    /// The longest text it takes.
    fn limit(self) -> usize {
        match self {
            Self::Comment => 65_535 - RESERVE,
            Self::Summary => (1 << 20) - 1 - RESERVE,
        }
    }

    fn takes(self, text: &str) -> bool {
        self.length(text) <= self.limit()
    }

    /// The longest text that fits of those that `draw` gives for up to `rows` rows.
    pub(super) fn fit(
        self,
        rows: usize,
        whole: &str,
        draw: &dyn Fn(usize) -> Result<String, RenderError>,
    ) -> Result<String, RenderError> {
        let text = draw(rows)?;
        if self.takes(&text) {
            return Ok(text);
        }
        // More rows are never a shorter text, so that halving finds the most that fit.
        let (mut fits, mut over) = (draw(0)?, rows);
        if !self.takes(&fits) {
            return Ok(self.first_lines(&fits, whole));
        }
        let mut least = 0;
        while over - least > 1 {
            let middle = least + (over - least) / 2;
            let text = draw(middle)?;
            if self.takes(&text) {
                (least, fits) = (middle, text);
            } else {
                over = middle;
            }
        }
        Ok(fits)
    }

    /// As many whole lines of a text without tables as fit, and where the rest is.
    fn first_lines(self, text: &str, whole: &str) -> String {
        let end = format!("\nThe rest does not fit here; the whole: {whole}\n");
        let mut left = self.limit().saturating_sub(self.length(&end));
        let mut out = String::new();
        for line in text.lines() {
            let Some(rest) = left.checked_sub(self.length(line) + 1) else { break };
            left = rest;
            out.push_str(line);
            out.push('\n');
        }
        out + &end
    }
}

/// Left free for what a workflow puts around the text, such as a line to find its comment again by. In
/// characters, or bytes.
const RESERVE: usize = 1_024;
