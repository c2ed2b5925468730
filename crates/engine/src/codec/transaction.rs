//! Transactions: what the bytes say, who sent them, what they hash to.
//!
//! A `Transaction` is decoded only if its bytes were the one canonical EIP-2718
//! encoding of it and a sender could be recovered, so `raw`, `hash`, `envelope` and
//! `sender` never disagree. One that was only simulated (`unsigned`) has the sender
//! that it was given. Types 0 to 4 and the L2's deposit (0x7e) are known.
//!
//! Whether it may stand in a block is not judged here: chain id, nonce, fees, blob
//! count and the fork that brings its type belong to execution. Blob transactions
//! are as in blocks, without their sidecar.

mod decode;
mod named;
#[cfg(test)]
mod tests;
mod typed;
mod unsigned;

use alloy_consensus::{EthereumTxEnvelope, TxEip4844, crypto::secp256k1::recover_signer};
pub use alloy_eips::eip7702::SignedAuthorization;
use alloy_eips::eip7702::{RecoveredAuthority, RecoveredAuthorization};
use alloy_primitives::{Address, B256, Bytes, Signature};
pub use op_alloy_consensus::TxDeposit;

pub use decode::{check, decode, decode_all, decode_at, decode_known, deposit};
pub(crate) use named::named_sender;
pub use named::{decode_named, named};
pub(crate) use typed::typed;
pub use unsigned::{encode_unsigned, unsigned};

/// The type byte of a deposit transaction (OP stack specification, deposits).
pub const DEPOSIT_TYPE: u8 = 0x7e;
/// Of a transaction that settles a block after its others; its rules are not known here.
pub const POST_EXEC_TYPE: u8 = 0x7d;

/// A signed transaction of any Ethereum type.
pub type Signed = EthereumTxEnvelope<TxEip4844>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Envelope {
    Signed(Signed),
    /// Made by the L2 itself from an L1 event: no signature, nonce or fees.
    Deposit(TxDeposit),
    /// Signed by nobody: simulated, with zeros for a signature, or with its sender for one
    /// (`named`), which blocks of chains of developers may have.
    Unsigned(Signed),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    pub envelope: Envelope,
    pub hash: B256,
    pub sender: Address,
    /// The EIP-2718 encoding it was decoded from.
    pub raw: Bytes,
}

impl Transaction {
    /// The fields that types have in common, through alloy's trait: `ty`, `nonce`,
    /// `gas_limit`, `kind`, `value`, `input`, fees, access list, blob hashes,
    /// authorizations, chain id. A deposit's nonce is 0 here; the real one is known
    /// only when it runs.
    pub fn fields(&self) -> &dyn alloy_consensus::Transaction {
        match &self.envelope {
            Envelope::Signed(signed) | Envelope::Unsigned(signed) => signed,
            Envelope::Deposit(deposit) => deposit,
        }
    }

    pub fn deposit(&self) -> Option<&TxDeposit> {
        match &self.envelope {
            Envelope::Deposit(deposit) => Some(deposit),
            Envelope::Signed(_) | Envelope::Unsigned(_) => None,
        }
    }

    /// `None` for a deposit.
    pub fn signature(&self) -> Option<&Signature> {
        match &self.envelope {
            Envelope::Signed(signed) | Envelope::Unsigned(signed) => Some(signed.signature()),
            Envelope::Deposit(_) => None,
        }
    }

    /// `v` as JSON-RPC shows it: 27, 28 or the EIP-155 value for legacy transactions,
    /// the parity for typed ones, 0 for deposits.
    pub fn v(&self) -> u128 {
        match &self.envelope {
            Envelope::Signed(Signed::Legacy(legacy)) => {
                alloy_consensus::transaction::to_eip155_value(
                    legacy.signature().v(),
                    legacy.tx().chain_id,
                )
            }
            Envelope::Signed(signed) => signed.signature().v().into(),
            Envelope::Deposit(_) | Envelope::Unsigned(_) => 0,
        }
    }

    /// The authorizations with the accounts that signed them, empty for all types but
    /// set-code. An authorization nobody signed is `Invalid` and does not harm the
    /// transaction (EIP-7702).
    pub fn recovered_authorizations(&self) -> Vec<RecoveredAuthorization> {
        let signed = self.fields().authorization_list().unwrap_or_default();
        signed
            .iter()
            .map(|authorization| {
                let authority = authority(authorization)
                    .map_or(RecoveredAuthority::Invalid, RecoveredAuthority::Valid);
                RecoveredAuthorization::new_unchecked(authorization.inner().clone(), authority)
            })
            .collect()
    }
}

/// Who signed the authorization. Same rules as alloy's own `recover_authority`, on the
/// secp256k1 backend, which takes a quarter of the time.
fn authority(authorization: &SignedAuthorization) -> Option<Address> {
    let signature = authorization.signature().ok()?;
    recover_signer(&signature, authorization.inner().signature_hash()).ok()
}
