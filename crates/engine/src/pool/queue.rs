//! A queue that serves addresses in turn, and the jobs of each address in order.
//!
//! It uses neither threads nor clocks. Its size is bounded: when it is full, the address with the
//! most waiting jobs yields a place to an address with fewer.

use std::collections::VecDeque;

pub(super) struct Queue<J> {
    capacity: usize,
    length: usize,
    /// Addresses with their jobs, next turn first. No job list is empty.
    turns: VecDeque<(u64, VecDeque<(u64, J)>)>,
}

/// The result of adding a job.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pushed {
    Waits,
    /// Waits in place of this job, the last of the address with the most jobs.
    InPlaceOf(u64),
    Refused,
}

impl<J> Queue<J> {
    pub fn new(capacity: usize) -> Self {
        Self { capacity, length: 0, turns: VecDeque::new() }
    }

    pub fn len(&self) -> usize {
        self.length
    }

    /// `free` jobs are about to be started and do not count towards the capacity.
    pub fn push(&mut self, address: u64, id: u64, job: J, free: usize) -> Pushed {
        let mut pushed = Pushed::Waits;
        if self.length >= self.capacity.saturating_add(free) {
            match self.give_way(address) {
                Some(other) => pushed = Pushed::InPlaceOf(other),
                None => return Pushed::Refused,
            }
        }
        self.length += 1;
        match self.turns.iter_mut().find(|(known, _)| *known == address) {
            Some((_, jobs)) => jobs.push_back((id, job)),
            None => self.turns.push_back((address, VecDeque::from([(id, job)]))),
        }
        pushed
    }

    pub fn pop(&mut self) -> Option<(u64, J)> {
        let (address, mut jobs) = self.turns.pop_front()?;
        let next = jobs.pop_front();
        if !jobs.is_empty() {
            self.turns.push_back((address, jobs));
        }
        self.length -= 1;
        next
    }

    /// Removes a job; `None` if it is not waiting.
    pub fn remove(&mut self, id: u64) -> Option<J> {
        for turn in 0..self.turns.len() {
            let jobs = &mut self.turns[turn].1;
            if let Some(at) = jobs.iter().position(|(waiting, _)| *waiting == id) {
                let removed = jobs.remove(at).map(|(_, job)| job);
                self.length -= 1;
                if jobs.is_empty() {
                    self.turns.remove(turn);
                }
                return removed;
            }
        }
        None
    }

    /// The number of jobs that would be started before another job of this address.
    pub fn ahead_of(&self, address: u64) -> usize {
        let own = self.waiting(address);
        self.turns.iter().map(|(_, jobs)| jobs.len().min(own + 1)).sum::<usize>().min(self.length)
    }

    pub fn clear(&mut self) {
        self.turns.clear();
        self.length = 0;
    }

    fn waiting(&self, address: u64) -> usize {
        self.turns.iter().find(|(known, _)| *known == address).map_or(0, |(_, jobs)| jobs.len())
    }

    /// Removes the last job of the address with the most jobs, unless `address` would then have as
    /// many.
    fn give_way(&mut self, address: u64) -> Option<u64> {
        let own = self.waiting(address);
        let (_, jobs) = self.turns.iter_mut().max_by_key(|(_, jobs)| jobs.len())?;
        if jobs.len() <= own + 1 {
            return None;
        }
        self.length -= 1;
        jobs.pop_back().map(|(id, _)| id)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn order(queue: &mut Queue<()>) -> Vec<u64> {
        std::iter::from_fn(|| queue.pop().map(|(id, ())| id)).collect()
    }

    #[test]
    fn addresses_take_turns() {
        let mut queue = Queue::new(10);
        for (address, id) in [(1, 10), (1, 11), (1, 12), (2, 20), (3, 30), (2, 21)] {
            assert_eq!(queue.push(address, id, (), 0), Pushed::Waits);
        }
        assert_eq!((queue.ahead_of(1), queue.ahead_of(2), queue.ahead_of(9)), (6, 6, 3));
        assert_eq!(order(&mut queue), [10, 20, 30, 11, 21, 12]);
    }

    #[test]
    fn the_client_with_most_gives_way_to_one_with_fewer() {
        let mut queue = Queue::new(3);
        for id in [10, 11, 12] {
            queue.push(1, id, (), 0);
        }
        assert_eq!(queue.push(1, 13, (), 0), Pushed::Refused);
        assert_eq!(queue.push(2, 20, (), 0), Pushed::InPlaceOf(12));
        assert_eq!(queue.push(2, 21, (), 0), Pushed::Refused, "both would have two at most");
        assert_eq!(order(&mut queue), [10, 20, 11]);
        assert_eq!(Queue::new(0).push(1, 1, (), 0), Pushed::Refused);
    }

    proptest! {
        /// Against a plain list of (address, id).
        #[test]
        fn it_holds_what_was_put_in_and_not_taken_out(
            steps in proptest::collection::vec((0..4_u64, 0..4_u8), 1..60),
        ) {
            let mut queue = Queue::new(6);
            let mut plain: BTreeMap<u64, u64> = BTreeMap::new();
            for (id, (address, what)) in steps.into_iter().enumerate() {
                let id = id as u64;
                match what {
                    0 => {
                        let popped = queue.pop().map(|(id, ())| id);
                        prop_assert_eq!(popped.is_none(), plain.is_empty());
                        if let Some(id) = popped {
                            let address = plain.remove(&id);
                            // The oldest of its address.
                            let newer = plain.iter().filter(|(_, of)| Some(**of) == address);
                            let oldest = newer.map(|(other, _)| *other).min();
                            prop_assert!(oldest.is_none_or(|other| other > id));
                        }
                    }
                    1 => {
                        let gone = id / 2;
                        let known = plain.remove(&gone).is_some();
                        prop_assert_eq!(queue.remove(gone).is_some(), known);
                    }
                    _ => match queue.push(address, id, (), 0) {
                        Pushed::Waits => { plain.insert(id, address); }
                        Pushed::InPlaceOf(other) => {
                            prop_assert!(plain.remove(&other).is_some());
                            plain.insert(id, address);
                        }
                        Pushed::Refused => prop_assert_eq!(plain.len(), 6),
                    },
                }
                prop_assert_eq!(queue.len(), plain.len());
            }
        }
    }
}
