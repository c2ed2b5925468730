//! Decoded transactions.

use alloy_consensus::{EthereumTxEnvelope, TxEip4844, crypto::secp256k1::recover_signer};
use alloy_eips::eip7702::{RecoveredAuthority, RecoveredAuthorization, SignedAuthorization};
use alloy_primitives::{Address, B256, Bytes, Signature};
use op_alloy_consensus::{PostExecPayload, TxDeposit, TxPostExec};

/// The type byte of a deposit transaction (OP stack specification, deposits).
pub const DEPOSIT_TYPE: u8 = 0x7e;
/// The type byte of a post-execution transaction, which ends a block (OP stack specification,
/// Lagoon).
pub const POST_EXEC_TYPE: u8 = 0x7d;

/// A signed transaction of any Ethereum type.
pub type Signed = EthereumTxEnvelope<TxEip4844>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Envelope {
    Signed(Signed),
    /// Created by the L2 from an L1 event: no signature, nonce or fees.
    Deposit(TxDeposit),
    /// Made by the sequencer: no signature, nonce, gas or fees.
    PostExec(TxPostExec),
    /// Not signed: simulated, with a zero signature, or with the sender in place of the signature
    /// (`named`), which blocks of development chains may contain.
    Unsigned(Signed),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    pub envelope: Envelope,
    pub hash: B256,
    pub sender: Address,
    pub raw: Bytes,
}

impl Transaction {
    /// The common fields through alloy's trait: `ty`, `nonce`, `gas_limit`, `kind`, `value`,
    /// `input`, fees, access list, blob hashes, authorizations, chain id. The nonce of a deposit is
    /// 0 here; the actual nonce is only known at execution.
    pub fn fields(&self) -> &dyn alloy_consensus::Transaction {
        match &self.envelope {
            Envelope::Signed(signed) | Envelope::Unsigned(signed) => signed,
            Envelope::Deposit(deposit) => deposit,
            Envelope::PostExec(post_exec) => post_exec,
        }
    }

    pub fn deposit(&self) -> Option<&TxDeposit> {
        match &self.envelope {
            Envelope::Deposit(deposit) => Some(deposit),
            Envelope::Signed(_) | Envelope::PostExec(_) | Envelope::Unsigned(_) => None,
        }
    }

    pub fn post_exec(&self) -> Option<&PostExecPayload> {
        match &self.envelope {
            Envelope::PostExec(post_exec) => Some(&post_exec.payload),
            Envelope::Signed(_) | Envelope::Deposit(_) | Envelope::Unsigned(_) => None,
        }
    }

    /// True for a transaction that has a sender who pays: neither a deposit nor a post-execution
    /// transaction.
    pub fn is_standard(&self) -> bool {
        !matches!(self.envelope, Envelope::Deposit(_) | Envelope::PostExec(_))
    }

    /// The recipient: none of a creation, nor of a post-execution transaction.
    pub fn to(&self) -> Option<Address> {
        self.post_exec().map_or_else(|| self.fields().to(), |_| None)
    }

    /// `None` for a deposit and a post-execution transaction.
    pub fn signature(&self) -> Option<&Signature> {
        match &self.envelope {
            Envelope::Signed(signed) | Envelope::Unsigned(signed) => Some(signed.signature()),
            Envelope::Deposit(_) | Envelope::PostExec(_) => None,
        }
    }

    /// `v` as in JSON-RPC: 27, 28 or the EIP-155 value for legacy transactions, the parity for
    /// typed ones, 0 for all others.
    pub fn v(&self) -> u128 {
        match &self.envelope {
            Envelope::Signed(Signed::Legacy(legacy)) => {
                alloy_consensus::transaction::to_eip155_value(
                    legacy.signature().v(),
                    legacy.tx().chain_id,
                )
            }
            Envelope::Signed(signed) => signed.signature().v().into(),
            Envelope::Deposit(_) | Envelope::PostExec(_) | Envelope::Unsigned(_) => 0,
        }
    }

    /// The authorizations with their recovered signers, empty for all types except set-code. An
    /// authorization without a valid signature is `Invalid` and does not invalidate the transaction
    /// (EIP-7702).
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

/// Recovers the signer of the authorization. Follows the rules of alloy's `recover_authority`, but
/// with the secp256k1 backend, which takes a quarter of the time.
fn authority(authorization: &SignedAuthorization) -> Option<Address> {
    let signature = authorization.signature().ok()?;
    recover_signer(&signature, authorization.inner().signature_hash()).ok()
}

/// The sender of a named transaction, `None` for any other.
pub(crate) fn named_sender(signed: &Signed) -> Option<Address> {
    let Signed::Eip1559(dynamic) = signed else { return None };
    let signature = dynamic.signature();
    let is_named = signature.s().is_zero() && !signature.v() && signature.r().bit_len() <= 160;
    is_named.then(|| Address::from_word(signature.r().into()))
}
