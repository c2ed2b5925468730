//! A store filled from a dump equals one that is built from the accounts one by one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use alloy_primitives::{Address, B256, U256, hex};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::*;
use crate::state::{AccountChange, Changes, StateReader};
use crate::store::{HeadTrie, Mode, Options, test_folder};
use crate::trie::{EMPTY_ROOT_HASH, state_root::StateRoot};

const BLOCK: u64 = 1_000;

#[derive(Debug, Clone)]
struct Plain {
    nonce: u64,
    balance: u128,
    code: Vec<u8>,
    slots: BTreeMap<u64, u64>,
}

fn plain() -> impl Strategy<Value = Plain> {
    let code = prop_oneof![Just(vec![]), vec(any::<u8>(), 1..40)];
    (any::<u64>(), any::<u128>(), code, btree_map(0..40u64, 1..u64::MAX, 0..30))
        .prop_map(|(nonce, balance, code, slots)| Plain { nonce, balance, code, slots })
}

type State = BTreeMap<[u8; 20], Plain>;

fn changes(state: &State) -> Changes {
    let mut accounts = BTreeMap::new();
    for (address, plain) in state {
        let after = AccountState {
            nonce: plain.nonce,
            balance: U256::from(plain.balance),
            code_hash: keccak256(&plain.code),
            generation: GENERATION,
        };
        let slot = |(slot, value): (&u64, &u64)| (U256::from(*slot), U256::from(*value));
        let slots = plain.slots.iter().map(slot).collect();
        let change = AccountChange { after: Some(after), slots, ..Default::default() };
        accounts.insert(Address::from(*address), change);
    }
    Changes { accounts, ..Changes::default() }
}

fn root(state: &State) -> B256 {
    let mut trie = StateRoot::open(EMPTY_ROOT_HASH);
    let none = crate::trie::tests::Table::default();
    trie.apply(&changes(state), &none).unwrap();
    trie.root(&none).unwrap()
}

/// A dump with each account in one of the supported forms.
fn dump(state: &State, root: B256, order: &[usize]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (place, (address, plain)) in state.iter().enumerate() {
        let mut storage = String::new();
        for (slot, value) in &plain.slots {
            let comma = if storage.is_empty() { "" } else { "," };
            write!(storage, "{comma}\"{:#066x}\":\"{value:x}\"", slot).unwrap();
        }
        let (address, code) = (hex::encode(address), hex::encode(&plain.code));
        let Plain { nonce, balance, .. } = plain;
        lines.push(match place % 3 {
            0 => format!(
                "{{\"address\":\"0x{address}\",\"balance\":\"{balance:#x}\",\"nonce\":\"{nonce:#x}\",\
                 \"code\":\"0x{code}\",\"storage\":{{{storage}}}}}"
            ),
            1 => format!(
                " {{ \"nonce\" : {nonce} , \"storage\":{{{storage}}},\"code\":\"{code}\",\
                 \"balance\":\"{balance}\", \"address\":\"{address}\" }}\r\n"
            ),
            _ => format!(
                "{{\"balance\":\"{balance}\",\"nonce\":{nonce},\"code\":\"0x{code}\",\"codeHash\":\
                 \"{}\",\"storage\":{{{storage}}},\"address\":\"0x{address}\",\"key\":\"{}\"}}",
                keccak256(&plain.code),
                keccak256(hex::decode(&address).unwrap()),
            ),
        });
    }
    // The accounts may be in any order.
    let mut keyed: Vec<_> = lines.into_iter().enumerate().collect();
    keyed.sort_by_key(|(place, _)| (order[place % order.len()], *place));
    let lines: Vec<String> = keyed.into_iter().map(|(_, line)| line).collect();
    format!("{{\"root\":\"{root}\"}}\n{}\n", lines.join("\n"))
}

struct Rig {
    folder: tempfile::TempDir,
    store: Arc<Store>,
}

impl Rig {
    fn new() -> Self {
        let folder = test_folder();
        let options = Options { map_size: 1 << 28, ..Options::new(Mode::Write) };
        let store = Arc::new(Store::open(folder.path(), &options).unwrap());
        Self { folder, store }
    }

    fn import(&self, text: &str, root: B256, memory: usize) -> Result<ImportStats> {
        let folder = self.folder.path().to_path_buf();
        let plan = ImportOptions { block: BLOCK, root, folder, memory };
        let progress = Progress::default();
        self.store.import_state(text.as_bytes(), text.len() as u64, &plan, &progress)
    }

