//! Traces: runs watched step by step, and shown as other nodes show them.
//!
//! A *recorder* watches one run (`recorder`): it is revm's inspector. What it has seen becomes
//! JSON in the format of the tracer that was asked for: geth's struct logs, call frames,
//! prestate and selectors, Parity's flat list, or Otterscan's. `run` traces transactions of a block and
//! calls, `access_list` finds the list of a call.
//!
//! revm-inspectors records all of a run before anything is written, without a bound; a block's
//! gas buys gigabytes of steps. Here steps are written as they happen, everything counts
//! against one bound (`text`), and the time that writing takes counts as work of the run.

pub mod access_list;
mod authorizations;
mod calls;
mod context;
mod costs;
mod faults;
mod flat_calls;
mod frames;
mod otterscan;
mod prestate;
pub(crate) mod recorder;
pub mod run;
mod selectors;
mod state_diff;
mod struct_logs;
pub mod text;
mod touched;
mod vm_trace;
