//! Deltas: the changes of one block so far, as sorted entries in rows of 16 kB.
//!
//! A delta is written once, under a number that is never reused, and read by binary search in the
//! memory map. Each row is a *chunk* that begins with an index of its entries. Its key is `number ‖
//! first entry key`, so LMDB's search finds the chunk and no list of chunks is needed. Rows of this
//! size need no long runs of free pages, and rewriting a whole delta costs a few contiguous pages
//! instead of one scattered page per entry.
//!
//! `entry` defines the entries.

use std::ops::Bound;

use heed::types::Bytes;
use heed::{AnyTls, Database, RoTxn, RwTxn};

use crate::error::{Error, Result};
use crate::store::entry::{self, Entries, Key};
use crate::store::lmdb;

pub type Table = Database<Bytes, Bytes>;

/// Four pages less LMDB's page header.
const CHUNK_BYTES: usize = 4 * 4096 - 16;

fn row_key(number: u64, entry_key: &[u8]) -> Key {
    Key::join(&number.to_be_bytes(), entry_key)
}

/// Writes `entries` as the delta `number`.
pub fn write(table: Table, txn: &mut RwTxn, number: u64, entries: &Entries) -> Result<()> {
    let mut writer = Writer::new(table, number);
    for (key, value) in entries {
        writer.push(txn, key, value)?;
    }
    writer.finish(txn)
}

/// Writes the delta `number`: the delta `earlier` with the entries `later` on top. Omits slots of
/// generations that `later` retires, because they are unreachable.
///
/// Equivalent to `write` of `entry::merge`, but does not decode the earlier delta into a map: a
/// commit happens every 200 ms, and the delta of a long block has thousands of entries.
pub fn write_merged(
    table: Table,
    txn: &mut RwTxn,
    number: u64,
    earlier: u64,
    later: &Entries,
) -> Result<()> {
    let retired = entry::retired_prefixes(later);
    let chunks = chunks(table, txn, earlier)?;
    let mut writer = Writer::new(table, number);
    let mut later = later.iter().peekable();
    let mut keys = Ascending::default();
    for chunk in &chunks {
        let chunk = Chunk::open(chunk)?;
        for position in 0..chunk.count {
            let (key, value) = chunk.entry(position)?;
            keys.check(key)?;
            while let Some((new_key, new_value)) = later.next_if(|(new, _)| new.as_slice() < key) {
                writer.push(txn, new_key, new_value)?;
            }
            let replaced = later.peek().is_some_and(|(new, _)| new.as_slice() == key);
            if !replaced && !entry::is_retired(&retired, key) {
                writer.push(txn, key, value)?;
            }
        }
    }
    for (key, value) in later {
        writer.push(txn, key, value)?;
    }
    writer.finish(txn)
}

fn chunks(table: Table, txn: &RwTxn, number: u64) -> Result<Vec<Vec<u8>>> {
    let rows = table.prefix_iter(txn, &number.to_be_bytes()).map_err(lmdb)?;
    rows.map(|row| row.map(|(_, chunk)| chunk.to_vec()).map_err(lmdb)).collect()
}

/// Fills chunks with entries in key order, and writes each chunk when it is full.
struct Writer {
    table: Table,
    number: u64,
    chunk: ChunkBuilder,
    first: Vec<u8>,
}

impl Writer {
    fn new(table: Table, number: u64) -> Self {
        Self { table, number, chunk: ChunkBuilder::default(), first: Vec::new() }
    }

    fn push(&mut self, txn: &mut RwTxn, key: &[u8], value: &[u8]) -> Result<()> {
        if !self.chunk.fits(key, value) {
            self.flush(txn)?;
        }
        if self.chunk.offsets.is_empty() {
            self.first = key.to_vec();
        }
        self.chunk.push(key, value);
        Ok(())
    }

    fn flush(&mut self, txn: &mut RwTxn) -> Result<()> {
        let chunk = std::mem::take(&mut self.chunk).finish();
        self.table.put(txn, &row_key(self.number, &self.first), &chunk).map_err(lmdb)
    }

    fn finish(mut self, txn: &mut RwTxn) -> Result<()> {
        if self.chunk.offsets.is_empty() { Ok(()) } else { self.flush(txn) }
    }
}