    /// Adds the block and returns the trie at that block.
    fn begin(&self) -> HeadTrie {
        let mut batch = self.store.batch().unwrap();
        let changes = Arc::new(Changes::default());
        batch.append(BLOCK, B256::repeat_byte(7), changes, BTreeMap::new());
        self.store.commit(batch).unwrap();
        self.store.adopt_nodes(BLOCK).unwrap();
        HeadTrie::open(self.store.clone()).unwrap()
    }

    fn leftovers(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.folder.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.contains("run") || name.contains("held")).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_dump_in_any_order_makes_the_state_it_describes(
        state in btree_map(any::<[u8; 20]>(), plain(), 0..60),
        more in btree_map(any::<[u8; 20]>(), plain(), 0..6),
        order in vec(0..9usize, 1..9),
        memory in prop_oneof![Just(3 << 10), Just(64 << 20)],
    ) {
        let rig = Rig::new();
        let expected = root(&state);
        let imported = rig.import(&dump(&state, expected, &order), expected, memory).unwrap();
        let slots = state.values().map(|plain| plain.slots.len() as u64).sum();
        prop_assert_eq!(imported, ImportStats { accounts: state.len() as u64, slots });
        prop_assert_eq!(rig.leftovers(), Vec::<String>::new());

        let mut trie = rig.begin();
        prop_assert_eq!(trie.root().unwrap(), expected);
        let view = rig.store.view().unwrap();
        let read = view.state(BLOCK).unwrap();
        for (address, change) in &changes(&state).accounts {
            prop_assert_eq!(read.account(address).unwrap(), change.after);
            let found = read.slots(address, GENERATION, None, usize::MAX).unwrap();
            let expected: Vec<_> = change.slots.iter().map(|(k, v)| (*k, *v)).collect();
            prop_assert_eq!(found, expected);
        }

        // Later changes find all nodes that they need.
        let mut both = state.clone();
        let mut later = changes(&more);
        for (address, change) in &mut later.accounts {
            change.before = read.account(address).unwrap();
        }
        both.extend(more.clone());
        for (address, plain) in &state {
            if let Some(after) = more.get(address) {
                let mut merged = after.clone();
                let old = plain.slots.iter().filter(|(slot, _)| !after.slots.contains_key(slot));
                merged.slots.extend(old.map(|(slot, value)| (*slot, *value)));
                both.insert(*address, merged);
            }
        }
        trie.apply(&later).unwrap();
        prop_assert_eq!(trie.root().unwrap(), root(&both));
    }
}

#[test]
fn what_is_wrong_with_a_dump_is_said_with_its_line() {
    let zero = format!("{{\"root\":\"{:#x}\"}}\n", B256::ZERO);
    let address = format!("\"address\":\"{:#x}\"", Address::repeat_byte(1));
    let whole = format!("{{{address},\"balance\":\"0x1\"}}\n");
    let other = format!("{{\"address\":\"{:#x}\",\"balance\":1}}\n", Address::repeat_byte(2));
    let long = "1".repeat(79);
    for (text, line, part) in [
        (String::new(), 1, "empty"),
        ("[]\n".into(), 1, "expected {"),
        (whole.clone(), 1, "first line"),
        ("{\"root\":\"0x01\"}\n".into(), 1, "root: not 32 bytes"),
        (format!("{{\"root\":\"{:#x}\"}}\n", B256::repeat_byte(1)), 1, "the header"),
        (format!("{zero}{{\n"), 2, "the line ends"),
        (format!("{zero}{{"), 2, "the dump ends"),
        (format!("{zero}\n\n{{{address}}}"), 4, "no balance"),
        (format!("{zero}{{\"balance\":1}}"), 2, "no address"),
        (format!("{zero}{whole}{{{address},{address}}}"), 3, "address stands twice"),
        (format!("{zero}{{{address},\"balance\":\"-1\"}}"), 2, "balance: not a number"),
        (format!("{zero}{{{address},\"balance\":{long}}}"), 2, "balance: not a number"),
        (
            format!("{zero}{{{address},\"balance\":1,\"nonce\":\"0x10000000000000000\"}}"),
            2,
            "nonce",
        ),
        (format!("{zero}{{{address},\"balance\":1,\"code\":\"0x1\"}}"), 2, "code"),
        (
            format!("{zero}{{{address},\"balance\":1,\"codeHash\":\"{}\"}}", B256::ZERO),
            2,
            "codeHash",
        ),
        (format!("{zero}{{{address},\"balance\":1,\"key\":\"{}\"}}", B256::ZERO), 2, "key is not"),
        (format!("{zero}{{{address},\"balance\":1,\"color\":1}}"), 2, "\"color\""),
        (format!("{zero}{{{address},\"balance\":1,\"storage\":[]}}"), 2, "storage: expected"),
        (format!("{zero}{{{address},\"balance\":1,\"storage\":{{\"x\":\"1\"}}}}"), 2, "\"x\""),
        (format!("{zero}{{{address},\"balance\":1,\"storage\":{{\"0x1\":1}}}}"), 2, "slot 0x1"),
        (format!("{zero}{{{address},\"balance\":1}}{{}}"), 2, "follows"),
        (format!("{zero}{{{address},\"bal\\u0061nce\":1}}"), 2, "escape"),
        (format!("{zero}{whole}{other}{whole}"), 0, "stands twice"),
        (
            format!("{zero}{{{address},\"balance\":1,\"storage\":{{\"0x1\":\"1\",\"01\":\"2\"}}}}"),
            2,
            "one of its slots stands twice",
        ),
        (
            format!("{zero}{{{address},\"balance\":1,\"root\":\"{}\"}}", B256::ZERO),
            2,
            "its storage has the root",
        ),
        (format!("{zero}{whole}"), 0, "the accounts have the root"),
    ] {
        let rig = Rig::new();
        match rig.import(&text, B256::ZERO, 1 << 20) {
            Err(Error::BadState { line: found, why }) => {
                assert!(why.contains(part), "{why:?} has no {part:?}");
                assert!(line == 0 || found == line, "{text}: line {found}");
            }
            done => panic!("{text}: {done:?}"),
        }
        let view = rig.store.view().unwrap();
        let rows = view.lease.read(|txn| rig.store.tables.flat.len(txn).map_err(lmdb)).unwrap();
        assert_eq!(rows, 0, "nothing is stored of a state without its root");
    }
}

