//! JSON as it is usually written, read in place.
//!
//! Every function moves on behind what it reads, and gives `None` for anything else, an
//! escape in a string included: who asked then reads the text in the ordinary way.

use memchr::memchr;

/// What is left of a text.
pub struct Text<'a>(&'a [u8]);

impl<'a> Text<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        Self(text)
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.0.len()
    }

    /// The next byte that is no white space.
    pub fn next(&self) -> Option<u8> {
        self.after_space().first().copied()
    }

    /// One sign of punctuation.
    pub fn sign(&mut self, sign: u8) -> Option<()> {
        self.0 = self.after_space().strip_prefix(&[sign])?;
        Some(())
    }

    /// A word such as null or true.
    pub fn word(&mut self, word: &[u8]) -> Option<()> {
        self.0 = self.after_space().strip_prefix(word)?;
        Some(())
    }

    /// A whole number without a sign, or a plain string with its quotes: as it is written.
    pub fn scalar(&mut self) -> Option<&'a [u8]> {
        let begun = self.after_space();
        if begun.first() == Some(&b'"') {
            self.plain_string()?;
        } else {
            let digits = begun.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 || (digits > 1 && begun[0] == b'0') {
                return None;
            }
            self.0 = &begun[digits..];
        }
        Some(&begun[..begun.len() - self.0.len()])
    }

    /// What stands between two quotes. An escape would stand there as it is written, which
    /// is nothing that anybody looks for.
    pub fn string(&mut self) -> Option<&'a [u8]> {
        let opened = self.after_space().strip_prefix(b"\"")?;
        let end = memchr(b'"', opened)?;
        self.0 = &opened[end + 1..];
        Some(&opened[..end])
    }

    /// The same, if it means what is written: visible ASCII without escapes.
    pub fn plain_string(&mut self) -> Option<&'a [u8]> {
        self.string()
            .filter(|text| text.iter().all(|byte| matches!(byte, b' '..=b'~') && *byte != b'\\'))
    }

    /// What `item` reads, again and again: between brackets or braces, with commas.
    pub fn list(
        &mut self,
        [open, close]: [u8; 2],
        mut item: impl FnMut(&mut Self) -> Option<()>,
    ) -> Option<()> {
        self.sign(open)?;
        if self.sign(close).is_some() {
            return Some(());
        }
        loop {
            item(self)?;
            if self.sign(b',').is_none() {
                return self.sign(close);
            }
        }
    }

    /// The members of an object; `member` is given the name and reads the value.
    pub fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, &'a [u8]) -> Option<()>,
    ) -> Option<()> {
        self.list(*b"{}", |text| {
            let name = text.plain_string()?;
            text.sign(b':')?;
            member(text, name)
        })
    }

    /// Nothing but white space is left.
    pub fn end(&self) -> Option<()> {
        self.after_space().is_empty().then_some(())
    }

    /// What follows the white space of JSON, RFC 8259.
    fn after_space(&self) -> &'a [u8] {
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        match self.0.first() {
            Some(first) if is_space(first) => {
                let count = self.0.iter().take_while(|byte| is_space(byte)).count();
                &self.0[count..]
            }
            _ => self.0,
        }
    }
}
