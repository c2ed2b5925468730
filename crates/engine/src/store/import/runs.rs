//! External sorting: sorted runs in files, merged when they are read.
//!
//! A record is a key and a value. A run stores it as the length of the key (1), the length of the
//! value (2, big-endian), the key and the value. Records with equal keys are adjacent, in no
//! defined order. A sorter whose records fit into its memory writes no file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::store::disk::is_full;

/// The maximum number of runs merged at once: each needs a file and a buffer.
const FAN_IN: usize = 64;
const BUFFER_BYTES: usize = 256 << 10;
const HEAD_BYTES: usize = 3;
/// Memory for sorting a record, in addition to its bytes.
const ENTRY_BYTES: usize = size_of::<u32>();

pub type Record = (Vec<u8>, Vec<u8>);

pub struct Sorter {
    folder: PathBuf,
    name: &'static str,
    /// The limit for records in memory, in bytes; below 4 GiB, so that an offset has 32 bits.
    limit: usize,
    memory: Memory,
    runs: Vec<PathBuf>,
    /// The number of files created so far.
    made: usize,
    records: u64,
}

/// Concatenated records, and the offset of each.
#[derive(Default)]
struct Memory {
    bytes: Vec<u8>,
    starts: Vec<u32>,
}

impl Memory {
    fn used(&self) -> usize {
        self.bytes.len() + ENTRY_BYTES * self.starts.len()
    }

    fn record(&self, start: u32) -> (&[u8], &[u8]) {
        let record = &self.bytes[start as usize..];
        let (key, value) = (usize::from(record[0]), value_length(record));
        record[HEAD_BYTES..HEAD_BYTES + key + value].split_at(key)
    }

    fn sort(&mut self) {
        let mut starts = std::mem::take(&mut self.starts);
        starts.sort_unstable_by(|one, other| self.record(*one).0.cmp(self.record(*other).0));
        self.starts = starts;
    }
}

impl Sorter {
    pub fn new(folder: &Path, name: &'static str, limit: usize) -> Self {
        let limit = limit.clamp(1 << 10, 2 << 30);
        let folder = folder.to_path_buf();
        Self {
            folder,
            name,
            limit,
            memory: Memory::default(),
            runs: Vec::new(),
            made: 0,
            records: 0,
        }
    }

    /// The number of records.
    pub fn len(&self) -> u64 {
        self.records
    }

    /// A key has at most 255 bytes, a value 65,535.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let too_long = |_| Error::invalid("a record is too long");
        let key_length = u8::try_from(key.len()).map_err(too_long)?;
        let value_length = u16::try_from(value.len()).map_err(too_long)?;
        let start = u32::try_from(self.memory.bytes.len()).map_err(too_long)?;
        self.memory.starts.push(start);
        self.memory.bytes.push(key_length);
        self.memory.bytes.extend_from_slice(&value_length.to_be_bytes());
        self.memory.bytes.extend_from_slice(key);
        self.memory.bytes.extend_from_slice(value);
        self.records += 1;
        if self.memory.used() >= self.limit { self.spill() } else { Ok(()) }
    }

    /// Returns all records in key order.
    pub fn finish(mut self) -> Result<Merged> {
        self.memory.sort();
        while self.runs.len() > FAN_IN {
            let first = self.runs.drain(..FAN_IN).collect();
            let mut merged = Merged::of_runs(first)?;
            let (path, mut run) = self.create()?;
            while let Some((key, value)) = merged.next()? {
                write_record(&mut run, &key, &value)?;
            }
            run.flush().map_err(|error| failed(&error))?;
            self.runs.push(path);
        }
        let mut merged = Merged::of_runs(self.runs)?;
        merged.add(Source::Memory { memory: self.memory, next: 0 })?;
        Ok(merged)
    }

    fn spill(&mut self) -> Result<()> {
        self.memory.sort();
        let (path, mut run) = self.create()?;
        for start in &self.memory.starts {
            let (key, value) = self.memory.record(*start);
            write_record(&mut run, key, value)?;
        }
        run.flush().map_err(|error| failed(&error))?;
        self.runs.push(path);
        self.memory.bytes.clear();
        self.memory.starts.clear();
        Ok(())
    }

    fn create(&mut self) -> Result<(PathBuf, BufWriter<File>)> {
        let path = self.folder.join(format!("{}-{}.run", self.name, self.made));
        self.made += 1;
        let file = File::create(&path).map_err(|error| failed(&error))?;
        Ok((path, BufWriter::with_capacity(BUFFER_BYTES, file)))
    }
}

/// Records in key order. Its runs are deleted when it is dropped.
pub struct Merged {
    sources: Vec<Source>,
    /// The next record of each source that has more.
    heads: BinaryHeap<Reverse<(Record, usize)>>,
    runs: Vec<PathBuf>,
}

enum Source {
    Memory { memory: Memory, next: usize },
    Run(BufReader<File>),
}

impl Merged {
    fn of_runs(runs: Vec<PathBuf>) -> Result<Self> {
        let mut merged = Self { sources: Vec::new(), heads: BinaryHeap::new(), runs };
        for place in 0..merged.runs.len() {
            let file = File::open(&merged.runs[place]).map_err(|error| failed(&error))?;
            merged.add(Source::Run(BufReader::with_capacity(BUFFER_BYTES, file)))?;
        }
        Ok(merged)
    }

    fn add(&mut self, mut source: Source) -> Result<()> {
        if let Some(record) = source.next()? {
            self.heads.push(Reverse((record, self.sources.len())));
        }
        self.sources.push(source);
        Ok(())
    }

    pub fn next(&mut self) -> Result<Option<Record>> {
        let Some(Reverse((record, place))) = self.heads.pop() else { return Ok(None) };
        if let Some(following) = self.sources[place].next()? {
            self.heads.push(Reverse((following, place)));
        }
        Ok(Some(record))
    }
}

impl Drop for Merged {
    fn drop(&mut self) {
        self.sources.clear();
        for run in &self.runs {
            // The caller removes the folder with any remaining files.
            let _ = std::fs::remove_file(run);
        }
    }
}

impl Source {
    fn next(&mut self) -> Result<Option<Record>> {
        match self {
            Self::Memory { memory, next } => {
                let Some(start) = memory.starts.get(*next) else { return Ok(None) };
                *next += 1;
                let (key, value) = memory.record(*start);
                Ok(Some((key.to_vec(), value.to_vec())))
            }
            Self::Run(file) => read_record(file).map_err(|error| failed(&error)),
        }
    }
}

fn value_length(record: &[u8]) -> usize {
    usize::from(u16::from_be_bytes([record[1], record[2]]))
}

fn write_record(run: &mut impl Write, key: &[u8], value: &[u8]) -> Result<()> {
    // `push` has checked both lengths.
    let [high, low] = (value.len() as u16).to_be_bytes();
    let parts = [&[key.len() as u8, high, low][..], key, value];
    parts.iter().try_for_each(|part| run.write_all(part)).map_err(|error| failed(&error))
}

fn read_record(run: &mut impl Read) -> std::io::Result<Option<Record>> {
    let mut head = [0; HEAD_BYTES];
    match run.read_exact(&mut head) {
        Err(end) if end.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let (mut key, mut value) = (vec![0; usize::from(head[0])], vec![0; value_length(&head)]);
    run.read_exact(&mut key)?;
    run.read_exact(&mut value)?;
    Ok(Some((key, value)))
}

/// Converts an I/O error of a run.
pub(super) fn failed(error: &std::io::Error) -> Error {
    if is_full(error) {
        return Error::DiskFull(error.to_string());
    }
    Error::Store(format!("a run of the import: {error}"))
}
