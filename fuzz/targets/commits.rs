#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| foreblock_fuzz::commits::run(data));
