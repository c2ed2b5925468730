//! A small store with a row of every kind.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};

use crate::error::Result;
use crate::logs::filter::LogFilter;
use crate::logs::index;
use crate::state::{AccountChange, AccountState, Changes};
use crate::store::{Batch, HeadTrie, Mode, Options, Parent, Retention, Store};

/// The number of accounts.
pub(super) const ACCOUNTS: u8 = 5;

/// Short retention, so that maintenance has work of every kind.
pub fn options() -> Options {
    let retention = Retention { states: Some(3), partials: 1, nodes: 1 };
    Options { map_size: 1 << 22, retention, ..Options::new(Mode::Write) }
}

/// Creates the store: sealed blocks, some folded, some rewound and not cleared yet, and live,
/// stacked and dropped partial blocks.
pub fn make(folder: &Path) -> Result<()> {
    let store = Arc::new(Store::open(folder, &options())?);
    let mut accounts = BTreeMap::new();
    let mut kept = BTreeMap::new();
    for block in 0..9 {
        kept = accounts.clone();
        append(&store, block, &mut accounts)?;
        if block == 3 {
            while store.maintain(40)? > 0 {}
        }
    }
    while store.maintain(10)? > 0 {}
    let mut batch = store.batch()?;
    batch.rewind(7);
    batch.safe(6);
    batch.finalized(6);
    batch.note(b"a note".to_vec());
    store.commit(batch)?;
    partials(&store, &mut kept.clone())?;
    append(&store, 8, &mut kept)?;
    store.maintain(2)?;
    Ok(())
}

type Accounts = BTreeMap<Address, AccountState>;

pub(super) fn address(who: u8) -> Address {
    Address::repeat_byte(who + 1)
}

fn append(store: &Arc<Store>, block: u64, accounts: &mut Accounts) -> Result<()> {
    let mut batch = store.batch()?;
    let changes = change(&mut batch, block as u8, accounts);
    let mut trie = HeadTrie::open(store.clone())?;
    trie.apply(&changes)?;
    let nodes = trie.take()?;
    batch.append(block, hash(block), changes, index(block));
    batch.nodes(block, Arc::new(nodes));
    store.commit(batch)?;
    Ok(())
}

fn partials(store: &Arc<Store>, accounts: &mut Accounts) -> Result<()> {
    let mut batch = store.batch()?;
    let changes = change(&mut batch, 20, accounts);
    let first = batch.extend(8, 0, hash(80), Parent::Sealed(7), changes, index(80));
    let changes = change(&mut batch, 21, accounts);
    let second = batch.extend(8, 1, hash(81), Parent::Partial(first), changes, index(81));
    let changes = change(&mut batch, 22, accounts);
    let parent = Parent::Stacked(second, hash(90));
    let stacked = batch.extend(9, 0, hash(82), parent, changes, index(82));
    let other = batch.extend(8, 0, hash(83), Parent::Sealed(7), Changes::default(), index(83));
    batch.drop_partials(vec![other], "another was sealed".into());
    batch.pending(Some(stacked));
    batch.put(b"row".to_vec(), b"of Python's".to_vec())?;
    logs(&mut batch)?;
    store.commit(batch)?;
    Ok(())
}

/// The key prefixes of sections of the log index and of headers.
pub(super) const SECTIONS: &[u8] = b"i";
pub(super) const HEADERS: &[u8] = b"H";
/// Blocks per section.
pub(super) const SECTION: u16 = 4;

/// A filter whose address is indexed for all blocks.
pub(super) fn filter() -> LogFilter {
    LogFilter::new(vec![address(0)], Vec::new())
}

/// Two sections of the index of logs, and headers with blooms.
fn logs(batch: &mut Batch) -> Result<()> {
    for section in [0, u64::from(SECTION)] {
        let terms = [index::ANY, index::term(0, address(0).as_slice()), index::term(1, &[7; 32])];
        let entries = terms.iter().flat_map(|it| (0..SECTION).map(|at| index::entry(*it, at)));
        for chunk in index::chunks(entries.collect()) {
            let first = &chunk[..index::ENTRY];
            batch.put([SECTIONS, &section.to_be_bytes(), first].concat(), chunk.clone())?;
        }
    }
    for number in 0..2 * u64::from(SECTION) {
        let fields =
            [vec![1_u8; 32], vec![2; 256]].map(|field| alloy_rlp::encode(Bytes::from(field)));
        let fields = [&fields[0].repeat(6)[..], &fields[1]].concat();
        let mut row = vec![0; 32];
        alloy_rlp::Header { list: true, payload_length: fields.len() }.encode(&mut row);
        row.extend_from_slice(&fields);
        batch.put([HEADERS, &number.to_be_bytes()].concat(), row)?;
    }
    Ok(())
}

fn hash(number: u64) -> B256 {
    keccak256(number.to_be_bytes())
}

fn index(number: u64) -> BTreeMap<Vec<u8>, Vec<u8>> {
    BTreeMap::from([(number.to_be_bytes().to_vec(), vec![number as u8; 9])])
}

/// Changes two accounts: one gets a balance and slots, one is destroyed and created again.
fn change(batch: &mut Batch, round: u8, accounts: &mut Accounts) -> Changes {
    let mut changes = Changes::default();
    let code = Bytes::from(vec![round; 3]);
    for (who, anew) in [(round % ACCOUNTS, round == 0), ((round + 2) % ACCOUNTS, true)] {
        let before = accounts.get(&address(who)).copied();
        let generation = match before {
            Some(account) if !anew => account.generation,
            _ => batch.draw(),
        };
        let code_hash = if anew { keccak256(&code) } else { AccountState::EMPTY.code_hash };
        let after = AccountState {
            nonce: u64::from(round),
            balance: U256::from(round) << 100,
            code_hash,
            generation,
        };
        let slots = (1..4).map(|slot| (U256::from(slot), U256::from(slot ^ round))).collect();
        changes.accounts.insert(address(who), AccountChange { before, after: Some(after), slots });
        accounts.insert(address(who), after);
    }
    if round % 4 == 3 && accounts.len() > 3 {
        let who = address((round + 1) % ACCOUNTS);
        let before = accounts.remove(&who);
        let ended = AccountChange { before, ..AccountChange::default() };
        changes.accounts.insert(who, ended);
    }
    changes.codes.insert(keccak256(&code), code);
    changes
}
