//! The refunds for authorizations of a transaction before its first instruction.
//!
//! EIP-7702 charges each authorization for a new account and refunds the difference for an existing
//! one. geth adds these refunds at the start; revm adds them at the end, after the struct logs have
//! been written.

use std::collections::BTreeMap;

use alloy_eips::eip7702::Authorization;
use alloy_primitives::{Address, U256};

use super::context::delegation_of;
use crate::{
    error::Result,
    evm::{env::Env, overlay::Overlay},
};

/// The cost of a new account minus the base cost of an authorization.
const EARNED: i64 = 25_000 - 12_500;

/// The refund for authorizations with their signers, in the order of application.
pub(crate) fn earned(
    overlay: &Overlay,
    env: &Env,
    sender: Address,
    signed: impl IntoIterator<Item = (Authorization, Option<Address>)>,
) -> Result<i64> {
    let mut nonces = BTreeMap::new();
    let mut refund = 0;
    for (authorization, signer) in signed {
        let Some(signer) = signer else { continue };
        let here = [U256::ZERO, U256::from(env.chain_id)].contains(&authorization.chain_id);
        if !here || authorization.nonce == u64::MAX {
            continue;
        }
        let account = overlay.account(&signer)?;
        let has_code = account.as_ref().is_some_and(|account| account.has_code());
        if has_code && delegation_of(&overlay.code(&signer)?).is_none() {
            continue;
        }
        // The sender's nonce has already been incremented.
        let stored = account.as_ref().map_or(0, |account| account.nonce);
        let nonce = nonces.get(&signer).copied().unwrap_or(stored + u64::from(signer == sender));
        if nonce != authorization.nonce {
            continue;
        }
        if account.is_some() || nonces.contains_key(&signer) {
            refund += EARNED;
        }
        nonces.insert(signer, nonce + 1);
    }
    Ok(refund)
}
