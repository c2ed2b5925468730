//! Analysed bytecode by code hash, shared by all threads of the process.
//!
//! Finding the jump destinations of 24 kB of code takes ten times as long as an ordinary call. Code
//! is immutable under its hash, so entries cannot become stale and are only evicted for capacity.
//! Cloning an entry increments a reference count.

use std::sync::{LazyLock, RwLock};

use alloy_primitives::{B256, Bytes};
use revm::bytecode::Bytecode;

use crate::{error::Result, generations::Generations};

/// Maximum size of each generation. 24 kB of code with its jump table takes about 27 kB, so this
/// holds more than two thousand of the largest contracts.
const MAX_BYTES: usize = 64 << 20;
const MAX_ENTRIES: usize = 16_384;

static CACHE: LazyLock<RwLock<Generations<Bytecode>>> =
    LazyLock::new(|| RwLock::new(Generations::new(MAX_ENTRIES, MAX_BYTES)));

/// Returns the analysed code with this hash. Calls `load` on a cache miss.
pub fn analysed(hash: B256, load: impl FnOnce() -> Result<Bytes>) -> Result<Bytecode> {
    // The maps are consistent at every step, so a poisoned lock can still be used.
    let young = CACHE.read().unwrap_or_else(|poisoned| poisoned.into_inner()).young(&hash);
    if let Some(code) = young {
        return Ok(code);
    }
    let cache = || CACHE.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(code) = cache().get(&hash, footprint) {
        return Ok(code);
    }
    let code = analyse(load()?);
    cache().insert(hash, code.clone(), footprint(&code));
    Ok(code)
}

/// Bytes that start like an EIP-7702 delegation but are not one are ordinary code, as in other
/// clients: they halt at their first byte.
pub fn analyse(code: Bytes) -> Bytecode {
    Bytecode::new_raw_checked(code.clone()).unwrap_or_else(|_| Bytecode::new_legacy(code))
}

fn footprint(code: &Bytecode) -> usize {
    let bytes = code.bytecode().len();
    bytes + bytes / 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn a_hash_is_loaded_once_and_a_failed_load_leaves_nothing() {
        let hash = B256::repeat_byte(0xa7);
        let failed = analysed(hash, || Err(Error::MissingCode(hash)));
        assert_eq!(failed, Err(Error::MissingCode(hash)));

        let bytes = Bytes::from_static(&[0x60, 0x01, 0x5b]);
        let loaded = analysed(hash, || Ok(bytes.clone())).expect("loads");
        let again = analysed(hash, || panic!("must come from the cache")).expect("cached");
        assert_eq!(loaded.original_bytes(), bytes);
        assert_eq!(again, loaded);
    }

    #[test]
    fn malformed_delegations_are_ordinary_code() {
        let designator = [&[0xef, 0x01, 0x00][..], &[0x11; 20]].concat();
        assert!(analyse(designator.clone().into()).is_eip7702());
        assert!(!analyse(designator[..22].to_vec().into()).is_eip7702());
        assert!(!analyse([&designator[..], &[0]].concat().into()).is_eip7702());
    }
}
