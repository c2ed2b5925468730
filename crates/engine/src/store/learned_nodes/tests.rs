use alloy_primitives::{Bytes, keccak256};

use super::*;
use crate::fetched_state::FetchedState;
use crate::store::pending_node_layers::PendingNodeLayers;
use crate::store::{Mode, Options, Retention, Store, test_folder};

const SMALL: u64 = 1000;

fn node(number: u64) -> Bytes {
    Bytes::from([number.to_be_bytes(); 5].concat())
}

struct Kept {
    _folder: tempfile::TempDir,
    store: Store,
    learned: FetchedState,
}

impl Kept {
    fn new() -> Self {
        let folder = test_folder();
        let retention = Retention { states: None, partials: 3, nodes: 2 };
        let options = Options { map_size: 1 << 26, retention, ..Options::new(Mode::Write) };
        let store = Store::open(folder.path(), &options).unwrap();
        let mut batch = store.batch().unwrap();
        batch.begin_at(5, B256::ZERO, B256::ZERO, 1, Default::default());
        store.commit(batch).unwrap();
        // A code whose hash starts like the key of a node is not mistaken for one.
        let code = (0..).map(node).find(|code| keccak256(code)[0] == HALVES[1]).unwrap();
        let learned = FetchedState::new(1, 1 << 20);
        learned.put_code(code);
        store.learn(&learned).unwrap();
        Self { _folder: folder, store, learned }
    }

    fn put(&self, numbers: std::ops::Range<u64>) {
        self.learned.put_nodes(numbers.map(node));
        self.store.learn(&self.learned).unwrap();
    }

    fn has(&self, number: u64) -> bool {
        let view = self.store.view().unwrap();
        view.lease.learned_node(&keccak256(node(number))).unwrap().is_some()
    }

    /// Processes at most `left` entries in one slice; returns the number processed.
    fn work(&self, left: usize) -> usize {
        let work = |txn: &mut RwTxn| {
            let (tables, heads) = (self.store.tables, self.store.tables.heads(txn)?);
            let mut layers = PendingNodeLayers::default();
            let mut slice = Slice { tables, txn, heads, layers: &mut layers, left };
            slice.forget_above(SMALL)?;
            Ok(left - slice.left)
        };
        self.store.write(work).unwrap()
    }

    fn codes(&self) -> u64 {
        let count = |txn: &mut RwTxn| self.store.tables.codes.len(txn).map_err(lmdb);
        self.store.write(count).unwrap()
    }
}

/// A node takes 73 bytes, so fourteen fill a half.
#[test]
fn the_oldest_nodes_go_when_both_halves_are_full() {
    let kept = Kept::new();
    kept.put(0..14);
    assert_eq!(kept.work(100), 1, "the other half is empty and becomes the young one");
    kept.put(14..20);
    assert_eq!(kept.work(100), 0, "there is room");
    kept.put(20..22);
    assert_eq!(kept.work(5), 5);
    assert_eq!(kept.work(100), 9, "the rest of the old half");
    assert!((0..14).all(|number| !kept.has(number)) && (14..22).all(|number| kept.has(number)));
    kept.put(22..28);
    assert_eq!(kept.work(100), 1);
    let again = FetchedState::new(1, 1 << 20);
    again.put_nodes([node(0)]);
    kept.store.learn(&again).unwrap();
    assert!(kept.has(0) && kept.has(14), "what is forgotten can be learned again");
    assert_eq!(kept.codes(), 1 + 1 + 14 + 1, "the code, the row of halves, and nodes");
}

#[test]
fn the_row_of_halves_is_checked() {
    let kept = KeptNodes { young: HALVES[1], bytes: 7 };
    assert_eq!(KeptNodes::decode(&kept.encode()), Ok(kept));
    for row in [&[][..], &[HALVES[0]; 8], &[0; 9]] {
        assert!(matches!(KeptNodes::decode(row), Err(Error::StoreDamaged(_))));
    }
}