/// The value of one entry in the delta `number`, borrowed from the map.
pub fn get<'t>(
    table: Table,
    txn: &'t RoTxn<AnyTls>,
    number: u64,
    key: &[u8],
) -> Result<Option<&'t [u8]>> {
    let wanted = row_key(number, key);
    let Some((row, chunk)) = table.get_lower_than_or_equal_to(txn, &wanted).map_err(lmdb)? else {
        return Ok(None);
    };
    if !row.starts_with(&number.to_be_bytes()) {
        return Ok(None);
    }
    Chunk::open(chunk)?.find(key)
}

/// Calls `each` with every key of the delta `number`.
pub fn keys(
    table: Table,
    txn: &RoTxn<AnyTls>,
    number: u64,
    each: &mut dyn FnMut(&[u8]),
) -> Result<()> {
    for row in table.prefix_iter(txn, &number.to_be_bytes()).map_err(lmdb)? {
        let chunk = Chunk::open(row.map_err(lmdb)?.1)?;
        for position in 0..chunk.count {
            each(chunk.entry(position)?.0);
        }
    }
    Ok(())
}

/// Up to `limit` entries of the delta `number` whose keys begin with `prefix` and are at or after
/// `from`, in key order. Fewer than `limit` means that there are no more.
pub fn scan(
    table: Table,
    txn: &RoTxn<AnyTls>,
    number: u64,
    prefix: &[u8],
    from: &[u8],
    limit: usize,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    if from.len() > Key::CAPACITY - 8 {
        return Err(Error::StoreDamaged("a cursor is too long".into()));
    }
    let mut found = Vec::new();
    let wanted = row_key(number, from);
    let number = number.to_be_bytes();
    let start = match table.get_lower_than_or_equal_to(txn, &wanted).map_err(lmdb)? {
        Some((row, _)) if row.starts_with(&number) => row.to_vec(),
        _ => wanted.to_vec(),
    };
    let rows = (Bound::Included(&start[..]), Bound::Unbounded);
    let mut keys = Ascending::from(from);
    for row in table.range(txn, &rows).map_err(lmdb)? {
        let (key, chunk) = row.map_err(lmdb)?;
        let Some(first) = key.strip_prefix(&number) else { break };
        let chunk = Chunk::open(chunk)?;
        if chunk.entry(0)?.0 != first {
            return Err(disordered());
        }
        for position in chunk.first_from(from)?..chunk.count {
            let (key, value) = chunk.entry(position)?;
            keys.check(key)?;
            if found.len() == limit || !key.starts_with(prefix) {
                return Ok(found);
            }
            found.push((key.to_vec(), value.to_vec()));
        }
    }
    Ok(found)
}

/// All entries of the delta `number`.
pub fn read(table: Table, txn: &RoTxn<AnyTls>, number: u64) -> Result<Entries> {
    Ok(scan(table, txn, number, &[], &[], usize::MAX)?.into_iter().collect())
}

/// Checks that keys are well-formed and strictly ascending, so that a scan terminates and keys can
/// be parsed.
#[derive(Default)]
struct Ascending {
    last: Option<Vec<u8>>,
    from: Vec<u8>,
}

impl Ascending {
    /// The first key must be at or after `from`.
    fn from(from: &[u8]) -> Self {
        Self { last: None, from: from.to_vec() }
    }

    fn check(&mut self, key: &[u8]) -> Result<()> {
        entry::check_key(key)?;
        let ascends = match &self.last {
            Some(last) => last.as_slice() < key,
            None => self.from.as_slice() <= key,
        };
        if !ascends {
            return Err(disordered());
        }
        let last = self.last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        Ok(())
    }
}

/// Deletes up to `limit` rows of the delta `number`; true if none are left.
pub fn delete(table: Table, txn: &mut RwTxn, number: u64, limit: usize) -> Result<bool> {
    let prefix = number.to_be_bytes();
    let mut rows = Vec::new();
    for row in table.prefix_iter(txn, &prefix).map_err(lmdb)?.take(limit) {
        rows.push(row.map_err(lmdb)?.0.to_vec());
    }
    let all = rows.len() < limit;
    for row in rows {
        table.delete(txn, &row).map_err(lmdb)?;
    }
    Ok(all)
}

/// Layout: count, offsets of the entries relative to the end of the offsets (all u16,
/// little-endian), then for each entry the length of the key (1 byte), the key and the value.
#[derive(Default)]
struct ChunkBuilder {
    offsets: Vec<u16>,
    entries: Vec<u8>,
}

