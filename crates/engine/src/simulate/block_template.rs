//! The default next block of a simulation, filled with plain calls.
//!
//! Combines overrides, system calls and calls into one operation, in the same order as the separate
//! steps. Returns `None` if a decision by the caller is needed or a step takes too long; the caller
//! then falls back to the separate steps.

use alloy_primitives::{Address, B256, Bytes};

use crate::{
    error::{Error, Result},
    evm::{
        deadline::Limits,
        env::Env,
        execute::{self, Options},
        overlay::Overlay,
    },
    params::Overrides,
    simulate::body::{Body, CallsBudget, PlainCall},
};

#[derive(Debug, Clone)]
pub struct BlockTemplate {
    /// The transaction type that plain calls are shown as.
    pub tx_type: u8,
    /// The number and hash of the parent block.
    pub parent: (u64, B256),
    /// The system contracts to call first, with their input.
    pub system_calls: Vec<(Address, Bytes)>,
}

/// The requested contents of a block.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub overrides: Option<&'a Overrides>,
    pub calls: &'a [PlainCall],
    /// Maximum gas of all calls together.
    pub gas: u64,
}

impl BlockTemplate {
    /// Returns the body of the block. If it returns `None`, the overlay must be discarded. Time
    /// limits apply to all steps together.
    ///
    /// # Errors
    ///
    /// The error of a state read.
    pub fn run_calls(
        &self,
        overlay: &mut Overlay,
        env: &Env,
        asked: &Asked<'_>,
        limits: &Limits,
    ) -> Result<Option<Body>> {
        overlay.set_block_hash(self.parent.0, self.parent.1);
        if let Some(overrides) = asked.overrides
            && overrides.apply_to(overlay, env.rules)?.is_some()
        {
            return Ok(None);
        }
        for (contract, data) in &self.system_calls {
            let (data, limits) = (data.clone(), limits.clone());
            match execute::system_call(overlay, env, *contract, data, limits, None) {
                Err(Error::DeadlineExceeded) => return Ok(None),
                system_calls => drop(system_calls?),
            }
        }
        let budget =
            CallsBudget { block: env.gas_limit(), request: asked.gas, until: limits.deadline };
        let options = || Options {
            limits: limits.clone(),
            check_base_fee: false,
            check_block_gas_limit: true,
            ..Options::default()
        };
        let (mut body, calls) = (Body::default(), asked.calls);
        let ran = body.run_plain(overlay, env, calls, self.tx_type, budget, false, options)?;
        Ok((ran.calls == calls.len()).then_some(body))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use alloy_primitives::{U256, address};
    use revm::bytecode::opcode as op;

    use super::*;
    use crate::{
        evm::message::Message,
        testing::{Asm, MemoryState, env, ethereum},
    };

    const SENDER: Address = Address::repeat_byte(0x11);
    const STORES: Address = Address::repeat_byte(0xc0);
    const IDENTITY: Address = address!("0x0000000000000000000000000000000000000004");

    fn template() -> BlockTemplate {
        let system_calls = vec![(STORES, Bytes::from_static(&[7; 32]))];
        BlockTemplate { tx_type: 2, parent: (0, B256::repeat_byte(9)), system_calls }
    }

    /// Stores the first word of its input in slot 0.
    fn state() -> MemoryState {
        let store = Asm::default().push(0_u64).op(op::CALLDATALOAD).push(0_u64).op(op::SSTORE);
        MemoryState::default().contract(STORES, store)
    }

    fn call(value: u64, gas: u64) -> PlainCall {
        let (to, value) = (Some(Address::ZERO), U256::from(value));
        let message = Message { from: SENDER, to, value, ..Message::default() };
        PlainCall { message, gas: Some(gas) }
    }

    /// The gas used, and the final value of slot 0.
    fn filled(overrides: &str, calls: &[PlainCall]) -> Option<(u64, U256)> {
        within(&Limits::default(), overrides, calls)
    }

    fn within(limits: &Limits, overrides: &str, calls: &[PlainCall]) -> Option<(u64, U256)> {
        let mut overlay = state().overlay();
        let overrides = Overrides::of(&format!("{{{overrides}}}"));
        let asked = Asked { overrides: Some(&overrides), calls, gas: 50_000 };
        let env = env(ethereum("Cancun"));
        let body = template().run_calls(&mut overlay, &env, &asked, limits).expect("no failure")?;
        assert_eq!(overlay.block_hash(0), Ok(B256::repeat_byte(9)));
        let kept = overlay.storage(&STORES, &U256::ZERO).expect("a slot");
        Some((body.gas_used(), kept))
    }

    fn funds(balance: u64) -> String {
        format!(r#""{SENDER}":{{"balance":"{balance:#x}"}}"#)
    }

    fn code(of: Address, code: &str) -> String {
        format!(r#""{of}":{{"code":"{code}"}}"#)
    }

    #[test]
    fn overrides_come_before_what_is_told_and_that_before_calls() {
        let system_calls = U256::from_be_bytes([7; 32]);
        let calls = [call(1, 21_000), call(2, 29_000)];
        assert_eq!(filled("", &[]), Some((0, system_calls)));
        assert_eq!(filled(&funds(3), &calls), Some((42_000, system_calls)));
        assert_eq!(
            filled(&(funds(3) + "," + &code(STORES, "0x")), &calls),
            Some((42_000, U256::ZERO))
        );
    }

    #[test]
    fn where_anything_has_to_be_decided_there_is_no_body() {
        assert_eq!(filled(&funds(2), &[call(3, 21_000)]), None);
        assert_eq!(filled("", &[call(0, 20_999)]), None);
        assert_eq!(filled("", &[call(0, u64::MAX)]), None);
        assert_eq!(filled(&code(IDENTITY, "0x"), &[]), None);
    }

    #[test]
    fn what_takes_long_has_no_body() {
        let late = Limits { deadline: Some(Instant::now()), ..Limits::default() };
        let loops = format!("0x{:x}{:x}{:x}", op::JUMPDEST, op::PUSH0, op::JUMP);
        assert_eq!(within(&late, &code(STORES, &loops), &[]), None);
        assert_eq!(within(&late, "", &[call(0, 21_000), call(0, 21_000)]), None);
        assert!(within(&late, "", &[call(0, 21_000)]).is_some());
    }
}
