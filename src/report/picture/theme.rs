//! Owns the colours of pictures and the style sheet that gives them to the classes a drawing uses.
//!
//! The hues follow the palette of Okabe and Ito (Color Universal Design, 2008), which readers with any
//! kind of colour blindness can tell apart, each darkened for a light page and lightened for a dark one
//! until it stands out from the background; four more hues follow. Colour is never the only cue: a bar
//! has its label beside it, a curve has the marker of its server.

/// What a picture is drawn for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Theme {
    /// Dark ink on a light page.
    Light,
    /// Light ink on a dark page.
    Dark,
}

impl Theme {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Light, Self::Dark];

    /// As file names end.
    pub fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    fn colours(self) -> &'static Colours {
        match self {
            Self::Light => &LIGHT,
            Self::Dark => &DARK,
        }
    }
}

struct Colours {
    background: &'static str,
    /// Titles and figures.
    ink: &'static str,
    /// Axes, units, remarks.
    soft: &'static str,
    /// Lines of the grid: seen, but never taken for data.
    grid: &'static str,
    series: [&'static str; SERIES],
}

/// The custom properties of a theme, as a page declares them.
pub(in crate::report) fn properties(theme: Theme) -> String {
    let Colours { background, ink, soft, grid, series } = theme.colours();
    let mut css = format!("--paper:{background};--ink:{ink};--soft:{soft};--grid:{grid};");
    for (n, colour) in series.iter().enumerate() {
        css += &format!("--s{n}:{colour};");
    }
    css
}

/// Rules for the classes that drawings use, in terms of custom properties. They hold within pictures
/// alone, so a page can have them beside its own.
pub(in crate::report) fn rules() -> String {
    let mut css = String::from(RULES);
    for n in 0..SERIES {
        css += &format!(".pic .s{n}{{fill:var(--s{n});stroke:var(--s{n})}}\n");
    }
    css
}

/// The style sheet of a picture that stands alone.
pub(super) fn sheet(theme: Theme) -> String {
    // Renderers of SVG that are no browsers know no custom properties: a file has the colours themselves.
    let mut css = rules();
    let Colours { background, ink, soft, grid, series } = theme.colours();
    let named = [("--paper", background), ("--ink", ink), ("--soft", soft), ("--grid", grid)];
    for (name, colour) in named {
        css = css.replace(&format!("var({name})"), colour);
    }
    for (n, colour) in series.iter().enumerate() {
        css = css.replace(&format!("var(--s{n})"), colour);
    }
    css
}

/// The class of a series; with more series than colours they begin again.
pub(super) fn class(series: usize) -> String {
    format!("s{}", series % SERIES)
}

/// Series with a colour of their own.
pub(super) const SERIES: usize = 12;

const RULES: &str = "\
.pic text{font-family:system-ui,-apple-system,\"Segoe UI\",Helvetica,Arial,sans-serif;font-size:12px;\
fill:var(--ink);stroke:var(--paper);stroke-width:3px;stroke-linejoin:round;paint-order:stroke}
.pic .paper{fill:var(--paper)}
.pic .title{font-size:14px;font-weight:600}
.pic .best{font-weight:700}
.pic .soft{fill:var(--soft);font-size:11px}
.pic .grid{stroke:var(--grid);stroke-width:1;fill:none}
.pic .axis{stroke:var(--soft);stroke-width:1;fill:none}
.pic .whisker{stroke:var(--ink);stroke-width:1;fill:none}
.pic .break{stroke:var(--soft);stroke-width:1;stroke-dasharray:2 3;fill:none}
.pic .curve{stroke-width:1.6;stroke-linejoin:round;fill:none!important}
.pic .dashed{stroke-dasharray:5 3}
.pic .marked{fill-opacity:.3}
.pic .dot{stroke-width:1.2}
.pic .hollow{fill:var(--paper)!important}
";

const LIGHT: Colours = Colours {
    background: "#ffffff",
    ink: "#1f2328",
    soft: "#59636e",
    grid: "#d8dee4",
    series: [
        "#0072b2", "#c94f00", "#00805e", "#a6458a", "#8a6a00", "#2b7f9e", "#b3243b", "#5b4fc0", "#5f6b1e",
        "#7a4b1e", "#6b7079", "#c2337f",
    ],
};

const DARK: Colours = Colours {
    background: "#0d1117",
    ink: "#e6edf3",
    soft: "#9aa4af",
    grid: "#2b323b",
    series: [
        "#4ba3e3", "#ff8a3d", "#2fc79a", "#e08cc6", "#e6b422", "#7fd0ec", "#ff7b89", "#a79bff", "#b7c653",
        "#d1a374", "#a3abb5", "#ff86bd",
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance (WCAG 2.2, "relative luminance").
    fn luminance(colour: &str) -> f64 {
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// WCAG 2.2, 1.4.3 for text and 1.4.11 for what is drawn.
    #[test]
    fn everything_stands_out_from_its_background() {
        for theme in Theme::ALL {
            let colours = theme.colours();
            for text in [colours.ink, colours.soft] {
                assert!(contrast(text, colours.background) >= 4.5, "{theme:?} {text}");
            }
            for drawn in colours.series {
                let found = contrast(drawn, colours.background);
                assert!(found >= 3.0, "{theme:?} {drawn}: {found}");
            }
        }
    }

    #[test]
    fn a_sheet_of_its_own_names_no_custom_property() {
        for theme in Theme::ALL {
            assert!(!sheet(theme).contains("var("), "{}", sheet(theme));
        }
        assert!(properties(Theme::Dark).contains("--s11:#ff86bd;"));
        assert_eq!(class(13), "s1");
    }
}
