//! Traces: runs recorded step by step, in the formats of other nodes.
//!
//! A *recorder* (`recorder`) observes one run as a revm inspector. Its recordings become JSON in
//! the format of the requested tracer: geth's struct logs, call frames, prestate and selectors,
//! Parity's flat list, or Otterscan's lists. `run` traces transactions of a block and calls;
//! `access_list` computes the access list of a call.
//!
//! revm-inspectors records a whole run before writing anything and has no bound, but a block's gas
//! can produce gigabytes of steps. Here steps are written as they execute, all memory counts
//! towards one limit (`text`), and the time spent writing counts as work of the run.

pub mod access_list;
mod accesses;
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
