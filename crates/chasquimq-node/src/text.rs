//! Texts in which one side counts units of UTF-16, and the other bytes.

use napi::{bindgen_prelude::Utf16String, Either};
use napi_derive::napi;

/// A text of JavaScript's that came whole, or in pieces where it is long.
pub fn joined(text: Either<String, Vec<String>>) -> String {
    match text {
        Either::A(text) => text,
        Either::B(pieces) => pieces.concat(),
    }
}

/// Texts that JavaScript gave in one, or where they are long in several, each of whole texts; and the lengths of each.
pub struct Pieces<'a> {
    rest: &'a str,
    ascii: bool,
    more: std::slice::Iter<'a, String>,
}

impl<'a> Pieces<'a> {
    /// From the start.
    pub fn new(text: &'a Either<String, Vec<String>>) -> Self {
        let texts = match text {
            Either::A(text) => std::slice::from_ref(text),
            Either::B(texts) => texts,
        };
        Self {
            rest: "",
            ascii: true,
            more: texts.iter(),
        }
    }

    /// The next text, of so many UTF-16 units. A lone surrogate was replaced by one character, so units still agree.
    pub fn next(&mut self, units: usize) -> &'a str {
        if self.rest.is_empty() && units > 0 {
            self.rest = self.more.next().map_or("", String::as_str);
            self.ascii = self.rest.is_ascii();
        }
        let bytes = if self.ascii {
            units.min(self.rest.len())
        } else {
            bytes_of(self.rest, units)
        };
        let (piece, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        piece
    }
}

fn bytes_of(text: &str, units: usize) -> usize {
    let mut left = units;
    for (at, char) in text.char_indices() {
        if left == 0 {
            return at;
        }
        left = left.saturating_sub(char.len_utf16());
    }
    text.len()
}

/// UTF-16 units of a text.
pub fn units_of(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.chars().map(char::len_utf16).sum()
    }
}

/// Whether JSON has a text as it is, between quotes: nothing in it is escaped. Says no where there are surrogates, of which lone ones are escaped.
#[napi]
pub fn is_plain_text(text: Utf16String) -> bool {
    let is_escaped = |unit: u16| unit < 0x20 || unit == 0x22 || unit == 0x5c || unit & 0xf800 == 0xd800;
    // no way out among the units of a chunk: so the compiler compares many at a time
    let mut chunks = text.chunks(256);
    !chunks.any(|chunk| chunk.iter().fold(false, |found, unit| found | is_escaped(*unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_cut_by_utf16_units() {
        let text = "añ😀bc";
        for given in [
            Either::A(text.to_owned()),
            Either::B(vec!["añ".to_owned(), "😀bc".to_owned()]),
            Either::B(vec!["añ😀".to_owned(), "bc".to_owned()]),
        ] {
            let mut pieces = Pieces::new(&given);
            assert_eq!(pieces.next(0), "");
            assert_eq!(pieces.next(2), "añ");
            assert_eq!(pieces.next(0), "");
            assert_eq!(pieces.next(2), "😀");
            assert_eq!(pieces.next(2), "bc");
            assert_eq!(pieces.next(3), "");
        }
        assert_eq!(units_of(text), 6);
    }

    #[test]
    fn a_text_is_plain_when_nothing_in_it_is_escaped() {
        let is_plain = |text: &str| is_plain_text(text.to_owned().into());
        let long = "x".repeat(1000);
        for plain in ["", "a b", "ñ日\u{7f}\u{2028}/'", &long] {
            assert!(is_plain(plain), "{plain}");
        }
        for escaped in ["\"", "\\", "\n", "\0", "\u{1f}", "😀"] {
            for text in [
                escaped.to_owned(),
                format!("{long}{escaped}"),
                format!("{escaped}{long}"),
            ] {
                assert!(!is_plain(&text), "{text}");
            }
        }
    }
}
