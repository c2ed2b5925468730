use alloy_primitives::{Bloom, BloomInput};
use proptest::prelude::*;

use super::*;

fn address(byte: u8) -> Address {
    Address::repeat_byte(byte)
}

fn topic(byte: u8) -> B256 {
    B256::repeat_byte(byte)
}

fn matches(filter: &LogFilter, at: u8, topics: &[u8]) -> bool {
    let topics: Vec<B256> = topics.iter().copied().map(topic).collect();
    filter.matches_parts(address(at).as_slice(), topics.iter().map(|it| it.as_slice()))
}

#[test]
fn addresses_are_alternatives_and_positions_must_all_match() {
    let filter = LogFilter::new(vec![address(2), address(1)], vec![vec![topic(3), topic(4)]]);
    assert!(matches(&filter, 1, &[3]));
    assert!(matches(&filter, 2, &[4, 9]));
    assert!(!matches(&filter, 3, &[3]));
    assert!(!matches(&filter, 1, &[5]));
    assert!(!matches(&filter, 1, &[]));
}

#[test]
fn a_position_without_topics_matches_all_that_have_it() {
    let filter = LogFilter::new(vec![], vec![vec![], vec![topic(1)]]);
    assert!(matches(&filter, 7, &[8, 1]));
    assert!(!matches(&filter, 7, &[1]));
    let filter = LogFilter::new(vec![], vec![vec![], vec![]]);
    assert!(matches(&filter, 7, &[8, 1]));
    assert!(!matches(&filter, 7, &[8]));
}

#[test]
fn a_filter_without_values_looks_for_any_log() {
    let filter = LogFilter::new(vec![], vec![vec![]]);
    assert_eq!(filter.clauses(), [vec![ANY]]);
    assert!(!filter.in_bloom(&[0; 256]));
    assert!(filter.in_bloom(&[1; 256]));
}

#[test]
fn the_shortest_clause_comes_first() {
    let filter = LogFilter::new(vec![address(1), address(2)], vec![vec![], vec![topic(1)]]);
    let lengths: Vec<usize> = filter.clauses().iter().map(Vec::len).collect();
    assert_eq!(lengths, [1, 2]);
    assert_eq!(filter.clauses()[0], [term(2, topic(1).as_slice())]);
}

proptest! {
    /// Compares with alloy's bloom.
    #[test]
    fn a_bloom_is_read_as_others_write_it(logs: Vec<(u8, u8)>, at: u8, with: u8) {
        let mut bloom = Bloom::ZERO;
        for (by, about) in &logs {
            bloom.accrue(BloomInput::Raw(address(*by).as_slice()));
            bloom.accrue(BloomInput::Raw(topic(*about).as_slice()));
        }
        let filter = LogFilter::new(vec![address(at)], vec![vec![topic(with)]]);
        let expected = bloom.contains_input(BloomInput::Raw(address(at).as_slice()))
            && bloom.contains_input(BloomInput::Raw(topic(with).as_slice()));
        prop_assert_eq!(filter.in_bloom(&bloom.0), expected);
    }
}
