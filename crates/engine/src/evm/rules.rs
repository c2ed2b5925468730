//! The rule sets and their forks, by name.
//!
//! Which fork is in force at a block is decided by the chain profile, in Python.
//! Here a name becomes a specification of revm together with its precompiles; the
//! two always travel together, so no run can mix the rules of two forks.

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

/// Longest input of the bn254 pairing from Karst on (specs.optimism.io, Karst, precompiles).
const KARST_PAIRING_INPUT: usize = 57_600;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rules {
    Ethereum(SpecId),
    Optimism(OpSpecId),
}

impl Rules {
    /// Constantinople runs as Petersburg: EIP-1283, the only difference, was
    /// withdrawn before any main network ran it, and revm does not have it. Amsterdam is
    /// refused: its rules are not final, and nothing here knows the slot of a block.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a fork that is not known.
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

    /// Interop is refused: op-revm sorts it above Karst but gives it older rules.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a fork that is not known.
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

    /// The Ethereum specification whose opcodes and gas costs are in force.
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

/// op-revm's Karst set still has the pairing of Jovian, which accepts longer input.
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
            // One gas is never enough, so an accepted length shows as out of gas.
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
