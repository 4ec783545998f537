//! Texts in which one side counts units of UTF-16, and the other bytes.

use napi::Either;

/// A text of JavaScript's that came whole, or in pieces where it is long.
pub fn joined(text: Either<String, Vec<String>>) -> String {
    match text {
        Either::A(text) => text,
        Either::B(pieces) => pieces.concat(),
    }
}

/// Cuts a text into pieces whose lengths JavaScript gave.
pub struct Pieces<'a> {
    rest: &'a str,
    ascii: bool,
}

impl<'a> Pieces<'a> {
    /// Pieces of `text`, from its start.
    pub fn new(text: &'a str) -> Self {
        Self {
            rest: text,
            ascii: text.is_ascii(),
        }
    }

    /// The next piece, of so many UTF-16 units. A lone surrogate was replaced by one character, so units still agree.
    pub fn next(&mut self, units: usize) -> &'a str {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_cut_by_utf16_units() {
        let text = "añ😀bc";
        let mut pieces = Pieces::new(text);
        assert_eq!(pieces.next(2), "añ");
        assert_eq!(pieces.next(2), "😀");
        assert_eq!(pieces.next(2), "bc");
        assert_eq!(pieces.next(3), "");
        assert_eq!(units_of(text), 6);
    }
}
