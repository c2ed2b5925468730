//! Rule sets and their forks, by name.
//!
//! The chain profile in Python decides which fork is active at a block. This module maps a fork
//! name to a revm specification and its precompiles. Both are kept in one value, so that no run can
//! mix the rules of two forks.

use std::sync::OnceLock;

use op_revm::{OpSpecId, precompiles::OpPrecompiles};
use revm::{
    precompile::{
        EthPrecompileResult, Precompile, PrecompileHalt, PrecompileId, PrecompileSpecId,
        Precompiles, bn254, eth_precompile_fn,
    },
    primitives::hardfork::SpecId,
};

use crate::error::{Error, Result};

/// Maximum input of the bn254 pairing from Karst on (specs.optimism.io, Karst, precompiles).
const KARST_PAIRING_INPUT: usize = 57_600;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rules {
    Ethereum(SpecId),
    Optimism(OpSpecId),
}

impl Rules {
    /// Constantinople maps to Petersburg: the only difference, EIP-1283, was withdrawn before any
    /// main network ran it, and revm does not implement it. Amsterdam is rejected: its rules are
    /// not final, and the slot number of a block is not available.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for an unknown fork.
    pub fn ethereum(fork: &str) -> Result<Self> {
        Ok(Self::Ethereum(match fork {
            "Frontier" => SpecId::FRONTIER,
            "Homestead" => SpecId::HOMESTEAD,
            "Tangerine" => SpecId::TANGERINE,
            "SpuriousDragon" => SpecId::SPURIOUS_DRAGON,
            "Byzantium" => SpecId::BYZANTIUM,
            "Constantinople" | "Petersburg" => SpecId::PETERSBURG,
            "Istanbul" => SpecId::ISTANBUL,
            "Berlin" => SpecId::BERLIN,
            "London" => SpecId::LONDON,
            "Paris" => SpecId::MERGE,
            "Shanghai" => SpecId::SHANGHAI,
            "Cancun" => SpecId::CANCUN,
            "Prague" => SpecId::PRAGUE,
            "Osaka" => SpecId::OSAKA,
            _ => return Err(Error::invalid(format!("unknown Ethereum fork {fork:?}"))),
        }))
    }

    /// Interop is rejected: op-revm orders it above Karst but gives it older rules.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for an unknown fork.
    pub fn optimism(fork: &str) -> Result<Self> {
        Ok(Self::Optimism(match fork {
            "Bedrock" => OpSpecId::BEDROCK,
            "Regolith" => OpSpecId::REGOLITH,
            "Canyon" => OpSpecId::CANYON,
            "Ecotone" => OpSpecId::ECOTONE,
            "Fjord" => OpSpecId::FJORD,
            "Granite" => OpSpecId::GRANITE,
            "Holocene" => OpSpecId::HOLOCENE,
            "Isthmus" => OpSpecId::ISTHMUS,
            "Jovian" => OpSpecId::JOVIAN,
            "Karst" => OpSpecId::KARST,
            _ => return Err(Error::invalid(format!("unknown Optimism fork {fork:?}"))),
        }))
    }

    /// The Ethereum specification that defines opcodes and gas costs.
    pub fn spec_id(self) -> SpecId {
        match self {
            Self::Ethereum(spec) => spec,
            Self::Optimism(spec) => spec.into_eth_spec(),
        }
    }

    pub fn is_optimism(self) -> bool {
        matches!(self, Self::Optimism(_))
    }

    pub fn precompiles(self) -> &'static Precompiles {
        match self {
            Self::Ethereum(spec) => Precompiles::new(PrecompileSpecId::from_spec_id(spec)),
            Self::Optimism(OpSpecId::KARST) => karst_precompiles(),
            Self::Optimism(spec) => OpPrecompiles::new_with_spec(spec).precompiles(),
        }
    }
}

/// op-revm's Karst set still contains Jovian's pairing, which accepts longer input.
fn karst_precompiles() -> &'static Precompiles {
    static KARST: OnceLock<Precompiles> = OnceLock::new();
    KARST.get_or_init(|| {
        let mut precompiles = OpPrecompiles::new_with_spec(OpSpecId::KARST).precompiles().clone();
        precompiles.extend([Precompile::new(
            PrecompileId::Bn254Pairing,
            bn254::pair::ADDRESS,
            karst_pairing_precompile,
        )]);
        precompiles
    })
}

fn karst_pairing(input: &[u8], gas_limit: u64) -> EthPrecompileResult {
    if input.len() > KARST_PAIRING_INPUT {
        return Err(PrecompileHalt::Bn254PairLength);
    }
    bn254::run_pair(
        input,
        bn254::pair::ISTANBUL_PAIR_PER_POINT,
        bn254::pair::ISTANBUL_PAIR_BASE,
        gas_limit,
    )
}

eth_precompile_fn!(karst_pairing_precompile, karst_pairing);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_and_refused_names_are_invalid_arguments() {
        for name in ["", "frontier", "Merge", "Jovian", "Amsterdam"] {
            assert!(matches!(Rules::ethereum(name), Err(Error::InvalidArgument(_))), "{name}");
        }
        for name in ["Interop", "Prague", "karst"] {
            assert!(matches!(Rules::optimism(name), Err(Error::InvalidArgument(_))), "{name}");
        }
    }

    #[test]
    fn the_pairing_limit_shrinks_with_the_forks_of_optimism() {
        let accepts = |rules: Rules, bytes: usize| {
            let pairing = rules.precompiles().get(&bn254::pair::ADDRESS).expect("pairing");
            // One gas is never enough: an accepted length fails with out of gas.
            let output = pairing.execute(&vec![0; bytes], 1, 0).expect("no fatal error");
            output.halt_reason().is_some_and(PrecompileHalt::is_oog)
        };
        let limits = [("Granite", 112_687), ("Jovian", 81_984), ("Karst", KARST_PAIRING_INPUT)];
        for (fork, limit) in limits {
            let rules = Rules::optimism(fork).expect("a fork");
            assert!(accepts(rules, limit), "{fork} at its limit");
            assert!(!accepts(rules, limit + 1), "{fork} above its limit");
        }
        assert!(accepts(Rules::Optimism(OpSpecId::FJORD), 1_000_000));
    }
}
