//! Owns the page of a report: its Markdown as HTML, the pictures within it, and every round.
//!
//! Foreign strings stand in the Markdown with every character escaped that could start HTML. Beside that
//! only the lines of HTML that the templates themselves write are let through, anything else is shown as
//! text; and the page forbids scripts and loading altogether (Content Security Policy).

use minijinja::{Value, context};
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

use super::picture::{self, Picture, Theme};
use super::view::{Placement, placeholder, view};
use super::{RenderError, render, rounds};
use crate::results::Results;

pub(super) fn page(results: &Results) -> Result<String, RenderError> {
    let view = view(results, Placement::Within);
    let markdown = render::render(&results.template, &view)? + "\n" + &rounds::rounds(results);
    let (body, headings) = html(&markdown, &view.pictures);
    render::page(context! {
        title => &results.title,
        light => picture::properties(Theme::Light),
        dark => picture::properties(Theme::Dark),
        rules => picture::rules(),
        headings => headings,
        body => body,
        path => &results.scenario.path,
        scenario => &results.scenario.text,
    })
}

/// Markdown as HTML, and its headings of the second level.
fn html(markdown: &str, pictures: &[Picture]) -> (String, Vec<Value>) {
    let mut events: Vec<Event<'_>> = Vec::new();
    let mut headings: Vec<(String, String)> = Vec::new();
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        match event {
            Event::Html(line) | Event::InlineHtml(line) => events.push(own(line, pictures)),
            // Wide tables scroll by themselves.
            Event::Start(Tag::Table(_)) => {
                events.extend([Event::Html("<div class=\"scroll\">".into()), event]);
            }
            Event::End(TagEnd::Table) => events.extend([event, Event::Html("</div>\n".into())]),
            Event::End(TagEnd::Heading(level)) => {
                if level == pulldown_cmark::HeadingLevel::H2 {
                    headings.push(identify(&mut events, &headings));
                }
                events.push(event);
            }
            event => events.push(event),
        }
    }
    let mut body = String::new();
    html::push_html(&mut body, events.into_iter());
    let headings = headings.into_iter().map(|(id, text)| context! { id => id, text => text });
    (body, headings.collect())
}

/// A line of HTML that a template wrote, with a picture in the place of its placeholder; any other as text.
fn own<'a>(line: CowStr<'a>, pictures: &[Picture]) -> Event<'a> {
    let bare = line.trim();
    if let Some(picture) = (0..pictures.len()).find(|n| placeholder(*n) == bare) {
        return Event::Html(pictures[picture].part().into());
    }
    let folded = || {
        let title = bare.strip_prefix("<details><summary>")?.strip_suffix("</summary>")?;
        (!title.contains(['<', '&'])).then_some(title)
    };
    if bare.is_empty() || bare == "</details>" || folded().is_some() {
        Event::Html(line)
    } else {
        Event::Text(line)
    }
}

/// Gives the heading that `events` end with an identifier that none of the `others` has; returns it and
/// the heading's text.
fn identify(events: &mut [Event<'_>], others: &[(String, String)]) -> (String, String) {
    let mut text = String::new();
    let mut named = (String::new(), String::new());
    for event in events.iter_mut().rev() {
        match event {
            Event::Text(part) | Event::Code(part) => text.insert_str(0, part),
            Event::Start(Tag::Heading { id, .. }) => {
                let slug = picture::slug(&text);
                let free =
                    |id: &String| !id.is_empty() && id != "scenario" && others.iter().all(|(o, _)| o != id);
                let numbered = (2..).map(|n| format!("{slug}-{n}"));
                // The numbers do not end before one is free.
                named = (std::iter::once(slug.clone()).chain(numbered).find(free).unwrap_or_default(), text);
                *id = Some(named.0.clone().into());
                break;
            }
            _ => {}
        }
    }
    named
}
