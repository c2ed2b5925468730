//! Plain JSON, token by token. `None` is the end of it: nobody reads on after that.

/// What has not been read.
pub struct Scan<'b>(pub &'b [u8]);

/// Longer ids are not plain.
const LONGEST_ID: usize = 40;

impl<'b> Scan<'b> {
    pub fn space(&mut self) {
        while let [b' ' | b'\t' | b'\n' | b'\r', rest @ ..] = self.0 {
            self.0 = rest;
        }
    }

    pub fn begins_with(&self, byte: u8) -> bool {
        self.0.first() == Some(&byte)
    }

    pub fn word(&mut self, word: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(word)?;
        Some(())
    }

    /// Between quotes: visible ASCII without escapes, which is what it means as well.
    pub fn text(&mut self) -> Option<&'b [u8]> {
        self.word(b"\"")?;
        let end = self.0.iter().position(|&byte| !matches!(byte, b' '..=b'~') || byte == b'"')?;
        let (text, rest) = self.0.split_at(end);
        self.0 = rest;
        self.word(b"\"")?;
        (!text.contains(&b'\\')).then_some(text)
    }

    /// A whole number without a sign, or a text: as it stands, quotes included.
    pub fn id(&mut self) -> Option<&'b [u8]> {
        let begun = self.0;
        if self.begins_with(b'"') {
            self.text()?;
        } else {
            let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 || (digits > 1 && self.begins_with(b'0')) {
                return None;
            }
            self.0 = &self.0[digits..];
        }
        let id = &begun[..begun.len() - self.0.len()];
        (id.len() <= LONGEST_ID).then_some(id)
    }

    /// An array; `item` reads one, without the space around it.
    pub fn array(&mut self, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.between(b"[", b"]", |scan| item(scan))
    }

    /// An object; `member` is given the name and reads the value.
    pub fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, &'b [u8]) -> Option<()>,
    ) -> Option<()> {
        self.between(b"{", b"}", |scan| {
            let name = scan.text()?;
            scan.space();
            scan.word(b":")?;
            scan.space();
            member(scan, name)
        })
    }

    /// At least one of something, with commas between.
    fn between(
        &mut self,
        open: &[u8],
        close: &[u8],
        mut one: impl FnMut(&mut Self) -> Option<()>,
    ) -> Option<()> {
        self.word(open)?;
        loop {
            self.space();
            one(self)?;
            self.space();
            if self.word(close).is_some() {
                return Some(());
            }
            self.word(b",")?;
        }
    }
}
