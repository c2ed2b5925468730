//! Python bindings of log filters, matching logs, and the log index.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard};

use alloy_primitives::{Address, B256};
use foreblock_engine::error::Error;
use foreblock_engine::logs::filter;
use foreblock_engine::logs::found::{Allowance, Found, Reached, read_on};
use foreblock_engine::logs::index::{self, ENTRY, Term, add_terms, chunks, entry};
use foreblock_engine::logs::search::{Run, Search};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::convert::{Arg, Pair, invalid};
use crate::error::to_python;
use crate::store::View;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<LogFilter>()?;
    module.add_class::<LogSearch>()?;
    module.add_class::<BlockLogs>()?;
    module.add_function(wrap_pyfunction!(log_terms, module)?)?;
    module.add_function(wrap_pyfunction!(log_section, module)?)?;
    module.add_function(wrap_pyfunction!(merge_log_sections, module)?)
}

const TERM: usize = size_of::<Term>();

/// A log filter: addresses, and topics by position.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct LogFilter(filter::LogFilter);

#[pymethods]
impl LogFilter {
    #[new]
    fn new(addresses: Vec<Arg<Address>>, topics: Vec<Vec<Arg<B256>>>) -> Self {
        let addresses = addresses.into_iter().map(|it| it.0).collect();
        let topics =
            topics.into_iter().map(|some| some.into_iter().map(|it| it.0).collect()).collect();
        Self(filter::LogFilter::new(addresses, topics))
    }

    /// The total number of addresses and topics.
    #[getter]
    fn size(&self) -> usize {
        self.0.size()
    }

    fn matches(&self, address: &[u8], topics: Vec<PyBackedBytes>) -> bool {
        self.0.matches_parts(address, topics.iter().map(|topic| &**topic))
    }

    fn in_bloom(&self, bloom: &[u8]) -> PyResult<bool> {
        let bloom = bloom
            .try_into()
            .map_err(|_| invalid(format!("a bloom has 256 bytes, not {}", bloom.len())))?;
        Ok(self.0.in_bloom(bloom))
    }

    fn blocks_in_bloom(
        &self,
        view: &View,
        prefix: &[u8],
        first: Arg<u64>,
        stop: Arg<u64>,
    ) -> PyResult<Vec<u64>> {
        view.view.blocks_in_bloom(&self.0, prefix, first.0, stop.0).map_err(to_python)
    }
}

/// A search in the index for blocks that may contain matching logs.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct LogSearch(Mutex<Search>);

impl LogSearch {
    fn search(&self) -> MutexGuard<'_, Search> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The prefix and the size of the sections, the first block and the one after the last.
pub type RunArg = Pair<Pair<PyBackedBytes, Arg<u16>>, Pair<Arg<u64>, Arg<u64>>>;

pub fn run(Pair(Pair(prefix, size), Pair(first, stop)): RunArg) -> Run {
    Run { prefix: prefix.to_vec(), size: size.0.max(1), first: first.0, stop: stop.0 }
}

#[pymethods]
impl LogSearch {
    #[new]
    fn new(filter: &LogFilter, runs: Vec<RunArg>, first: Arg<u64>, stop: Arg<u64>) -> Self {
        let runs = runs.into_iter().map(run).collect();
        Self(Mutex::new(Search::new(&filter.0, runs, first.0, stop.0)))
    }

    /// The first block that is not searched yet, `None` at the end.
    #[getter]
    fn reached(&self) -> Option<u64> {
        self.search().reached()
    }

    fn go_on(&self, view: &View, look_ups: Arg<usize>) -> PyResult<Vec<u64>> {
        view.view.search_logs(&mut self.search(), look_ups.0).map_err(to_python)
    }
}

/// The matching logs of one block, read incrementally.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct BlockLogs {
    filter: Py<LogFilter>,
    /// The keys of each portion: transactions, receipts.
    portions: Vec<Pair<PyBackedBytes, PyBackedBytes>>,
    end: PyBackedBytes,
    reached: Mutex<Reached>,
}

#[pymethods]
impl BlockLogs {
    #[new]
    fn new(
        filter: Py<LogFilter>,
        portions: Vec<Pair<PyBackedBytes, PyBackedBytes>>,
        end: PyBackedBytes,
    ) -> Self {
        Self { filter, portions, end, reached: Mutex::default() }
    }

