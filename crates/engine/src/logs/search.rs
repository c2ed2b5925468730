//! Searches the index for the blocks of a range that may contain matching logs.
//!
//! In each section, the offsets of the terms of a clause are united, and the results of all clauses
//! intersected until none are left. The search can be interrupted after any look-up.

#[cfg(test)]
mod tests;

use super::filter::LogFilter;
use super::index::Term;

/// Consecutive sections of the same size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The key prefix of their rows, before the number of the first block.
    pub prefix: Vec<u8>,
    /// The number of blocks in a section, at least one.
    pub size: u16,
    /// The first block of the first section.
    pub first: u64,
    /// The block after the last section.
    pub stop: u64,
}

#[derive(Debug)]
pub struct Search {
    clauses: Vec<Vec<Term>>,
    runs: Vec<Run>,
    /// The range of blocks to search, `stop` excluded.
    first: u64,
    stop: u64,
    /// The current position: run, section, clause and term.
    run: usize,
    section: u64,
    clause: usize,
    term: usize,
    /// Bitmaps of offsets: those that match all clauses so far, and the terms so far of the current
    /// one.
    all: Vec<u8>,
    either: Vec<u8>,
}

/// The next look-up in the index.
#[derive(Debug)]
pub struct LookUp {
    pub prefix: Vec<u8>,
    pub term: Term,
}

impl Search {
    pub fn new(filter: &LogFilter, runs: Vec<Run>, first: u64, stop: u64) -> Self {
        let runs: Vec<Run> = runs.into_iter().filter(|run| run.first < run.stop).collect();
        let mut made = Self {
            clauses: filter.clauses(),
            runs,
            first,
            stop,
            run: 0,
            section: 0,
            clause: 0,
            term: 0,
            all: Vec::new(),
            either: Vec::new(),
        };
        made.section = made.runs.first().map_or(0, |run| run.first);
        made.begin_section();
        made
    }

    /// The first block that is not searched yet, `None` at the end.
    pub fn reached(&self) -> Option<u64> {
        self.runs.get(self.run).map(|_| self.section.max(self.first))
    }

    /// The next look-up, `None` at the end.
    pub fn next(&self) -> Option<LookUp> {
        let run = self.runs.get(self.run)?;
        let term = *self.clauses.get(self.clause)?.get(self.term)?;
        Some(LookUp { prefix: [&run.prefix[..], &self.section.to_be_bytes()].concat(), term })
    }

    /// Records that the block at this offset has the term.
    pub fn found(&mut self, place: u16) {
        if let Some(byte) = self.either.get_mut(usize::from(place / 8)) {
            *byte |= 1 << (place % 8);
        }
    }

    /// Continues with the next term. When a section is complete, adds its matching blocks.
    pub fn advance(&mut self, blocks: &mut Vec<u64>) {
        self.term += 1;
        if self.clauses.get(self.clause).is_some_and(|clause| self.term < clause.len()) {
            return;
        }
        self.all.iter_mut().zip(&mut self.either).for_each(|(all, either)| {
            *all &= *either;
            *either = 0;
        });
        self.term = 0;
        self.clause += 1;
        if self.clause < self.clauses.len() && self.all.iter().any(|byte| *byte != 0) {
            return;
        }
        self.add_blocks(blocks);
        self.end_section();
    }

    fn add_blocks(&self, blocks: &mut Vec<u64>) {
        for (byte, at) in self.all.iter().zip((0_u64..).step_by(8)) {
            let mut left = *byte;
            while left != 0 {
                let place = at + u64::from(left.trailing_zeros());
                let block = self.section.saturating_add(place);
                if (self.first..self.stop).contains(&block) {
                    blocks.push(block);
                }
                left &= left - 1;
            }
        }
    }

    fn end_section(&mut self) {
        let Some(run) = self.runs.get(self.run) else { return };
        self.section = self.section.saturating_add(u64::from(run.size.max(1)));
        if self.section >= run.stop {
            self.run += 1;
            self.section = self.runs.get(self.run).map_or(self.section, |run| run.first);
        }
        self.begin_section();
    }

    fn begin_section(&mut self) {
        let bytes = self.runs.get(self.run).map_or(0, |run| usize::from(run.size).div_ceil(8));
        self.clause = 0;
        self.all.clear();
        self.all.resize(bytes, u8::MAX);
        self.either.clear();
        self.either.resize(bytes, 0);
    }
}
