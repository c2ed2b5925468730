//! The journal of commands that were put off, as they are written.
//!
//! ```text
//! record     length (4) ‖ checksum (4) ‖ batch (8) ‖ command
//! command    MessagePack of [[name, field, …], result]
//! ```
//!
//! A batch is written over the one before. Nothing waits for the disk. It is read in Python, by
//! whoever begins where another was killed; names and fields are those of its commands.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
};

use super::{Command, Outcome};

const HEAD: usize = 8;

#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    end: u64,
    /// The record that is being written; kept for its memory.
    record: Vec<u8>,
}

impl Journal {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).mode(0o600).open(path)?;
        Ok(Self { file, end: 0, record: Vec::new() })
    }

    pub(super) fn begin(&mut self) {
        self.end = 0;
    }

    pub(super) fn add(&mut self, batch: u64, command: &[u8]) -> io::Result<()> {
        let record = &mut self.record;
        record.clear();
        record.extend_from_slice(&[0; HEAD]);
        record.extend_from_slice(&batch.to_be_bytes());
        record.extend_from_slice(command);
        let (length, checksum) = ((record.len() - HEAD) as u32, crc32fast::hash(&record[HEAD..]));
        record[..4].copy_from_slice(&length.to_be_bytes());
        record[4..HEAD].copy_from_slice(&checksum.to_be_bytes());
        self.file.write_all_at(record, self.end)?;
        self.end += record.len() as u64;
        Ok(())
    }
}

const NIL: u8 = 0xc0;
const BYTES: u8 = 0xc4;

/// A command, and what it gives that is not known from it.
pub(super) fn encode(command: &Command, outcome: Outcome, out: &mut Vec<u8>) {
    array(out, 2);
    match command {
        Command::SetBalance { address, balance } => {
            set_account(out, address.as_slice());
            bytes(out, balance.as_slice());
            out.extend_from_slice(&[NIL; 3]);
        }
        Command::SetSlot { address, slot, value } => {
            set_account(out, address.as_slice());
            out.extend_from_slice(&[NIL; 3]);
            out.push(0x81); // a map with one entry
            bytes(out, slot.as_slice());
            bytes(out, value.as_slice());
        }
        Command::TakeSnapshot => {
            array(out, 1);
            text(out, "TakeSnapshot");
        }
        Command::Revert { id } => {
            array(out, 2);
            text(out, "Revert");
            number(out, *id);
        }
    }
    match outcome {
        Outcome::Snapshot(id) => number(out, id),
        Outcome::Null | Outcome::True => out.push(NIL),
    }
}

/// An account of which balance, nonce, code and slots are set, or not.
fn set_account(out: &mut Vec<u8>, address: &[u8]) {
    array(out, 6);
    text(out, "SetAccount");
    bytes(out, address);
}

/// The head of an array of fewer than 16.
fn array(out: &mut Vec<u8>, length: u8) {
    out.push(0x90 | length);
}

/// A text of fewer than 32 bytes.
fn text(out: &mut Vec<u8>, text: &str) {
    out.push(0xa0 | text.len() as u8);
    out.extend_from_slice(text.as_bytes());
}

/// Fewer than 256 bytes.
fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&[BYTES, bytes.len() as u8]);
    out.extend_from_slice(bytes);
}

/// A number in as few bytes as hold it.
fn number(out: &mut Vec<u8>, number: u64) {
    let digits = number.to_be_bytes();
    match number {
        0..=0x7f => out.push(number as u8),
        0x80..=0xff => out.extend_from_slice(&[0xcc, number as u8]),
        0x100..=0xffff => {
            out.push(0xcd);
            out.extend_from_slice(&digits[6..]);
        }
        0x1_0000..=0xffff_ffff => {
            out.push(0xce);
            out.extend_from_slice(&digits[4..]);
        }
        _ => {
            out.push(0xcf);
            out.extend_from_slice(&digits);
        }
    }
}
