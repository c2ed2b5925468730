//! The size of a store's memory map: its initial value and its growth.
//!
//! The map limits how much of the file LMDB can use. It takes address space but no memory, so it
//! can be much larger than the file. It is doubled when it is full, up to the limit of the system:
//! 128 TiB on most machines, or what the process may map (`ulimit -v`).

use crate::error::{Error, Result};

/// A multiple of the page size of all supported systems.
const UNIT: usize = 1 << 16;

/// The map size of a store opened for writing: at least `asked`, and about twice the file size.
pub(super) fn at_opening(asked: usize, file: u64) -> usize {
    let file = usize::try_from(file).unwrap_or(usize::MAX);
    asked.max(file.saturating_mul(2).min(usize::MAX / 2) / UNIT * UNIT)
}

/// Returns twice the size, or `StoreFull` if the system cannot map that much.
pub(super) fn twice(size: usize) -> Result<usize> {
    match size.checked_mul(2) {
        Some(larger) if can_map(larger) => Ok(larger),
        _ => Err(Error::StoreFull(size)),
    }
}

/// True if the system can map `size` bytes. LMDB unmaps the file before it maps it again and is
/// unusable if that fails, so a separate mapping is tried first.
fn can_map(size: usize) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a separate mapping, which no other code knows and which is unmapped at once.
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