    /// The JSON of the next logs and their number, `None` at the end.
    fn read<'py>(
        &self,
        py: Python<'py>,
        view: &View,
        items: Arg<usize>,
        bytes: Arg<usize>,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, usize)>> {
        let mut reached = self.reached.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (mut found, mut left) =
            (Found::default(), Allowance { items: items.0.max(1), bytes: bytes.0.max(1) });
        if reached.portion >= self.portions.len() {
            return Ok(None);
        }
        while let Some(Pair(transactions, receipts)) = self.portions.get(reached.portion) {
            if left.is_used_up(&found) {
                break;
            }
            let read = |[transactions, receipts]: [Option<&[u8]>; 2]| {
                let (Some(transactions), Some(receipts)) = (transactions, receipts) else {
                    return Err(Error::StoreDamaged("a block lacks a row".into()));
                };
                let rows = (transactions, receipts);
                let filter = &self.filter.get().0;
                read_on(filter, rows, &self.end, &mut reached, &mut left, &mut found)
            };
            view.view.with_rows([transactions, receipts], read).map_err(to_python)?;
        }
        Ok(Some((PyBytes::new(py, &found.text), found.count)))
    }
}

/// The terms of all logs in these rows of receipts, sorted. Includes `ANY` if there are any.
#[pyfunction]
fn log_terms<'py>(
    py: Python<'py>,
    view: &View,
    receipts: Vec<PyBackedBytes>,
) -> PyResult<Bound<'py, PyBytes>> {
    let read = || {
        let mut terms = HashSet::new();
        for key in &receipts {
            view.view.with_rows([key], |[row]| {
                let missing = || Error::StoreDamaged("a block lacks a row".into());
                add_terms(row.ok_or_else(missing)?, &mut terms)
            })?;
        }
        let mut terms: Vec<Term> = terms.into_iter().collect();
        terms.sort_unstable();
        Ok(terms_bytes(&terms))
    };
    let terms = py.detach(read).map_err(to_python)?;
    Ok(PyBytes::new(py, &terms))
}

/// The chunks of a section of blocks with these terms.
#[pyfunction]
fn log_section<'py>(
    py: Python<'py>,
    blocks: Vec<PyBackedBytes>,
) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    if blocks.len() > 1 << 16 {
        return Err(invalid("a section has at most 65,536 blocks".to_string()));
    }
    let mut entries = Vec::new();
    for (place, terms) in (0..=u16::MAX).zip(&blocks) {
        entries.extend(terms_of(terms)?.into_iter().map(|term| entry(term, place)));
    }
    let made = py.detach(|| chunks(entries));
    Ok(made.iter().map(|chunk| PyBytes::new(py, chunk)).collect())
}

type Merged<'py> = (Vec<Bound<'py, PyBytes>>, Option<Bound<'py, PyBytes>>);

/// Merges sections, one part per call.
#[pyfunction]
fn merge_log_sections<'py>(
    py: Python<'py>,
    view: &View,
    sources: Vec<Pair<PyBackedBytes, Arg<u16>>>,
    start: &[u8],
    most: Arg<usize>,
) -> PyResult<Merged<'py>> {
    let start: [u8; ENTRY] =
        start.try_into().map_err(|_| invalid(format!("an entry has {ENTRY} bytes")))?;
    let sources: Vec<index::Source<'_>> =
        sources.iter().map(|Pair(prefix, shift)| (&**prefix, shift.0)).collect();
    let merge = || view.view.merge_log_sections(&sources, &start, most.0.max(1));
    let (chunks, next) = py.detach(merge).map_err(to_python)?;
    let chunks = chunks.iter().map(|chunk| PyBytes::new(py, chunk)).collect();
    Ok((chunks, next.map(|next| PyBytes::new(py, &next))))
}

pub fn terms_bytes(terms: &[Term]) -> Vec<u8> {
    terms.iter().flat_map(|term| term.to_be_bytes()).collect()
}

fn terms_of(bytes: &[u8]) -> PyResult<Vec<Term>> {
    let (terms, rest) = bytes.as_chunks::<TERM>();
    if !rest.is_empty() {
        return Err(invalid(format!("terms have {TERM} bytes each")));
    }
    Ok(terms.iter().map(|term| Term::from_be_bytes(*term)).collect())
}
