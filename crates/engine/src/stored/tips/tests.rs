use proptest::prelude::*;

use super::*;

#[test]
fn most_blocks_are_kept_in_twelve_bytes_a_bid() {
    let tips = BlockTips::new(vec![(1, 21_000); 2_000]);
    assert!(matches!(tips, BlockTips::Narrow { .. }));
    assert!(tips.size() < 24_200);
    let wide = BlockTips::new(vec![(u128::MAX, 1), (3, u64::MAX)]);
    assert!(matches!(wide, BlockTips::Wide { .. }));
    assert_eq!(wide.lowest(9), [3, u128::MAX]);
    assert_eq!(wide.percentile(100.0), 3);
}

#[test]
fn a_block_without_bids_has_tips_of_nothing() {
    let tips = BlockTips::new(vec![]);
    assert!(tips.is_empty());
    assert_eq!(tips.percentile(50.0), 0);
    assert_eq!(tips.lowest(3), [0_u128; 0]);
}

proptest! {
    #[test]
    fn narrow_and_wide_say_the_same(bids in proptest::collection::vec((0_u64..100, 1_u64..1000), 1..20), percent in 0.0..=100.0_f64) {
        let bids: Vec<Bid> = bids.into_iter().map(|(tip, gas)| (tip.into(), gas)).collect();
        let narrow = BlockTips::new(bids.clone());
        let BlockTips::Narrow { tips, gas } = &narrow else { panic!("they are small") };
        let wide = BlockTips::Wide {
            tips: tips.iter().map(|tip| u128::from(*tip)).collect(),
            gas: gas.iter().map(|gas| u64::from(*gas)).collect(),
        };
        prop_assert_eq!(narrow.percentile(percent), wide.percentile(percent));
        prop_assert_eq!(narrow.lowest(5), wide.lowest(5));
    }

    #[test]
    fn a_percentile_is_the_tip_of_the_gas_at_its_place(bids in proptest::collection::vec((0_u64..50, 21_u64..1000), 1..20), percent in 0_usize..=100) {
        let mut bids: Vec<Bid> = bids.into_iter().map(|(tip, gas)| (tip.into(), gas)).collect();
        bids.sort_unstable();
        let row: Vec<u128> =
            bids.iter().flat_map(|(tip, gas)| (0..*gas).map(|_| *tip)).collect();
        let expected = row[(row.len() * percent / 100).max(1) - 1];
        prop_assert_eq!(BlockTips::new(bids).percentile(percent as f64), expected);
    }

    #[test]
    fn any_bytes_have_a_tip_or_are_refused(raw in proptest::collection::vec(any::<u8>(), 0..60)) {
        let _ = tip_of(&raw, Some(7));
        let _ = read_bids((&raw, &raw), (0, 9), None, 0, &mut vec![]);
    }
}
