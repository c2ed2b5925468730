//! Counters of requests and bytes in memory shared with other processes.
//!
//! One process writes the cells, always with the interpreter attached. Readers never see a partly
//! written cell. The caller defines the layout of the cells.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

use crate::convert::{Arg, invalid};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Meter>()
}

/// The outcome index of a successful request.
pub const ANSWERED: usize = 0;

#[pyclass(frozen, module = "foreblock._engine")]
pub struct Meter {
    cells: &'static [AtomicU64],
    /// The upper bounds of all buckets but the last, in seconds.
    bounds: Box<[f64]>,
    outcomes: usize,
    /// The first of two cells: bytes received, bytes sent.
    traffic: usize,
    /// The minimum duration of a slow request, in seconds.
    slow: f64,
    /// The start of the last request, in seconds.
    began: AtomicU64,
    /// Keeps the cells in place.
    _buffer: PyBuffer<f64>,
}

/// Requests of one row in one bucket: above one bound and up to the next.
#[derive(Default)]
struct Run {
    row: usize,
    bucket: usize,
    above: f64,
    up_to: f64,
    count: f64,
    seconds: f64,
}

#[pymethods]
impl Meter {
    #[new]
    #[pyo3(signature = (cells, *, bounds, outcomes, traffic, slow = Arg(f64::INFINITY)))]
    fn new(
        cells: PyBuffer<f64>,
        bounds: Vec<Arg<f64>>,
        outcomes: Arg<usize>,
        traffic: Arg<usize>,
        slow: Arg<f64>,
    ) -> PyResult<Self> {
        let whole = cells.as_slice_ptr().filter(|_| !cells.readonly());
        let first = whole.map(|it| it.cast::<AtomicU64>()).filter(|it| it.is_aligned());
        let (Some(whole), Some(first)) = (whole, first) else {
            return Err(invalid("cells: writable floats in a row"));
        };
        // SAFETY: the buffer is held as long as the slice, its cells have the size and alignment of
        // a u64, and any bit pattern is a valid u64.
        let shared = unsafe { std::slice::from_raw_parts(first.as_ptr(), whole.len()) };
        let bounds = bounds.into_iter().map(|bound| bound.0).collect();
        let (outcomes, traffic, slow) = (outcomes.0, traffic.0, slow.0);
        let began = AtomicU64::default();
        Ok(Self { cells: shared, bounds, outcomes, traffic, slow, began, _buffer: cells })
    }

    fn begin(&self) {
        self.began.store(monotonic().to_bits(), Ordering::Relaxed);
    }

    #[getter]
    fn began(&self) -> f64 {
        f64::from_bits(self.began.load(Ordering::Relaxed))
    }

    #[pyo3(signature = (row, /))]
    fn answered(&self, row: Arg<usize>) -> bool {
        let seconds = monotonic() - self.began();
        self.request(row.0, ANSWERED, seconds);
        seconds >= self.slow
    }

    #[pyo3(name = "request", signature = (row, outcome, seconds, /))]
    fn count_request(&self, row: Arg<usize>, outcome: Arg<usize>, seconds: Arg<f64>) {
        self.request(row.0, outcome.0, seconds.0);
    }

    #[pyo3(name = "traffic", signature = (received, sent, /))]
    fn count_traffic(&self, received: Arg<usize>, sent: Arg<usize>) {
        self.traffic(received.0, sent.0);
    }
}

/// Python's `time.monotonic`, in seconds.
fn monotonic() -> f64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes only to `now`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

impl Meter {
    /// Counts a request with this outcome and duration. A row has one cell for each outcome, one
    /// for each bucket, and one for the sum of all durations.
    pub fn request(&self, row: usize, outcome: usize, seconds: f64) {
        let bucket = self.bounds.partition_point(|bound| *bound < seconds);
        self.add_run(&Run { row, bucket, count: 1.0, seconds, ..Run::default() }, outcome);
    }

    /// Like `request`, for several requests with the same outcome. Consecutive ones of the same row
    /// and bucket are added together, because a large batch has few distinct ones.
    pub fn requests(&self, timed: impl Iterator<Item = (usize, Duration)>, outcome: usize) {
        let mut run = Run::default();
        for (row, took) in timed {
            let seconds = took.as_secs_f64();
            if row != run.row || !(run.above < seconds && seconds <= run.up_to) {
                self.add_run(&run, outcome);
                let bucket = self.bounds.partition_point(|bound| *bound < seconds);
                let above = bucket.checked_sub(1).map_or(f64::MIN, |below| self.bounds[below]);
                let up_to = self.bounds.get(bucket).copied().unwrap_or(f64::INFINITY);
                run = Run { row, bucket, above, up_to, ..Run::default() };
            }
            run.count += 1.0;
            run.seconds += seconds;
        }
        self.add_run(&run, outcome);
    }

    fn add_run(&self, run: &Run, outcome: usize) {
        if run.count > 0.0 {
            let buckets = run.row.saturating_add(self.outcomes);
            self.add(run.row.saturating_add(outcome), run.count);
            self.add(buckets.saturating_add(run.bucket), run.count);
            self.add(buckets.saturating_add(self.bounds.len() + 1), run.seconds);
        }
    }

    pub fn traffic(&self, received: usize, sent: usize) {
        self.add(self.traffic, received as f64);
        self.add(self.traffic.saturating_add(1), sent as f64);
    }

    /// There is only one writer, so a load and a store are sufficient.
    fn add(&self, cell: usize, what: f64) {
        if let Some(cell) = self.cells.get(cell) {
            let sum = f64::from_bits(cell.load(Ordering::Relaxed)) + what;
            cell.store(sum.to_bits(), Ordering::Relaxed);
        }
    }
}
