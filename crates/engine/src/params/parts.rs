//! Incremental splitting of a JSON array or object into its direct parts.
//!
//! For bodies so long that they are parsed in several turns of an event loop. The parts are items,
//! or keys with their values; nested content is skipped. The text is validated against RFC 8259 on
//! the way, so a text that was split to its end is valid JSON. The caller must pass the same text
//! to every call.

use super::text::{DEEPEST, Malformed, escape, is_space, number};

/// The reason why a text is not a valid JSON array or object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Malformed,
    TooDeep,
}

impl From<Malformed> for Fault {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

/// Consecutive parts as a range of the text. Enclosed in brackets, the range is an array or object
/// of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Portion {
    pub count: usize,
    /// The offset of the first part, including its key if it has one.
    pub start: usize,
    /// The offset of the value of the last part.
    pub value: usize,
    pub end: usize,
}

/// The progress of splitting a text.
#[derive(Debug, Clone)]
pub struct Parts {
    at: usize,
    expected: Expected,
    /// The open containers; true for an object.
    open: Vec<bool>,
    /// The string being read: its start offset, and true if it is all ASCII so far.
    string: Option<(usize, bool)>,
    /// The start offsets of the part being read and of its value; 0 if it has not started.
    part: usize,
    value: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
    Nothing,
}

impl Parts {
    /// Starts at the opening bracket. `None` if the text is neither an array nor an object.
    pub fn of(text: &[u8]) -> Option<Self> {
        let at = text.iter().position(|byte| !is_space(*byte))?;
        let is_object = match text[at] {
            b'{' => true,
            b'[' => false,
            _ => return None,
        };
        Some(Self {
            at: at + 1,
            expected: if is_object { Expected::KeyOrEnd } else { Expected::ValueOrEnd },
            open: vec![is_object],
            string: None,
            part: 0,
            value: 0,
        })
    }

    /// True if the parts are members of an object. Only valid until the end of the text is read.
    pub fn is_object(&self) -> bool {
        self.open.first() == Some(&true)
    }

    /// True if the whole text was read.
    pub fn is_done(&self, text: &[u8]) -> bool {
        self.at == text.len() && self.expected == Expected::Nothing
    }

    /// Reads up to `bytes` more bytes and up to `parts` parts, and returns the completed parts. A
    /// part that began in an earlier call is returned alone, because it may be long. Other parts
    /// are shorter than `bytes`, except a number, which is always read in one call.
    ///
    /// # Errors
    ///
    /// A `Fault` at the first byte that is not valid JSON.
    pub fn take(&mut self, text: &[u8], bytes: usize, parts: usize) -> Result<Portion, Fault> {
        let until = self.at.saturating_add(bytes).min(text.len());
        let most = if self.part > 0 { 1 } else { parts };
        let mut found = Portion::default();
        while self.at < until && found.count < most {
            if self.string.is_some() {
                self.read_string(text, until)?;
            } else if is_space(text[self.at]) {
                self.at += 1;
            } else {
                self.read_token(text)?;
            }
            self.add_finished(&mut found);
        }
        let is_cut = self.at == text.len() && !self.is_done(text);
        if is_cut { Err(Fault::Malformed) } else { Ok(found) }
    }

    /// Adds the part that has just ended, if any.
    fn add_finished(&mut self, found: &mut Portion) {
        let is_between = self.open.len() == 1 && self.expected == Expected::CommaOrEnd;
        if !is_between || self.part == 0 {
            return;
        }
        let start = if found.count == 0 { self.part } else { found.start };
        let count = found.count + 1;
        *found = Portion { count, start, value: self.value, end: self.at };
        self.part = 0;
    }

    fn read_token(&mut self, text: &[u8]) -> Result<(), Fault> {
        let byte = text[self.at];
        match (self.expected, byte) {
            (Expected::ValueOrEnd, b']') | (Expected::KeyOrEnd, b'}') => self.close(),
            (Expected::Value | Expected::ValueOrEnd, _) => return self.begin_value(text),
            (Expected::Key | Expected::KeyOrEnd, b'"') => {
                if self.open.len() == 1 {
                    self.begin_part();
                }
                self.begin_string();
            }
            (Expected::Colon, b':') => self.go_on(1, Expected::Value),
            (Expected::CommaOrEnd, b',') => {
                let next = if self.in_object() { Expected::Key } else { Expected::Value };
                self.go_on(1, next);
            }
            (Expected::CommaOrEnd, b'}') if self.in_object() => self.close(),
            (Expected::CommaOrEnd, b']') if !self.in_object() => self.close(),
            _ => return Err(Fault::Malformed),
        }
        Ok(())
    }

    fn begin_value(&mut self, text: &[u8]) -> Result<(), Fault> {
        if self.open.len() == 1 {
            self.value = self.at;
            self.begin_part();
        }
        let rest = &text[self.at..];
        match rest[0] {
            b'"' => {
                self.expected = Expected::Value;
                self.begin_string();
            }
            b'{' => self.open(true)?,
            b'[' => self.open(false)?,
            b't' if rest.starts_with(b"true") => self.go_on(4, Expected::CommaOrEnd),
            b'f' if rest.starts_with(b"false") => self.go_on(5, Expected::CommaOrEnd),
            b'n' if rest.starts_with(b"null") => self.go_on(4, Expected::CommaOrEnd),
            _ => self.go_on(number(rest)?, Expected::CommaOrEnd),
        }
        Ok(())
    }