#[test]
fn an_account_may_have_more_slots_than_wait_in_memory() {
    let slots = (0..30_000).map(|slot| (slot, slot + 1)).collect();
    let plain = Plain { nonce: 1, balance: 2, code: vec![1], slots };
    let state = BTreeMap::from([
        ([9; 20], plain),
        ([1; 20], Plain { nonce: 0, balance: 5, code: vec![], slots: BTreeMap::from([(7, 8)]) }),
    ]);
    let expected = root(&state);
    let rig = Rig::new();
    // The form in which the address is last.
    let text = dump(&state, expected, &[0]);
    let imported = rig.import(&text, expected, 3 << 18).unwrap();
    assert_eq!(imported, ImportStats { accounts: 2, slots: 30_001 });
    assert_eq!(rig.begin().root().unwrap(), expected);
    assert_eq!(rig.leftovers(), Vec::<String>::new());
}

#[test]
fn more_runs_than_are_merged_at_once_give_the_same_order() {
    let folder = test_folder();
    let mut sorter = runs::Sorter::new(folder.path(), "many", 1 << 10);
    let key = |place: u32| place.wrapping_mul(2_654_435_761).to_be_bytes();
    let count = 20_000;
    (0..count).for_each(|place| sorter.push(&key(place), &place.to_be_bytes()).unwrap());
    assert_eq!(sorter.len(), u64::from(count));
    let mut merged = sorter.finish().unwrap();
    let mut expected: Vec<_> = (0..count).map(|place| (key(place), place)).collect();
    expected.sort_unstable();
    for (key, place) in expected {
        assert_eq!(merged.next().unwrap(), Some((key.to_vec(), place.to_be_bytes().to_vec())));
    }
    assert_eq!(merged.next().unwrap(), None);
    drop(merged);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn an_import_that_is_stopped_ends() {
    let rig = Rig::new();
    let text = dump(&State::new(), root(&State::new()), &[0]);
    let state = BTreeMap::from([(
        [9; 20],
        Plain { nonce: 0, balance: 5, code: vec![], slots: BTreeMap::new() },
    )]);
    let plan = ImportOptions {
        block: BLOCK,
        root: root(&state),
        folder: rig.folder.path().to_path_buf(),
        memory: 1 << 20,
    };
    let progress = Progress::default();
    progress.stop();
    let text_of = dump(&state, plan.root, &[0]);
    let stopped = rig.store.import_state(text_of.as_bytes(), 0, &plan, &progress);
    assert_eq!(stopped, Err(Error::DeadlineExceeded));
    assert!(text.len() < text_of.len());
}

#[test]
fn a_store_with_blocks_is_left_alone() {
    let rig = Rig::new();
    let empty = root(&State::new());
    rig.import(&dump(&State::new(), empty, &[0]), empty, 1 << 20).unwrap();
    rig.begin();
    let again = rig.import(&dump(&State::new(), empty, &[0]), empty, 1 << 20);
    assert!(matches!(again, Err(Error::RefusedCommit(_))), "{again:?}");
    assert!(matches!(rig.store.adopt_nodes(BLOCK), Err(Error::RefusedCommit(_))));
}
