//! Owns the templates, embedded at build, and the step from a view to Markdown.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

use super::view::View;
use super::{RenderError, diff};

/// Report templates by name, as a scenario's `template` key gives it.
const REPORTS: &[(&str, &str)] = &[
    ("http", include_str!("../../templates/http.md.j2")),
    ("http2", include_str!("../../templates/http2.md.j2")),
    ("http3", include_str!("../../templates/http3.md.j2")),
    ("encodings", include_str!("../../templates/encodings.md.j2")),
    ("generators", include_str!("../../templates/generators.md.j2")),
];

/// Parts that templates include.
const PARTS: &[(&str, &str)] = &[
    ("parts/head.md.j2", include_str!("../../templates/parts/head.md.j2")),
    ("parts/figures.md.j2", include_str!("../../templates/parts/figures.md.j2")),
    ("parts/machine.md.j2", include_str!("../../templates/parts/machine.md.j2")),
    ("parts/section.md.j2", include_str!("../../templates/parts/section.md.j2")),
    ("parts/tools.md.j2", include_str!("../../templates/parts/tools.md.j2")),
    ("parts/foot.md.j2", include_str!("../../templates/parts/foot.md.j2")),
];

/// Template of comparisons.
const DIFF: &str = include_str!("../../templates/diff.md.j2");

/// Names of the templates there are.
pub fn templates() -> impl Iterator<Item = &'static str> {
    REPORTS.iter().map(|(name, _)| *name)
}

/// Renders a view with the template of this name.
pub(super) fn render(template: &str, view: &View) -> Result<String, RenderError> {
    let Some((_, source)) = REPORTS.iter().find(|(name, _)| *name == template) else {
        let known: Vec<&str> = templates().collect();
        return Err(RenderError(format!(
            "no report template `{}`; there is {}",
            super::text::one_line(template),
            known.join(", ")
        )));
    };
    fill(template, source, view)
}

/// Renders comparisons.
pub(super) fn diff(view: &diff::View) -> Result<String, RenderError> {
    fill("diff", DIFF, view)
}

fn fill(template: &str, source: &str, view: &impl Serialize) -> Result<String, RenderError> {
    // Strings of the view are Markdown already, so nothing is escaped here; a name the view does not
    // have is an error instead of a hole in the report.
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    let fault = |e: minijinja::Error| RenderError(format!("template `{template}`: {e:#}"));
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().map_err(fault)?;
    environment.set_syntax(syntax);
    for (name, part) in PARTS {
        environment.add_template(name, part).map_err(fault)?;
    }
    let text = environment.render_str(source, Value::from(Serde(view))).map_err(fault)?;
    Ok(tidy(&text))
}

/// At most one blank line in a row and one newline at the end, whatever a template leaves out. Inside
/// fenced blocks nothing changes.
fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut fence: Option<&str> = None;
    let mut blank = true;
    for line in text.lines() {
        let bare = line.trim();
        let run = &bare[..bare.len() - bare.trim_start_matches('`').len()];
        match fence {
            None if run.len() >= 3 => fence = Some(run),
            Some(open) if run.len() >= open.len() && bare == run => fence = None,
            _ => {}
        }
        if bare.is_empty() && blank && fence.is_none() {
            continue;
        }
        blank = bare.is_empty();
        out.push_str(line.trim_end());
        out.push('\n');
    }
    while out.ends_with("\n\n") {
        out.pop();
    }
    out
}
