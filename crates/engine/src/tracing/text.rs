//! The growing text of traces, in chunks and bounded.
//!
//! Chunks are not copied again, so a text of a hundred megabytes is held in memory only once.
//! Memory of recorders counts as well, and all traces of a process together have a limit (`Held`).

use std::sync::atomic::{AtomicUsize, Ordering};

/// The size at which a chunk is closed.
pub(super) const CHUNK: usize = 128 * 1024;
/// Maximum bytes held by all traces of the process.
pub(super) const MOST_HELD: usize = 256 << 20;

static HELD: AtomicUsize = AtomicUsize::new(0);

/// The bytes held by one trace; part of the process-wide total until dropped.
#[derive(Debug, Default)]
pub(crate) struct Held(usize);

impl Held {
    /// Returns true if all traces together are within their limit.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.0);
        self.0 += more;
        HELD.fetch_add(more, Ordering::Relaxed) + more <= MOST_HELD
    }

    fn shrink_by(&mut self, bytes: usize) {
        let less = bytes.min(self.0);
        self.0 -= less;
        HELD.fetch_sub(less, Ordering::Relaxed);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.fetch_sub(self.0, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
pub struct Text {
    chunks: Vec<Vec<u8>>,
    open: Vec<u8>,
    /// The total size of the closed chunks.
    closed: usize,
    limit: usize,
    held: Held,
    /// All traces of the process together exceed their limit.
    crowded: bool,
}

impl Text {
    pub fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    pub fn len(&self) -> usize {
        self.closed + self.open.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The number of bytes that may still be added.
    pub fn room(&self) -> usize {
        self.limit.saturating_sub(self.len())
    }

    pub fn is_crowded(&self) -> bool {
        self.crowded
    }

    pub fn is_over(&self) -> bool {
        self.len() > self.limit
    }

    /// The buffer to write to. A full chunk is closed first, so bytes written to one buffer stay
    /// contiguous.
    pub fn out(&mut self) -> &mut Vec<u8> {
        if self.open.len() >= CHUNK {
            let chunk = std::mem::take(&mut self.open);
            self.closed += chunk.len();
            self.chunks.push(chunk);
            self.crowded |= !self.held.grow_to(self.closed);
        }
        &mut self.open
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.out().extend_from_slice(bytes);
    }

    pub fn into_chunks(mut self) -> Chunks {
        let mut chunks = std::mem::take(&mut self.chunks);
        if !self.open.is_empty() {
            chunks.push(std::mem::take(&mut self.open));
        }
        Chunks { chunks: chunks.into_iter(), held: self.held }
    }
}

/// The chunks of a text. Each counts towards the process-wide total until it is taken.
#[derive(Debug)]
pub struct Chunks {
    chunks: std::vec::IntoIter<Vec<u8>>,
    held: Held,
}

impl Iterator for Chunks {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let chunk = self.chunks.next()?;
        self.held.shrink_by(chunk.len());
        Some(chunk)
    }
}

/// Writes a decimal number.
pub(crate) fn decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal() {
        let mut out = Vec::new();
        for number in [0, 7, 10, u64::MAX] {
            decimal(&mut out, number);
            out.push(b' ');
        }
        let text = String::from_utf8(out).expect("UTF-8");
        assert_eq!(text, "0 7 10 18446744073709551615 ");
    }

    #[test]
    fn a_text_keeps_its_order_over_chunks_and_knows_its_length() {
        let mut text = Text::new(3 * CHUNK);
        for _ in 0..5 {
            text.push(&vec![b'x'; CHUNK / 2 + 1]);
        }
        assert_eq!(text.len(), 5 * (CHUNK / 2 + 1));
        assert!(!text.is_over());
        text.push(&vec![b'y'; CHUNK]);
        assert!(text.is_over());
        let mut chunks = text.into_chunks();
        let held = chunks.held.0;
        assert!(held >= CHUNK, "it counts until it is taken");
        let first = chunks.next().unwrap();
        assert_eq!(chunks.held.0, held - first.len());
        let rest: Vec<_> = chunks.collect();
        assert_eq!(rest.concat().last(), Some(&b'y'));
    }
}
