//! Commands of a dev chain that are put off, from the bytes of their requests.
//!
//! Their results are known before they are carried out. While a window is open, such a request is
//! written to the journal, kept for who carries it out, and answered. Who opens a window knows
//! that nothing looks at the chain before it is closed, and what may be put off. Whatever else a
//! body holds has no answer here, and the long way has: `requests` reads what is asked, `journal`
//! says what is written.

mod journal;
mod requests;

use std::{io, path::Path};

use journal::{Journal, encode};
pub use requests::{Command, NAMES, Named, read};

/// What may be put off until the window is closed.
#[derive(Debug, Default)]
pub struct Window {
    /// Of the commands in the journal that are carried out together.
    pub batch: u64,
    /// How many commands.
    pub commands: usize,
    /// How many of them may be snapshots.
    pub snapshots: usize,
    /// Whether they may set accounts.
    pub accounts: bool,
    pub next_snapshot: u64,
    /// Ids of the snapshots that wait.
    pub waiting: Vec<u64>,
}

/// The commands that were answered, in their order, and their journal.
#[derive(Debug)]
pub struct Queue {
    journal: Journal,
    window: Option<Window>,
    /// Header lines of answers.
    headers: Box<[u8]>,
    taken: Taken,
    /// The command that is being written; kept for its memory.
    record: Vec<u8>,
}

/// What a queue has answered.
#[derive(Debug, Default)]
pub struct Taken {
    /// As they are in the journal.
    pub commands: Vec<Box<[u8]>>,
    /// What they were called, each name with how often it came in a row.
    pub names: Vec<(Named, usize)>,
}

/// What a command gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Null,
    True,
    Snapshot(u64),
}

impl Window {
    /// What a command gives that may be put off.
    fn outcome(&self, command: &Command) -> Option<Outcome> {
        match command {
            _ if self.commands == 0 => None,
            Command::SetBalance { .. } => self.accounts.then_some(Outcome::Null),
            Command::SetSlot { .. } => self.accounts.then_some(Outcome::True),
            Command::TakeSnapshot => {
                (self.snapshots > 0).then_some(Outcome::Snapshot(self.next_snapshot))
            }
            Command::Revert { id } => self.waiting.contains(id).then_some(Outcome::True),
        }
    }

    /// A command was put off.
    fn take(&mut self, command: &Command) {
        self.commands -= 1;
        match command {
            Command::SetBalance { .. } | Command::SetSlot { .. } => {}
            Command::TakeSnapshot => {
                self.waiting.push(self.next_snapshot);
                self.next_snapshot += 1;
                self.snapshots -= 1;
            }
            Command::Revert { id } => {
                let kept = self.waiting.iter().take_while(|each| *each != id).count();
                self.snapshots += self.waiting.len() - kept;
                self.waiting.truncate(kept);
            }
        }
    }
}

impl Queue {
    /// A queue whose journal is this file, which is made where there is none.
    ///
    /// # Errors
    /// Where the file cannot be opened.
    pub fn new(path: &Path) -> io::Result<Self> {
        let (journal, taken, record) = (Journal::open(path)?, Taken::default(), Vec::new());
        Ok(Self { journal, window: None, headers: Box::default(), taken, record })
    }

    /// Writes a command that took the long way to the journal, as it is there.
    ///
    /// # Errors
    /// Where it is not written, or in part; the next one is written over it.
    pub fn add(&mut self, batch: u64, command: &[u8]) -> io::Result<()> {
        self.journal.add(batch, command)
    }

    /// The journal is begun anew: all that is in it is carried out.
    pub fn begin(&mut self) {
        self.window = None;
        self.journal.begin();
    }

    pub fn open(&mut self, window: Window) {
        self.window = Some(window);
    }

    pub fn close(&mut self) {
        self.window = None;
    }

    pub fn is_open(&self) -> bool {
        self.window.is_some()
    }

    /// How many commands were answered since the last were taken.
    pub fn count(&self) -> usize {
        self.taken.commands.len()
    }

    /// What was answered since the last call.
    pub fn take(&mut self) -> Taken {
        std::mem::take(&mut self.taken)
    }

    pub fn set_headers(&mut self, headers: &[u8]) {
        self.headers = headers.into();
    }

    pub fn headers(&self) -> &[u8] {
        &self.headers
    }

    /// Answers a body with one command that may be put off; gives by which name it was called.
    pub fn answer(&mut self, body: &[u8], out: &mut Vec<u8>) -> Option<Named> {
        let window = self.window.as_mut()?;
        let asked = read(body)?;
        let outcome = window.outcome(&asked.command)?;
        self.record.clear();
        encode(&asked.command, outcome, &mut self.record);
        self.journal.add(window.batch, &self.record).ok()?;
        window.take(&asked.command);
        self.taken.commands.push(self.record.as_slice().into());
        match self.taken.names.last_mut() {
            Some((name, times)) if *name == asked.named => *times += 1,
            _ => self.taken.names.push((asked.named, 1)),
        }
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        out.extend_from_slice(asked.id);
        out.extend_from_slice(b",\"result\":");
        match outcome {
            Outcome::Null => out.extend_from_slice(b"null"),
            Outcome::True => out.extend_from_slice(b"true"),
            Outcome::Snapshot(id) => out.extend_from_slice(format!("\"0x{id:x}\"").as_bytes()),
        }
        out.push(b'}');
        Some(asked.named)
    }
}

#[cfg(test)]
mod tests;
