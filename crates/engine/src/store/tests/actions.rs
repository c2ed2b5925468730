//! Random actions on a store under test, which `history` executes.

use proptest::prelude::*;

use super::model::{ADDRESSES, SLOTS, Touch, What};

#[derive(Clone, Debug)]
pub enum Action {
    /// Adds the next index to the tip, or the first one of the next block.
    Extend {
        stack: bool,
        touches: Vec<Touch>,
    },
    /// Adds a candidate that competes with the tip, on the latest block.
    Compete {
        touches: Vec<Touch>,
    },
    Seal {
        pick: u8,
        and_extend: bool,
    },
    Append {
        touches: Vec<Touch>,
        folds: bool,
    },
    Drop {
        pick: u8,
    },
    Revive {
        pick: u8,
    },
    Forget {
        pick: u8,
    },
    Rewind {
        depth: u8,
    },
    /// Holds what a rewind to the latest block needs, until it is released.
    Hold {
        release: bool,
    },
    Maintain {
        entries: u8,
    },
    Reopen,
}

pub fn touches() -> impl Strategy<Value = Vec<Touch>> {
    use What::*;
    let what = prop_oneof![
        3 => Just(Balance), 4 => Just(Slot), 2 => Just(Clear),
        2 => Just(Destroy), 2 => Just(Recreate), 1 => Just(Empty),
    ];
    let touch = (0..ADDRESSES, what, 0..SLOTS, any::<u8>())
        .prop_map(|(who, what, slot, value)| Touch { who, what, slot, value });
    proptest::collection::vec(touch, 0..6)
}

pub fn action() -> impl Strategy<Value = Action> {
    use Action::*;
    prop_oneof![
        6 => (prop::bool::weighted(0.3), touches())
            .prop_map(|(stack, touches)| Extend { stack, touches }),
        1 => touches().prop_map(|touches| Compete { touches }),
        3 => (any::<u8>(), any::<bool>()).prop_map(|(pick, and_extend)| Seal { pick, and_extend }),
        3 => (touches(), prop::bool::weighted(0.2))
            .prop_map(|(touches, folds)| Append { touches, folds }),
        1 => any::<u8>().prop_map(|pick| Drop { pick }),
        1 => any::<u8>().prop_map(|pick| Revive { pick }),
        1 => any::<u8>().prop_map(|pick| Forget { pick }),
        1 => any::<bool>().prop_map(|release| Hold { release }),
        1 => (0..6u8).prop_map(|depth| Rewind { depth }),
        6 => (1..20u8).prop_map(|entries| Maintain { entries }),
        1 => Just(Reopen),
    ]
}
