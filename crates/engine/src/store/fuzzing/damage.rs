//! A complete store with corrupted rows: everything is read, maintained and written.
//!
//! An input is a list of steps. Each corrupts one row: it changes a byte of the value, truncates,
//! extends or replaces the value, or changes the key. Every operation must then end, with success
//! or with an error about the store.

use std::path::Path;
use std::sync::Arc;

use alloy_primitives::{B256, U256};
use heed::RwTxn;

use super::is_about_the_store;
use super::sample::{self, ACCOUNTS, HEADERS, SECTION, SECTIONS, address, options};
use crate::error::{Error, Result};
use crate::logs::index::ENTRY;
use crate::logs::search::{Run, Search};
use crate::state::{Changes, StateReader};
use crate::store::check::Check;
use crate::store::delta::Table;
use crate::store::head_trie::root_of;
use crate::store::nodes::StoredNodes;
use crate::store::tables::Tables;
use crate::store::{BranchTrie, HeadTrie, Parent, Start, State, Store, View, lmdb};

/// Corrupts the store in `folder` according to `steps`, and runs every operation on it.
pub fn damaged(folder: &Path, steps: &[u8]) {
    let spoil = || -> Result<()> {
        let store = Store::open(folder, &options())?;
        store.write(|txn| Steps(steps).run(&store.tables, txn))
    };
    spoil().expect("a sound store");
    judge(use_all(folder));
}

fn judge(done: Result<()>) {
    match done {
        Ok(()) => {}
        Err(error) if is_about_the_store(&error) => {}
        Err(other) => panic!("{other:?}"),
    }
}

/// The remaining steps.
struct Steps<'s>(&'s [u8]);

impl<'s> Steps<'s> {
    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or_default()
    }

    fn take(&mut self, most: usize) -> &'s [u8] {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn run(&mut self, tables: &Tables, txn: &mut RwTxn) -> Result<()> {
        for _ in 0..8 {
            if self.0.is_empty() {
                break;
            }
            let table = table(tables, self.byte());
            let place = usize::from(self.byte());
            let what = self.byte();
            let mut rows = Vec::new();
            for row in table.iter(txn).map_err(lmdb)? {
                let (key, value) = row.map_err(lmdb)?;
                if !is_a_table(key) {
                    rows.push((key.to_vec(), value.to_vec()));
                }
            }
            let at = place % rows.len().max(1);
            let Some((key, value)) = rows.into_iter().nth(at) else { continue };
            self.spoil(table, txn, key, value, what)?;
        }
        Ok(())
    }

    fn spoil(
        &mut self,
        table: Table,
        txn: &mut RwTxn,
        mut key: Vec<u8>,
        mut value: Vec<u8>,
        what: u8,
    ) -> Result<()> {
        match what % 6 {
            0 => change(&mut value, self.byte(), self.byte()),
            1 => value.truncate(usize::from(self.byte())),
            2 => value = self.long(),
            3 => value.extend_from_slice(&self.long()),
            4 => {
                table.delete(txn, &key).map_err(lmdb)?;
                change(&mut key, self.byte(), self.byte());
            }
            _ => {
                table.delete(txn, &key).map_err(lmdb)?;
                key = self.long();
            }
        }
        if key.is_empty() || is_a_table(&key) {
            return Ok(());
        }
        table.put(txn, &key, &value).map_err(lmdb)
    }

    fn long(&mut self) -> Vec<u8> {
        let most = usize::from(self.byte());
        self.take(most).to_vec()
    }
}

/// True for the rows of LMDB's main table that list the other tables; they must not be changed.
fn is_a_table(key: &[u8]) -> bool {
    Tables::NAMES.iter().any(|name| name.as_bytes() == key)
}

fn change(bytes: &mut [u8], place: u8, to: u8) {
    let length = bytes.len().max(1);
    if let Some(byte) = bytes.get_mut(usize::from(place) % length) {
        *byte = to;
    }
}

/// Codes are omitted because they are not parsed here. Of Python's rows, only those of logs are
/// parsed.
fn table(tables: &Tables, choice: u8) -> Table {
    if choice >= 0xf0 {
        return tables.rows;
    }
    let all = [
        tables.meta,
        tables.deltas,
        tables.sealed,
        tables.nodes,
        tables.node_changes,
        tables.trash,
        tables.flat,
        tables.partials,
    ];
    all[usize::from(choice) % all.len()]
}

fn use_all(folder: &Path) -> Result<()> {
    let store = Arc::new(Store::open(folder, &options())?);
    judge(check_all(store.view()?));
    read_all(&store.view()?);
    read_logs(&store.view()?);
    judge(HeadTrie::open(store.clone()).and_then(|mut trie| trie.root()).map(drop));
    judge(write(&store));
    judge(maintain(&store));
    read_all(&store.view()?);
    judge(rewind(&store));
    Ok(())
}

