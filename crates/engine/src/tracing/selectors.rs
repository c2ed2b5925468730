//! geth's 4byteTracer: counts of call selectors by size of their arguments.

use std::collections::BTreeMap;

use alloy_primitives::hex;
use revm::{context::ContextTr, interpreter::CallInputs, precompile::Precompiles};

use super::text::{Text, decimal};

/// Approximate memory of an entry.
const ENTRY_BYTES: usize = 96;

#[derive(Debug)]
pub(crate) struct Selectors {
    counts: BTreeMap<([u8; 4], usize), u64>,
    precompiles: &'static Precompiles,
}

impl Selectors {
    pub(crate) fn new(precompiles: &'static Precompiles) -> Self {
        Self { counts: BTreeMap::new(), precompiles }
    }

    pub(crate) fn call(&mut self, context: &mut impl ContextTr, inputs: &CallInputs) {
        if self.precompiles.contains(&inputs.bytecode_address) {
            return;
        }
        let input = inputs.input.as_bytes(context);
        if let Some(selector) = input.first_chunk::<4>() {
            *self.counts.entry((*selector, input.len() - 4)).or_default() += 1;
        }
    }

    pub(crate) fn held(&self) -> usize {
        self.counts.len() * ENTRY_BYTES
    }

    pub(crate) fn write(&self, text: &mut Text) {
        text.push(b"{");
        for (place, ((selector, size), count)) in self.counts.iter().enumerate() {
            let out = text.out();
            if place > 0 {
                out.push(b',');
            }
            out.extend_from_slice(b"\"0x");
            out.extend_from_slice(hex::encode(selector).as_bytes());
            out.push(b'-');
            decimal(out, *size as u64);
            out.extend_from_slice(b"\":");
            decimal(out, *count);
        }
        text.push(b"}");
    }
}
