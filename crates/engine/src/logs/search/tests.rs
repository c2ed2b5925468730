use alloy_primitives::{Address, B256};
use proptest::prelude::*;

use super::*;
use crate::logs::index::{ANY, term};

/// The address and the topic of each log of a block.
type Logs = Vec<(u8, u8)>;

fn terms(logs: &Logs) -> Vec<Term> {
    let mut terms: Vec<Term> = logs
        .iter()
        .flat_map(|(address, topic)| {
            [
                term(0, Address::repeat_byte(*address).as_slice()),
                term(1, B256::repeat_byte(*topic).as_slice()),
                ANY,
            ]
        })
        .collect();
    terms.sort_unstable();
    terms.dedup();
    terms
}

fn runs(blocks: u64, wide: u64) -> Vec<Run> {
    let run = |size: u16, first, stop| Run { prefix: vec![size as u8], size, first, stop };
    vec![run(8, 0, wide / 8 * 8), run(2, wide / 8 * 8, blocks / 2 * 2)]
}

/// Looks up terms one by one in a list of blocks.
fn search(blocks: &[Logs], mut search: Search) -> Vec<u64> {
    let mut found = Vec::new();
    while let Some(wanted) = search.next() {
        let size = usize::from(wanted.prefix[0]);
        let first = u64::from_be_bytes(wanted.prefix[1..].try_into().expect("a number"));
        assert!(search.reached().is_some_and(|reached| reached >= first));
        for place in 0..size {
            let block = blocks.get(first as usize + place);
            if block.is_some_and(|logs| terms(logs).contains(&wanted.term)) {
                search.found(place as u16);
            }
        }
        search.advance(&mut found);
    }
    assert_eq!(search.reached(), None);
    found
}

proptest! {
    #[test]
    fn it_finds_the_blocks_that_have_a_term_of_each_clause(
        blocks in prop::collection::vec(prop::collection::vec((0..3_u8, 0..3_u8), 0..3), 0..40),
        addresses in prop::collection::vec(0..4_u8, 0..3),
        topics in prop::collection::vec(0..4_u8, 0..3),
        (first, stop, wide) in (0..40_u64, 0..42_u64, 0..40_u64),
    ) {
        let filter = LogFilter::new(
            addresses.iter().map(|it| Address::repeat_byte(*it)).collect(),
            vec![topics.iter().map(|it| B256::repeat_byte(*it)).collect()],
        );
        let all = blocks.len() as u64;
        let runs = runs(all, wide.min(all));
        let fits = |logs: &Logs| {
            logs.iter().any(|(address, _)| addresses.is_empty() || addresses.contains(address))
                && logs.iter().any(|(_, topic)| topics.is_empty() || topics.contains(topic))
        };
        let expected: Vec<u64> = (first..stop.min(all / 2 * 2))
            .filter(|block| fits(&blocks[*block as usize]))
            .collect();
        prop_assert_eq!(search(&blocks, Search::new(&filter, runs, first, stop)), expected);
    }
}
