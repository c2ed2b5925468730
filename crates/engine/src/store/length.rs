//! Checks that the file of a store is not truncated, before LMDB maps it.
//!
//! LMDB reads pages through its map, and access to a mapped page that is not in the file kills the
//! process (SIGBUS). The file may be shorter than its meta page says only if the missing pages are
//! in the list of free pages. Everything here is read without a map.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::error::{Error, Result};

const MAGIC: u64 = 0xbeef_c0de;
const PAGE_HEADER: usize = 16;
const META_BYTES: usize = 136;
const LEAF: u64 = 2;
const BIG_DATA: u64 = 1;
const DEEPEST: usize = 32;

/// # Errors
///
/// `StoreDamaged` if the file is truncated. LMDB reports other damage.
pub(super) fn check(folder: &Path) -> Result<()> {
    let Ok(file) = File::open(folder.join("data.mdb")) else { return Ok(()) };
    while let Some(meta) = Meta::newest(&file) {
        // Read after the meta page, because the file grows before its meta page changes.
        let pages = file.metadata().map_or(0, |it| it.len()) / meta.page_size;
        let missing = pages..meta.last_page + 1;
        if missing.is_empty() || FreePages::read(&file, &meta, pages) == Some(missing.collect()) {
            return Ok(());
        }
        if Meta::newest(&file).is_some_and(|now| now.transaction == meta.transaction) {
            let all = meta.last_page + 1;
            return Err(Error::StoreDamaged(format!(
                "data.mdb was cut off: it has {pages} of {all} pages"
            )));
        }
    }
    Ok(())
}

struct Meta {
    page_size: u64,
    free_root: u64,
    last_page: u64,
    transaction: u64,
}

impl Meta {
    fn newest(file: &File) -> Option<Self> {
        let first = Self::read(file, 0)?;
        let second = Self::read(file, first.page_size);
        Some(match second {
            Some(second) if second.transaction > first.transaction => second,
            _ => first,
        })
    }

    fn read(file: &File, at: u64) -> Option<Self> {
        let mut meta = [0; META_BYTES];
        file.read_exact_at(&mut meta, at + PAGE_HEADER as u64).ok()?;
        let page_size = number(&meta, 24, 4)?;
        let is_meta = number(&meta, 0, 4) == Some(MAGIC) && page_size.is_power_of_two();
        is_meta.then_some(Self {
            page_size,
            free_root: number(&meta, 64, 8)?,
            last_page: number(&meta, 120, 8)?,
            transaction: number(&meta, 128, 8)?,
        })
    }
}

/// The free pages of one commit at or above page `pages`.
struct FreePages<'a> {
    file: &'a File,
    page_size: usize,
    pages: u64,
    found: BTreeSet<u64>,
}

impl<'a> FreePages<'a> {
    /// `None` if the file has no readable list of free pages.
    fn read(file: &'a File, meta: &Meta, pages: u64) -> Option<BTreeSet<u64>> {
        let page_size = usize::try_from(meta.page_size).ok()?;
        let mut free = Self { file, page_size, pages, found: BTreeSet::new() };
        if meta.free_root != u64::MAX {
            free.walk(meta.free_root, DEEPEST)?;
        }
        Some(free.found)
    }

    fn walk(&mut self, page: u64, deepest: usize) -> Option<()> {
        let bytes = self.bytes(page, 0, self.page_size)?;
        let is_leaf = number(&bytes, 10, 2)? & LEAF != 0;
        let entries = (number(&bytes, 12, 2)? as usize).checked_sub(PAGE_HEADER)? / 2;
        for entry in 0..entries {
            let node = number(&bytes, PAGE_HEADER + 2 * entry, 2)? as usize;
            let (low, flags) = (number(&bytes, node, 4)?, number(&bytes, node + 4, 2)?);
            if !is_leaf {
                self.walk(low | flags << 32, deepest.checked_sub(1)?)?;
                continue;
            }
            let (at, size) = (node + 8 + number(&bytes, node + 6, 2)? as usize, low as usize);
            if flags & BIG_DATA != 0 {
                let list = self.bytes(number(&bytes, at, 8)?, PAGE_HEADER, size)?;
                self.take(&list)?;
            } else {
                self.take(bytes.get(at..at.checked_add(size)?)?)?;
            }
        }
        Some(())
    }

    /// Adds the pages of a list: its length, then the page numbers.
    fn take(&mut self, list: &[u8]) -> Option<()> {
        for at in 1..=number(list, 0, 8)? as usize {
            let page = number(list, 8 * at, 8)?;
            if page >= self.pages {
                self.found.insert(page);
            }
        }
        Some(())
    }

    fn bytes(&self, page: u64, skip: usize, size: usize) -> Option<Vec<u8>> {
        let start = page.checked_mul(self.page_size as u64)?.checked_add(skip as u64)?;
        let mut bytes = vec![0; size];
        self.file.read_exact_at(&mut bytes, start).ok()?;
        Some(bytes)
    }
}

/// Reads a little-endian number. LMDB uses the byte order of the machine.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let mut wide = [0; 8];
    wide[..size].copy_from_slice(bytes.get(at..at.checked_add(size)?)?);
    Some(u64::from_le_bytes(wide))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Mode, Options, Store, test_folder};

    fn open(folder: &Path) -> Result<Store> {
        Store::open(folder, &Options { map_size: 1 << 26, ..Options::new(Mode::Write) })
    }

    fn made() -> tempfile::TempDir {
        let folder = test_folder();
        let store = open(folder.path()).unwrap();
        for round in 0..6_u8 {
            let put: Vec<_> = (0..200_u8).map(|key| ([key], vec![round; 3_000])).collect();
            let rows: Vec<_> = put.iter().map(|(key, row)| (&key[..], &row[..])).collect();
            store.put_rows(&rows, &[]).unwrap();
        }
        store.close();
        folder
    }

    #[test]
    fn a_file_that_was_cut_off_anywhere_is_damaged() {
        let whole = made();
        let bytes = std::fs::read(whole.path().join("data.mdb")).unwrap();
        let cut = test_folder();
        let meta = Meta::newest(&File::open(whole.path().join("data.mdb")).unwrap()).unwrap();
        for pages in [2, 3, bytes.len() as u64 / meta.page_size / 2] {
            let length = (pages * meta.page_size) as usize;
            std::fs::write(cut.path().join("data.mdb"), &bytes[..length]).unwrap();
            for mode in [Mode::Read, Mode::Write] {
                let opened = Store::open(cut.path(), &Options::new(mode)).map(drop);
                assert!(matches!(opened, Err(Error::StoreDamaged(_))), "{pages} pages");
            }
        }
        open(whole.path()).unwrap();
    }

    #[test]
    fn pages_that_are_free_may_be_missing_at_the_end() {
        let folder = made();
        let path = folder.path().join("data.mdb");
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let meta = Meta::newest(&file).unwrap();
        let pages = file.metadata().unwrap().len() / meta.page_size;
        let free = FreePages::read(&file, &meta, 0).unwrap();
        assert!(!free.is_empty() && free.iter().all(|page| *page <= meta.last_page));
        let kept = (0..pages).rev().find(|page| !free.contains(page)).unwrap() + 1;
        file.set_len(kept * meta.page_size).unwrap();
        assert_eq!(check(folder.path()), Ok(()));
        file.set_len((kept - 1) * meta.page_size).unwrap();
        assert!(matches!(check(folder.path()), Err(Error::StoreDamaged(_))));
    }
}
