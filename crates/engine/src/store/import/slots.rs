//! Holds the slots of one account until its address is known: a dump may name it after them.
//!
//! Few slots are held in memory; more are written to an unlinked file, which is created once and
//! reused.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use alloy_primitives::U256;

use super::runs::failed;
use crate::error::Result;

const IN_MEMORY: usize = 1 << 18;
const WORD: usize = 32;

pub struct HeldSlots {
    folder: PathBuf,
    memory: Vec<(U256, U256)>,
    file: Option<File>,
    /// The number of slots in the file.
    written: usize,
}

impl HeldSlots {
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_path_buf(), memory: Vec::new(), file: None, written: 0 }
    }

    pub fn push(&mut self, slot: U256, value: U256) -> Result<()> {
        self.memory.push((slot, value));
        if self.memory.len() >= IN_MEMORY { self.spill() } else { Ok(()) }
    }

    /// Passes all slots to `take` and removes them.
    pub fn drain(&mut self, mut take: impl FnMut(U256, U256) -> Result<()>) -> Result<()> {
        if self.written > 0
            && let Some(file) = &mut self.file
        {
            file.rewind().map_err(|error| failed(&error))?;
            let mut source = BufReader::new(file);
            for _ in 0..self.written {
                let mut pair = [0; 2 * WORD];
                source.read_exact(&mut pair).map_err(|error| failed(&error))?;
                take(U256::from_be_slice(&pair[..WORD]), U256::from_be_slice(&pair[WORD..]))?;
            }
            source.get_mut().rewind().map_err(|error| failed(&error))?;
            self.written = 0;
        }
        self.memory.drain(..).try_for_each(|(slot, value)| take(slot, value))
    }

    fn spill(&mut self) -> Result<()> {
        if self.file.is_none() {
            self.file = Some(self.create().map_err(|error| failed(&error))?);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut out = BufWriter::new(file);
        for (slot, value) in self.memory.drain(..) {
            let pair = [slot.to_be_bytes::<WORD>(), value.to_be_bytes::<WORD>()].concat();
            out.write_all(&pair).map_err(|error| failed(&error))?;
            self.written += 1;
        }
        out.flush().map_err(|error| failed(&error))
    }

    fn create(&self) -> std::io::Result<File> {
        let path = self.folder.join("slots.held");
        let file =
            File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
        std::fs::remove_file(path)?;
        Ok(file)
    }
}
