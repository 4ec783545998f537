//! Texts in which one side counts units of UTF-16, and the other bytes.

use napi::{
    bindgen_prelude::{FromNapiValue, ToNapiValue, TypeName, ValidateNapiValue},
    check_status, sys, Error, Result, Status, ValueType,
};
use napi_derive::napi;

/// A text that JavaScript gave.
pub struct Text(pub String);

impl TypeName for Text {
    fn type_name() -> &'static str {
        String::type_name()
    }

    fn value_type() -> ValueType {
        ValueType::String
    }
}

impl ValidateNapiValue for Text {}

impl FromNapiValue for Text {
    /// Asks for no length in bytes, for which V8 looks at the whole text: there is room for the longest of so many units.
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> Result<Self> {
        let (mut units, mut written) = (0, 0);
        // SAFETY: the caller's promise. Without a buffer, this tells how many units there are
        let counted = unsafe { sys::napi_get_value_string_latin1(env, value, std::ptr::null_mut(), 0, &mut units) };
        check_status!(counted, "A text is expected")?;
        let mut bytes = Vec::<u8>::with_capacity(3 * units + 1);
        let room = bytes.capacity();
        // SAFETY: the caller's promise; within the capacity, so much is written as it is told
        let copied = unsafe {
            let copied = sys::napi_get_value_string_utf8(env, value, bytes.as_mut_ptr().cast(), room, &mut written);
            bytes.set_len(written.min(room));
            copied
        };
        check_status!(copied)?;
        let text = utf8_of(bytes);
        text.map(Self)
            .map_err(|_| Error::new(Status::InvalidArg, "this runtime gives a text that is no UTF-8"))
    }
}

/// A text of these bytes. V8 replaces surrogates without their other half, and other runtimes may write them as they are: here, too, each becomes one
/// character.
fn utf8_of(bytes: Vec<u8>) -> std::result::Result<String, std::string::FromUtf8Error> {
    let mut bytes = match String::from_utf8(bytes) {
        Ok(text) => return Ok(text),
        Err(error) => error.into_bytes(),
    };
    let mut at = 0;
    while at + 2 < bytes.len() {
        if let [0xed, 0xa0..=0xbf, _] = bytes[at..at + 3] {
            bytes[at..at + 3].copy_from_slice("\u{fffd}".as_bytes());
        }
        at += 1;
    }
    String::from_utf8(bytes)
}

/// Texts that JavaScript gave in one or, where they are long together, in several, each of whole texts.
pub struct LongText(Vec<Text>);

impl LongText {
    /// All of it.
    pub fn joined(self) -> String {
        match <[Text; 1]>::try_from(self.0) {
            Ok([Text(mut text)]) => {
                // it is kept for a while
                text.shrink_to_fit();
                text
            }
            Err(texts) => texts
                .iter()
                .map(|Text(text)| text.as_str())
                .collect::<Vec<_>>()
                .concat(),
        }
    }
}

impl TypeName for LongText {
    fn type_name() -> &'static str {
        "string | Array<string>"
    }

    fn value_type() -> ValueType {
        ValueType::Unknown
    }
}

impl ValidateNapiValue for LongText {}

impl FromNapiValue for LongText {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> Result<Self> {
        let mut is_array = false;
        // SAFETY: the caller's promise
        unsafe {
            check_status!(sys::napi_is_array(env, value, &mut is_array))?;
            Ok(Self(match is_array {
                true => Vec::from_napi_value(env, value)?,
                false => vec![Text::from_napi_value(env, value)?],
            }))
        }
    }
}

/// The texts of a long one, of which the lengths are known.
pub struct Pieces<'a> {
    rest: &'a str,
    ascii: bool,
    more: std::slice::Iter<'a, Text>,
}

impl<'a> Pieces<'a> {
    /// From the start.
    pub fn new(text: &'a LongText) -> Self {
        Self {
            rest: "",
            ascii: true,
            more: text.0.iter(),
        }
    }

