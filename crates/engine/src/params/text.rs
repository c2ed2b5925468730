//! The engine's JSON tokenizer. Reads in place, without copying.
//!
//! A `Text` is the unread rest of a text. Every function advances past what it reads and rejects
//! what violates RFC 8259 in that part. A text that was read to its end is valid JSON.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

/// The maximum nesting depth of values.
pub(super) const DEEPEST: usize = 1000;

/// Not JSON, nested too deeply, or not of the expected shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

type Result<T, E = Malformed> = std::result::Result<T, E>;

/// The type of a value, determined by its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    String,
    Number,
    Bool,
    Object,
    Array,
    Null,
}

#[derive(Debug, Clone, Copy)]
pub struct Text<'a>(&'a [u8]);

impl<'a> Text<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        Self(text)
    }

    /// The text from here to the position of `other`, a later position in the same text.
    pub fn up_to(&self, other: &Self) -> &'a [u8] {
        &self.0[..self.0.len() - other.0.len()]
    }

    /// The text up to the next occurrence of `byte`, or all of it.
    pub fn until(&self, byte: u8) -> &'a [u8] {
        &self.0[..memchr(byte, self.0).unwrap_or(self.0.len())]
    }

    /// The type of the next value.
    #[inline]
    pub fn kind(&mut self) -> Result<Kind> {
        self.0 = self.after_space();
        match self.0.first() {
            Some(b'"') => Ok(Kind::String),
            Some(b'{') => Ok(Kind::Object),
            Some(b'[') => Ok(Kind::Array),
            Some(b't' | b'f') => Ok(Kind::Bool),
            Some(b'n') => Ok(Kind::Null),
            Some(b'-' | b'0'..=b'9') => Ok(Kind::Number),
            _ => Err(Malformed),
        }
    }

    /// Reads one punctuation character.
    #[inline]
    pub fn sign(&mut self, sign: u8) -> Result<()> {
        self.0 = self.after_space().strip_prefix(&[sign]).ok_or(Malformed)?;
        Ok(())
    }

    /// Reads a word such as null and returns true if it is next.
    #[inline]
    pub fn takes(&mut self, word: &[u8]) -> bool {
        match self.after_space().strip_prefix(word) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    pub fn boolean(&mut self) -> Result<bool> {
        match (self.takes(b"true"), self.takes(b"false")) {
            (true, _) => Ok(true),
            (_, true) => Ok(false),
            _ => Err(Malformed),
        }
    }

    /// Reads a string and resolves its escapes.
    #[inline]
    pub fn string(&mut self) -> Result<Cow<'a, [u8]>> {
        let opened = self.after_space().strip_prefix(b"\"").ok_or(Malformed)?;
        let end = plain_length(opened);
        if opened.get(end) == Some(&b'"') {
            self.0 = &opened[end + 1..];
            return Ok(Cow::Borrowed(&opened[..end]));
        }
        let end = memchr2(b'"', b'\\', opened).ok_or(Malformed)?;
        let plain = checked(&opened[..end])?;
        if opened[end] == b'"' {
            self.0 = &opened[end + 1..];
            return Ok(Cow::Borrowed(plain));
        }
        self.0 = &opened[end..];
        let mut text = plain.to_vec();
        self.escaped(|part| text.extend_from_slice(part))?;
        Ok(Cow::Owned(text))
    }

    /// Reads a string. Fails if it has escapes.
    #[inline]
    pub fn plain_string(&mut self) -> Result<&'a [u8]> {
        match self.string()? {
            Cow::Borrowed(text) => Ok(text),
            Cow::Owned(_) => Err(Malformed),
        }
    }

    /// Reads the rest of a string from its first escape on.
    fn escaped(&mut self, mut part: impl FnMut(&[u8])) -> Result<()> {
        loop {
            let end = memchr2(b'"', b'\\', self.0).ok_or(Malformed)?;
            part(checked(&self.0[..end])?);
            let is_end = self.0[end] == b'"';
            self.0 = &self.0[end + usize::from(is_end)..];
            if is_end {
                return Ok(());
            }
            let (length, sign) = escape(self.0)?;
            part(sign.encode_utf8(&mut [0; 4]).as_bytes());
            self.0 = &self.0[length..];
        }
    }

    /// Skips one value and returns its text.
    pub fn skip(&mut self) -> Result<&'a [u8]> {
        let begun = self.after_space();
        // The closing brackets of the open containers.
        let mut open = Vec::new();
        loop {
            match self.kind()? {
                Kind::Object if self.opens(b"{", b"}", &mut open)? => {
                    self.key()?;
                    continue;
                }
                Kind::Array if self.opens(b"[", b"]", &mut open)? => continue,
                Kind::Object | Kind::Array => {}
                Kind::String => drop(self.string()?),
                Kind::Number => self.0 = &self.0[number(self.0)?..],
                Kind::Bool => drop(self.boolean()?),
                Kind::Null => self.takes(b"null").then_some(()).ok_or(Malformed)?,
            }
            loop {
                let Some(close) = open.last() else {
                    return Ok(&begun[..begun.len() - self.0.len()]);
                };
                if self.takes(b",") {
                    break if *close == b'}' {
                        self.key()?
                    };
                }
                self.sign(*close)?;
                open.pop();
            }
        }
    }

    /// Reads the opening bracket of an array or object. Returns false, and reads the closing one,
    /// if it is empty.
    fn opens(&mut self, begin: &[u8], end: &[u8; 1], open: &mut Vec<u8>) -> Result<bool> {
        if open.len() == DEEPEST {
            return Err(Malformed);
        }
        self.takes(begin);
        if self.takes(end) {
            return Ok(false);
        }
        open.push(end[0]);
        Ok(true)
    }

    fn key(&mut self) -> Result<()> {
        self.string()?;
        self.sign(b':')
    }

    /// Reads an array. `item` gets the index and reads the item.
    pub fn array<E: From<Malformed>>(
        &mut self,
        mut item: impl FnMut(&mut Self, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        self.sign(b'[')?;
        if self.takes(b"]") {
            return Ok(());
        }
        for index in 0.. {
            item(self, index)?;
            if !self.takes(b",") {
                break;
            }
        }
        Ok(self.sign(b']')?)
    }

    /// Reads an object. `member` gets the name and reads the value.
    pub fn object<E: From<Malformed>>(
        &mut self,
        mut member: impl FnMut(&mut Self, Cow<'a, [u8]>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.sign(b'{')?;
        if self.takes(b"}") {
            return Ok(());
        }
        loop {
            let name = self.string()?;
            self.sign(b':')?;
            member(self, name)?;
            if !self.takes(b",") {
                return Ok(self.sign(b'}')?);
            }
        }
    }

    /// Fails unless only white space is left.
    pub fn end(&self) -> Result<()> {
        if self.after_space().is_empty() { Ok(()) } else { Err(Malformed) }
    }

    #[inline]
    fn after_space(&self) -> &'a [u8] {
        match self.0.first() {
            Some(first) if is_space(*first) => {
                let count = self.0.iter().take_while(|byte| is_space(**byte)).count();
                &self.0[count..]
            }
            _ => self.0,
        }
    }
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// The number of bytes searched for the end of a short string. An EVM word in hex has 66
/// characters.
const SHORT: usize = 72;

/// The number of characters before the first that is a quote, a backslash, a control character or
/// not ASCII.
#[inline]
fn plain_length(text: &[u8]) -> usize {
    let (eights, _) = text[..text.len().min(SHORT)].as_chunks();
    let mut at = 0;
    for eight in eights {
        let odd = odd_bytes(u64::from_le_bytes(*eight));
        if odd != 0 {
            return at + odd.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let is_odd = |byte: &u8| !matches!(byte, b' '..=0x7f) | matches!(byte, b'"' | b'\\');
    // Blocks are compared without an early exit, so that the loop is vectorized: longer strings are
    // mostly much longer.
    let is_plain = |block: &&[u8; 32]| !block.iter().fold(false, |odd, byte| odd | is_odd(byte));
    let (blocks, _) = text[at..].as_chunks();
    at += 32 * blocks.iter().take_while(is_plain).count();
    at + text[at..].iter().position(is_odd).unwrap_or(text.len() - at)
}

/// The lowest bit set is the high bit of the first byte that is not plain. Higher bits may be set
/// by a borrow and are meaningless.
fn odd_bytes(eight: u64) -> u64 {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    let below = |word: u64, least: u8| word.wrapping_sub(EACH * u64::from(least)) & !word;
    let equal = |byte: u8| below(eight ^ (EACH * u64::from(byte)), 1);
    (below(eight, b' ') | equal(b'"') | equal(b'\\') | eight) & (EACH * 0x80)
}

/// Validates the text of a string without escapes.
fn checked(text: &[u8]) -> Result<&[u8]> {
    let is_text = text.iter().all(|byte| *byte >= b' ') && std::str::from_utf8(text).is_ok();
    if is_text { Ok(text) } else { Err(Malformed) }
}

/// The length of an escape, including the second half of a surrogate pair, and its character.
pub(super) fn escape(text: &[u8]) -> Result<(usize, char)> {
    let sign = match text.get(1) {
        Some(sign @ (b'"' | b'\\' | b'/')) => char::from(*sign),
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => {
            let first = code_unit(text).ok_or(Malformed)?;
            let second = code_unit(text.get(6..).unwrap_or_default());
            return match (first, second) {
                (0xd800..0xdc00, Some(second @ 0xdc00..0xe000)) => {
                    let sign = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                    Ok((12, char::from_u32(sign).ok_or(Malformed)?))
                }
                _ => Ok((6, char::from_u32(first).ok_or(Malformed)?)),
            };
        }
        _ => return Err(Malformed),
    };
    Ok((2, sign))
}

/// The code unit of a `\u` escape.
fn code_unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |unit, digit| Some(unit * 16 + char::from(*digit).to_digit(16)?))
}

/// The length of a number.
pub(super) fn number(text: &[u8]) -> Result<usize> {
    let digits = |at: usize| text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let some = |count: usize| if count == 0 { Err(Malformed) } else { Ok(count) };
    let mut at = usize::from(text.first() == Some(&b'-'));
    let whole = some(digits(at))?;
    if whole > 1 && text[at] == b'0' {
        return Err(Malformed);
    }
    at += whole;
    if text.get(at) == Some(&b'.') {
        at += 1 + some(digits(at + 1))?;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        at += 1;
        at += usize::from(matches!(text.get(at), Some(b'+' | b'-')));
        at += some(digits(at))?;
    }
    Ok(at)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Malformed texts, one per kind of error.
    pub(in crate::params) const NO_JSON: &[&str] = &[
        "[1,]",
        "[,1]",
        "[1 2]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{1:2}",
        "[01]",
        "[1.]",
        "[-]",
        "[1e]",
        "[tru]",
        "[\"\\x\"]",
        "[\"\\u12g4\"]",
        "[\"\n\"]",
        "[}",
        "{]",
        "[[1]",
        "[\"a]",
        "[]]",
        "[] x",
        "[[[{\"a\":[nul]}]]]",
        "[\"\\",
        "[\"\\u00\"]",
        "[é]",
        "[",
        "{ ",
        "[\"\\ud800\"]",
        "[\"\\udc00\"]",
        "[\"\\ud800\\ud800\"]",
        "[\"\\ud800x\"]",
    ];

    fn is_json(text: &str) -> bool {
        let mut reader = Text::new(text.as_bytes());
        reader.skip().is_ok_and(|value| value == text.trim().as_bytes()) && reader.end().is_ok()
    }

    #[test]
    fn a_value_is_passed_over_whole() {
        let texts = [
            r#" { "a" : [1, {"x":[]}] ,"\u00e9\"":"b\\", "ü":-1.5e+3 ,"\ud83d\ude00":{} } "#,
            "[true,null , \"\",[[]],false]",
            "[]",
            "{}",
            "0",
            "-0.5E-2",
            "\"\u{7f}\"",
        ];
        for text in texts {
            assert!(is_json(text), "{text}");
        }
    }

    #[test]
    fn what_is_no_json_is_refused_wherever_it_lies() {
        for text in NO_JSON.iter().chain(&[""]) {
            assert!(!is_json(text), "{text}");
        }
        assert_eq!(Text::new(b"\"\xff\"").skip(), Err(Malformed));
    }

    #[test]
    fn a_string_is_plain_up_to_its_first_odd_character() {
        let is_odd = |byte: &u8| *byte < b' ' || *byte > 0x7f || matches!(byte, b'"' | b'\\');
        for byte in 0..=u8::MAX {
            // Followed by bytes that a borrow could mark by mistake, or hide.
            for after in [b'0', b' ', b'!', b'#', b'[', b']', 0x7f, byte] {
                for length in 0..2 * SHORT {
                    let mut text = vec![b'f'; length];
                    text.extend([byte, after, after]);
                    let expected = text.iter().position(is_odd).unwrap_or(text.len());
                    assert_eq!(plain_length(&text), expected, "{byte} {after} {length}");
                }
            }
        }
    }

    #[test]
    fn depth_ends_somewhere() {
        let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(is_json(&deep(DEEPEST)));
        assert!(!is_json(&deep(DEEPEST + 1)));
    }

    #[test]
    fn escapes_are_resolved() {
        let string = |text: &str| Text::new(text.as_bytes()).string().map(Cow::into_owned);
        assert_eq!(string(r#""\u0074\n\"é\ud83d\ude00/""#), Ok("t\n\"é😀/".as_bytes().to_vec()));
        assert_eq!(string(r#""plain""#), Ok(b"plain".to_vec()));
        assert_eq!(Text::new(br#""\u0074o""#).plain_string(), Err(Malformed));
    }
}
