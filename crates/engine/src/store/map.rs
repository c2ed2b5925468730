//! How much of the address space a store's file has: how large to begin, how to go on.
//!
//! The map is what LMDB may use of the file. It costs addresses and no memory, so it can
//! be much larger than the file, and is doubled when that is not enough. What ends it is
//! the system: 128 TiB on most machines, or what the process may map (`ulimit -v`).

use crate::error::{Error, Result};

/// Numbers of bytes are whole pages of any system that we know.
const UNIT: usize = 1 << 16;

/// The map of a store that is opened to write: at least as asked for, with room to grow.
pub(super) fn at_opening(asked: usize, file: u64) -> usize {
    let file = usize::try_from(file).unwrap_or(usize::MAX);
    asked.max(file.saturating_mul(2).min(usize::MAX / 2) / UNIT * UNIT)
}

/// Twice as much, if the system has so much: `StoreFull` otherwise.
pub(super) fn twice(size: usize) -> Result<usize> {
    match size.checked_mul(2) {
        Some(larger) if can_map(larger) => Ok(larger),
        _ => Err(Error::StoreFull(size)),
    }
}

/// LMDB lets go of the map before it has a new one, and is lost when there is none to be
/// had; so that is tried beside it.
fn can_map(size: usize) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a mapping of its own, which nobody is told of and which goes at once.
    unsafe {
        let address = libc::mmap(std::ptr::null_mut(), size, libc::PROT_NONE, flags, -1, 0);
        address != libc::MAP_FAILED && libc::munmap(address, size) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_begins_with_room_for_what_is_there() {
        assert_eq!(at_opening(1 << 30, 0), 1 << 30);
        assert_eq!(at_opening(1 << 20, 3 << 20), 6 << 20);
        assert_eq!(at_opening(1 << 20, (3 << 20) + 1) % 4096, 0);
        assert_eq!(at_opening(1 << 20, u64::MAX) % 4096, 0);
    }

    #[test]
    fn a_map_is_doubled_until_there_are_no_more_addresses() {
        assert_eq!(twice(1 << 20), Ok(1 << 21));
        assert_eq!(twice(1 << 62), Err(Error::StoreFull(1 << 62)));
        assert_eq!(twice(1 << 63), Err(Error::StoreFull(1 << 63)));
    }
}