/// Runs a check with the roots of the damaged nodes. It reports damage and continues.
fn check_all(view: View) -> Result<()> {
    let root = |block| root_of(&StoredNodes::at(&view, block), None).unwrap_or_default();
    let check = Check::new(view.clone(), 0, (0..12).map(root).collect());
    Check::PARTS.into_iter().try_for_each(|part| check.run(part))
}

/// Searches and merges the log index, and reads blooms.
fn read_logs(view: &View) {
    let (filter, stop) = (sample::filter(), 2 * u64::from(SECTION));
    let run = Run { prefix: SECTIONS.to_vec(), size: SECTION, first: 0, stop };
    let mut search = Search::new(&filter, vec![run], 0, stop);
    for _ in 0..1_000 {
        if search.reached().is_none() {
            break;
        }
        match view.search_logs(&mut search, 1) {
            Ok(blocks) => assert!(blocks.iter().all(|block| *block < stop)),
            Err(error) => return judge(Err(error)),
        }
    }
    assert!(search.reached().is_none(), "a search does not end");
    let section = |number: u64| [SECTIONS, &number.to_be_bytes()].concat();
    let (first, second) = (section(0), section(u64::from(SECTION)));
    let sources = [(&first[..], 0), (&second[..], SECTION)];
    let mut from = [0; ENTRY];
    for _ in 0..1_000 {
        match view.merge_log_sections(&sources, &from, 1) {
            Ok((_, Some(next))) => {
                assert!(next > from, "no merger without progress");
                from = next;
            }
            Ok((_, None)) => break,
            Err(error) => return judge(Err(error)),
        }
    }
    judge(view.blocks_in_bloom(&filter, HEADERS, 0, stop).map(drop));
}

fn read_all(view: &View) {
    let latest = view.heads().latest.map_or(0, |latest| latest.number);
    let named = [view.heads().earliest, view.heads().folded];
    for block in named.into_iter().chain(latest.saturating_sub(2)..=latest) {
        judge(view.state(block).and_then(|state| read_state(&state)));
    }
    // The partial blocks of the sample were added last.
    let drawn = view.heads().commit;
    for number in drawn.saturating_sub(16)..=drawn {
        judge(view.partial(number).map(drop));
        judge(view.state_of_partial(number).and_then(|state| read_state(&state)));
    }
}

fn read_state(state: &State) -> Result<()> {
    for (address, account) in state.accounts(None, usize::MAX)? {
        state.slots(&address, account.generation, None, usize::MAX)?;
        state.storage(&address, account.generation, &U256::from(1))?;
    }
    for who in 0..ACCOUNTS {
        state.account(&address(who))?;
    }
    state.index(&8_u64.to_be_bytes())?;
    for number in 0..12 {
        state.block_hash(number)?;
    }
    let mut trie = BranchTrie::open(state)?;
    trie.storage_root(&address(0))?;
    trie.root().map(drop)
}

/// Adds partial blocks on top of the pending one, and a sealed block.
fn write(store: &Store) -> Result<()> {
    let view = store.view()?;
    if let Some(number) = view.heads().pending
        && let Some(partial) = view.partial(number)?
    {
        let below = match partial.start {
            Start::Sealed(_) => number,
            Start::Partial(below) => below,
        };
        for parent in [Parent::Partial(number), Parent::Stacked(below, B256::ZERO)] {
            let (block, index) = match parent {
                Parent::Partial(_) => (partial.block, partial.index.saturating_add(1)),
                _ => (partial.block, 0),
            };
            let mut batch = store.batch()?;
            let changes = Changes::default();
            batch.extend(block, index, B256::ZERO, parent, changes, Default::default());
            judge(store.commit(batch).map(drop));
        }
    }
    let latest = view.heads().latest.map_or(0, |latest| latest.number);
    let mut batch = store.batch()?;
    batch.append(latest.saturating_add(1), B256::ZERO, Changes::default(), Default::default());
    store.commit(batch).map(drop)
}

/// Maintenance must end.
fn maintain(store: &Store) -> Result<()> {
    for _ in 0..2_000 {
        if store.maintain(16)? == 0 {
            return Ok(());
        }
    }
    panic!("maintenance does not end");
}

fn rewind(store: &Store) -> Result<()> {
    let heads = store.view()?.heads().clone();
    let latest = heads.latest.ok_or(Error::UnknownBlock(0))?.number;
    let mut batch = store.batch()?;
    batch.rewind(latest.saturating_sub(2).max(heads.earliest));
    store.commit(batch)?;
    maintain(store)
}