impl ChunkBuilder {
    fn fits(&self, key: &[u8], value: &[u8]) -> bool {
        let frame = 2 + 2 * (self.offsets.len() + 1);
        frame + self.entries.len() + 1 + key.len() + value.len() <= CHUNK_BYTES
    }

    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.offsets.push(self.entries.len() as u16);
        self.entries.push(key.len() as u8);
        self.entries.extend_from_slice(key);
        self.entries.extend_from_slice(value);
    }

    fn finish(self) -> Vec<u8> {
        let mut chunk = Vec::with_capacity(2 + 2 * self.offsets.len() + self.entries.len());
        chunk.extend_from_slice(&(self.offsets.len() as u16).to_le_bytes());
        for offset in self.offsets {
            chunk.extend_from_slice(&offset.to_le_bytes());
        }
        chunk.extend_from_slice(&self.entries);
        chunk
    }
}

struct Chunk<'t> {
    count: usize,
    offsets: &'t [u8],
    entries: &'t [u8],
}

impl<'t> Chunk<'t> {
    fn open(bytes: &'t [u8]) -> Result<Self> {
        let (count, rest) = bytes.split_first_chunk::<2>().ok_or_else(damaged)?;
        let count = usize::from(u16::from_le_bytes(*count));
        if count == 0 {
            return Err(damaged());
        }
        let (offsets, entries) = rest.split_at_checked(2 * count).ok_or_else(damaged)?;
        Ok(Self { count, offsets, entries })
    }

    fn offset(&self, position: usize) -> usize {
        let at = 2 * position;
        usize::from(u16::from_le_bytes([self.offsets[at], self.offsets[at + 1]]))
    }

    fn entry(&self, position: usize) -> Result<(&'t [u8], &'t [u8])> {
        let end = match position + 1 {
            next if next < self.count => self.offset(next),
            _ => self.entries.len(),
        };
        let entry = self.entries.get(self.offset(position)..end).ok_or_else(damaged)?;
        let (&length, rest) = entry.split_first().ok_or_else(damaged)?;
        rest.split_at_checked(usize::from(length)).ok_or_else(damaged)
    }

    /// The position of the first entry whose key is at or after `wanted`.
    fn first_from(&self, wanted: &[u8]) -> Result<usize> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = (low + high) / 2;
            if self.entry(middle)?.0 < wanted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    fn find(&self, wanted: &[u8]) -> Result<Option<&'t [u8]>> {
        let position = self.first_from(wanted)?;
        if position == self.count {
            return Ok(None);
        }
        let (key, value) = self.entry(position)?;
        Ok((key == wanted).then_some(value))
    }
}

/// Reads all entries of a chunk, and searches for each key.
#[cfg(any(test, feature = "fuzzing"))]
pub fn try_chunk(bytes: &[u8]) -> Result<()> {
    let chunk = Chunk::open(bytes)?;
    for position in 0..chunk.count {
        let (key, _) = chunk.entry(position)?;
        chunk.find(key)?;
        chunk.find(&key[..key.len() / 2])?;
    }
    Ok(())
}

fn disordered() -> Error {
    Error::StoreDamaged("the entries of a delta are not in order".into())
}

