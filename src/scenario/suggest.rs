//! Owns the guess at what a misspelt word was meant to be, and lists of words in messages.

/// The candidate nearest to `word`, when it is near enough to be a slip of the fingers: at most one
/// edit in three letters, letter case aside. Of two letters, one makes another word: `h3` is no
/// misspelt `h1`.
pub(super) fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let word = word.to_lowercase();
    let allowed = word.chars().count() / 3;
    candidates
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, &candidate.to_lowercase()), *candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// What to write in place of `word`: the nearest candidate, or all of them.
pub(super) fn instead(word: &str, candidates: &[&str]) -> String {
    match nearest(word, candidates) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None => format!("write one of {}", candidates.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_corrected_and_other_words_are_not() {
        let keys = ["connections", "cells", "kind", "title"];
        for (word, expected) in [
            ("conections", Some("connections")),
            ("Connections", Some("connections")),
            ("conenctions", Some("connections")),
            ("cell", Some("cells")),
            ("knid", Some("kind")),
            ("concurrency", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(nearest(word, &keys), expected, "{word}");
        }
    }

    #[test]
    fn without_a_near_word_all_are_listed() {
        assert_eq!(instead("TREM", &["TERM", "INT"]), "did you mean `TERM`?");
        assert_eq!(instead("h3", &["h1", "h1s"]), "write one of h1, h1s");
    }
}