    fn open(&mut self, is_object: bool) -> Result<(), Fault> {
        if self.open.len() == DEEPEST {
            return Err(Fault::TooDeep);
        }
        self.open.push(is_object);
        self.go_on(1, if is_object { Expected::KeyOrEnd } else { Expected::ValueOrEnd });
        Ok(())
    }

    fn close(&mut self) {
        self.open.pop();
        let next = if self.open.is_empty() { Expected::Nothing } else { Expected::CommaOrEnd };
        self.go_on(1, next);
    }

    fn begin_part(&mut self) {
        if self.part == 0 {
            self.part = self.at;
        }
    }

    fn begin_string(&mut self) {
        self.string = Some((self.at, true));
        self.at += 1;
    }

    /// Continues reading a string, which is a key or a value depending on `expected`.
    fn read_string(&mut self, text: &[u8], until: usize) -> Result<(), Fault> {
        let Some((begun, mut is_ascii)) = self.string else { return Ok(()) };
        while self.at < until {
            let byte = text[self.at];
            match byte {
                b'"' => {
                    self.at += 1;
                    self.string = None;
                    if !is_ascii && std::str::from_utf8(&text[begun..self.at]).is_err() {
                        return Err(Fault::Malformed);
                    }
                    let is_value = self.expected == Expected::Value;
                    self.expected = if is_value { Expected::CommaOrEnd } else { Expected::Colon };
                    return Ok(());
                }
                b'\\' => self.at += escape(&text[self.at..])?.0,
                0..0x20 => return Err(Fault::Malformed),
                _ => {
                    is_ascii &= byte.is_ascii();
                    self.at += 1;
                }
            }
        }
        self.string = Some((begun, is_ascii));
        Ok(())
    }

    fn in_object(&self) -> bool {
        self.open.last() == Some(&true)
    }

    fn go_on(&mut self, bytes: usize, expected: Expected) {
        self.at += bytes;
        self.expected = expected;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::text::tests::NO_JSON;

    /// The parts of a text, read in steps of `stretch` bytes and at most `most` parts.
    fn portions(text: &str, stretch: usize, most: usize) -> Result<Vec<(usize, &str)>, Fault> {
        let mut parts = Parts::of(text.as_bytes()).ok_or(Fault::Malformed)?;
        let mut found = Vec::new();
        while !parts.is_done(text.as_bytes()) {
            let portion = parts.take(text.as_bytes(), stretch, most)?;
            if portion.count > 0 {
                found.push((portion.count, &text[portion.start..portion.end]));
            }
        }
        Ok(found)
    }

    #[test]
    fn parts_do_not_depend_on_where_reading_paused() {
        let text = r#" { "a" : [1, {"x":[]}] ,"\u00e9\"":"b\\", "ü":-1.5e+3 ,"\ud83d\ude00":{} } "#;
        let members = [
            r#""a" : [1, {"x":[]}]"#,
            r#""\u00e9\"":"b\\""#,
            r#""ü":-1.5e+3"#,
            r#""\ud83d\ude00":{}"#,
        ];
        let expected: Vec<_> = members.iter().map(|member| (1, *member)).collect();
        for stretch in 1..text.len() + 1 {
            assert_eq!(portions(text, stretch, 1).as_ref(), Ok(&expected), "{stretch}");
        }
        assert_eq!(
            portions("[true,null , \"\",[[]]]", 99, 99),
            Ok(vec![(4, "true,null , \"\",[[]]")])
        );
        assert_eq!(portions("[]", 1, 1), Ok(vec![]));
    }

    #[test]
    fn a_part_that_is_longer_than_a_stretch_comes_alone() {
        let text = r#"{"a":1,"b":2,"c":"0123456789012345678901234567890123456789","d":3,"e":4}"#;
        let long = r#""c":"0123456789012345678901234567890123456789""#;
        let expected = vec![(2, r#""a":1,"b":2"#), (1, long), (2, r#""d":3,"e":4"#)];
        assert_eq!(portions(text, 20, 99), Ok(expected));
    }

    #[test]
    fn the_value_of_the_last_part_is_told() {
        let text = br#"{"a": 1, "b" : [2]}"#;
        let portion = Parts::of(text).unwrap().take(text, 99, 99).unwrap();
        assert_eq!(&text[portion.value..portion.end], b"[2]");
    }

    #[test]
    fn what_is_no_json_is_refused_wherever_it_lies() {
        for text in NO_JSON {
            for stretch in [1, 2, 100] {
                assert_eq!(portions(text, stretch, 99), Err(Fault::Malformed), "{text}");
            }
        }
        let invalid = b"[\"\xff\"]";
        assert_eq!(Parts::of(invalid).unwrap().take(invalid, 100, 9), Err(Fault::Malformed));
        assert!(Parts::of(b" 1").is_none());
    }

    #[test]
    fn depth_ends_somewhere() {
        let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(portions(&deep(DEEPEST), 64, 99).is_ok());
        assert_eq!(portions(&deep(DEEPEST + 1), 64, 99), Err(Fault::TooDeep));
    }
}