fn damaged() -> Error {
    Error::StoreDamaged("a chunk of a delta is cut short".into())
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::*;
    use crate::store::entry::{ACCOUNT, INDEX};
    use crate::store::{Mode, Options, Store};

    /// Keys of few accounts and generations, so that some are replaced and retired.
    fn entries() -> impl Strategy<Value = Entries> {
        let key = prop_oneof![
            (0..4u8).prop_map(|address| [&b"a"[..], &[address; 20]].concat()),
            (0..4u8, 0..3u8).prop_map(|(address, generation)| {
                [&b"r"[..], &[address; 20], &[0; 7], &[generation]].concat()
            }),
            (0..4u8, 0..3u8, any::<u8>()).prop_map(|(address, generation, slot)| {
                [&b"s"[..], &[address; 20], &[0; 7], &[generation], &[slot; 32]].concat()
            }),
            vec(any::<u8>(), 1..100)
                .prop_map(|key| { [&b"i"[..], &[key.len() as u8], &key].concat() }),
        ];
        btree_map(key, vec(any::<u8>(), 0..600), 0..200)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn merging_in_place_is_merging(
            earlier in entries(),
            later in entries(),
            probes in vec(vec(any::<u8>(), 1..40), 10),
        ) {
            let folder = crate::store::test_folder();
            let options = Options { map_size: 1 << 24, ..Options::new(Mode::Write) };
            let store = Store::open(folder.path(), &options).unwrap();
            let expected = entry::merge(earlier.clone(), later.clone());
            store.with_deltas(|table, txn| {
                write(table, txn, 1, &earlier)?;
                write(table, txn, 3, &earlier)?;
                write_merged(table, txn, 2, 1, &later)?;
                assert_eq!(read(table, txn, 1)?, earlier);
                assert_eq!(read(table, txn, 2)?, expected);
                for (key, value) in &expected {
                    assert_eq!(get(table, txn, 2, key)?, Some(value.as_slice()));
                }
                for key in &probes {
                    assert_eq!(get(table, txn, 2, key)?, expected.get(key).map(Vec::as_slice));
                }
                assert!(delete(table, txn, 2, usize::MAX)?);
                assert!(read(table, txn, 2)?.is_empty());
                assert_eq!(read(table, txn, 3)?, earlier);
                Ok(())
            }).unwrap();
        }
    }

    fn chunk(keys: &[&[u8]]) -> Vec<u8> {
        let mut chunk = ChunkBuilder::default();
        keys.iter().for_each(|key| chunk.push(key, b"value"));
        chunk.finish()
    }

    const ONE: &[u8] = &[ACCOUNT; 21];
    const TWO: &[u8] = b"i\x03abc";

    /// The results of reading, scanning and merging a delta with this single row.
    fn of_row(first: &[u8], chunk: &[u8], from: &[u8]) -> [Result<()>; 3] {
        let folder = crate::store::test_folder();
        let options = Options { map_size: 1 << 20, ..Options::new(Mode::Write) };
        let store = Store::open(folder.path(), &options).unwrap();
        let mut said = [const { Ok(()) }; 3];
        let work = store.with_deltas(|table, txn| {
            table.put(txn, &[&1_u64.to_be_bytes()[..], first].concat(), chunk).unwrap();
            said = [
                get(table, txn, 1, TWO).map(drop),
                scan(table, txn, 1, &[], from, usize::MAX).map(drop),
                write_merged(table, txn, 2, 1, &Entries::new()),
            ];
            Ok(())
        });
        work.unwrap();
        said
    }

    #[test]
    fn a_walk_over_entries_that_nobody_wrote_is_damage() {
        assert_eq!(of_row(ONE, &chunk(&[ONE, TWO]), &[]), [const { Ok(()) }; 3]);
        let no_key: &[u8] = b"";
        for (first, keys) in [
            (no_key, &[no_key, ONE][..]),
            (TWO, &[TWO, ONE]),
            (ONE, &[ONE, ONE]),
            (ONE, &[ONE, b"s"]),
            (ONE, &[ONE, &[INDEX; 200]]),
        ] {
            let [_, walked, merged] = of_row(first, &chunk(keys), &[]);
            for said in [walked, merged] {
                assert!(matches!(said, Err(Error::StoreDamaged(_))), "{keys:?}: {said:?}");
            }
        }
        let elsewhere = of_row(TWO, &chunk(&[ONE, TWO]), &[]);
        assert!(matches!(elsewhere[1], Err(Error::StoreDamaged(_))));
        let far = of_row(ONE, &chunk(&[ONE, TWO]), &[b'a'; 300]);
        assert!(matches!(far[1], Err(Error::StoreDamaged(_))), "a cursor that is no key");
        for said in of_row(ONE, &[0, 0], &[]) {
            assert!(matches!(said, Err(Error::StoreDamaged(_))), "a chunk of nothing");
        }
    }

    #[test]
    fn a_row_whose_key_is_no_number_is_of_no_delta() {
        let folder = crate::store::test_folder();
        let options = Options { map_size: 1 << 20, ..Options::new(Mode::Write) };
        let store = Store::open(folder.path(), &options).unwrap();
        let work = store.with_deltas(|table, txn| {
            for key in [&[0][..], &[9; 3]] {
                table.put(txn, key, &[]).unwrap();
            }
            assert_eq!(get(table, txn, 1, ONE)?, None);
            assert_eq!(read(table, txn, 1)?, Entries::new());
            Ok(())
        });
        work.unwrap();
    }
}