    /// The next text, of so many UTF-16 units. A lone surrogate was replaced by one character, so units still agree.
    pub fn next(&mut self, units: usize) -> &'a str {
        if self.rest.is_empty() && units > 0 {
            self.rest = self.more.next().map_or("", |Text(text)| text);
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

/// A long text for JavaScript, in one or several of whole texts each.
pub struct LongTextForJs {
    text: String,
    is_ascii: bool,
    // where each but the last ends
    cuts: Vec<usize>,
}

impl LongTextForJs {
    /// `cuts`: offsets in bytes.
    pub fn new(text: String, is_ascii: bool, cuts: Vec<usize>) -> Self {
        Self { text, is_ascii, cuts }
    }
}

impl ToNapiValue for LongTextForJs {
    unsafe fn to_napi_value(env: sys::napi_env, value: Self) -> Result<sys::napi_value> {
        let Self { text, is_ascii, cuts } = &value;
        let create = match is_ascii {
            // looks at no byte
            true => sys::napi_create_string_latin1,
            false => sys::napi_create_string_utf8,
        };
        let create = |text: &str| {
            let mut string = std::ptr::null_mut();
            // SAFETY: the caller's promise
            check_status!(unsafe { create(env, text.as_ptr().cast(), text.len() as isize, &mut string) })
                .map(|()| string)
        };
        if cuts.is_empty() {
            return create(text);
        }
        let ends = cuts.iter().copied().chain([text.len()]);
        let mut array = std::ptr::null_mut();
        // SAFETY: as above
        check_status!(unsafe { sys::napi_create_array_with_length(env, cuts.len() + 1, &mut array) })?;
        let mut from = 0;
        for (at, end) in ends.enumerate() {
            let string = create(&text[from..end])?;
            // SAFETY: as above
            check_status!(unsafe { sys::napi_set_element(env, array, at as u32, string) })?;
            from = end;
        }
        Ok(array)
    }
}

/// UTF-16 units of a text.
pub fn units_of(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.chars().map(char::len_utf16).sum()
    }
}

/// Whether JSON has a text as it is, between quotes: nothing in it is escaped. Says no where there are replacement characters: they may stand for lone
/// surrogates, which are escaped.
#[napi]
pub fn is_plain_text(#[napi(ts_arg_type = "string")] text: Text) -> bool {
    let Text(text) = text;
    let is_escaped = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    // no way out among the bytes of a chunk: so the compiler compares many at a time
    let mut chunks = text.as_bytes().chunks(256);
    !chunks.any(|chunk| chunk.iter().fold(false, |found, byte| found | is_escaped(*byte)))
        && (text.is_ascii() || !text.contains('\u{fffd}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_cut_by_utf16_units() {
        let text = "añ😀bc";
        for given in [vec![text], vec!["añ", "😀bc"], vec!["añ😀", "bc"]] {
            let given = LongText(given.into_iter().map(|text| Text(text.to_owned())).collect());
            let mut pieces = Pieces::new(&given);
            assert_eq!(pieces.next(0), "");
            assert_eq!(pieces.next(2), "añ");
            assert_eq!(pieces.next(0), "");
            assert_eq!(pieces.next(2), "😀");
            assert_eq!(pieces.next(2), "bc");
            assert_eq!(pieces.next(3), "");
            assert_eq!(given.joined(), text);
        }
        assert_eq!(units_of(text), 6);
    }

    #[test]
    fn a_text_is_utf8_whatever_a_runtime_gives() {
        let text = "añ😀\u{fffd}";
        assert_eq!(utf8_of(text.as_bytes().to_vec()).expect("a text"), text);
        // a lone surrogate, and a pair of them, as three bytes each
        let halves = [b"a\xed\xa0\x80b".as_slice(), b"\xed\xa0\xbd\xed\xb8\x80\xc3\xb1"].concat();
        assert_eq!(utf8_of(halves).expect("a text"), "a\u{fffd}b\u{fffd}\u{fffd}ñ");
        for bytes in [b"\xff".as_slice(), b"a\xc3", b"\xed\xa0", b"\xc0\x80"] {
            assert!(utf8_of(bytes.to_vec()).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn a_text_is_plain_when_nothing_in_it_is_escaped() {
        let is_plain = |text: &str| is_plain_text(Text(text.to_owned()));
        let long = "x".repeat(1000);
        for plain in ["", "a b", "ñ日😀\u{7f}\u{2028}/'", &long] {
            assert!(is_plain(plain), "{plain}");
        }
        for escaped in ["\"", "\\", "\n", "\0", "\u{1f}", "\u{fffd}"] {
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
