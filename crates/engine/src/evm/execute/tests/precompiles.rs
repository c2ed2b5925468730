//! Moved and disabled precompiles.

use super::*;

/// The gas of BALANCE at a precompile and at its destination: EIP-2929 warms only the fork's own
/// precompiles.
#[test]
fn moved_precompiles_answer_elsewhere_and_warm_addresses_stay() {
    let (identity, elsewhere) = (precompile(4), addr(0x99));
    for rules in [ethereum("Osaka"), optimism("Jovian")] {
        let env = env(rules);
        let moved = PrecompileOverrides::new(rules, [], [(identity, elsewhere)]).expect("moves");
        let moved = Options { precompiles: Some(Arc::new(moved)), ..Options::default() };
        for (options, answering) in [
            (Options::default(), identity),
            (moved.clone(), elsewhere),
            (Options::default(), identity),
        ] {
            for (address, gas) in [(identity, 100), (elsewhere, 2600)] {
                let code = Asm::default().push_address(address).op(op::BALANCE);
                let mut overlay = state(code).overlay();
                let outcome = call(&mut overlay, &env, &message(CONTRACT), options.clone());
                assert_eq!(outcome.expect("runs").gas_used - 21_003, gas, "{address}");

                let echo = Message { data: Bytes::from_static(b"echo"), ..message(address) };
                let outcome = call(&mut overlay, &env, &echo, options.clone()).expect("runs");
                let answer = if address == answering { &b"echo"[..] } else { b"" };
                assert_eq!(&outcome.output[..], answer, "{address}");
            }
        }
        // Also with an EVM that has not been used before.
        std::thread::scope(|scope| {
            let fresh = scope.spawn(|| {
                let code = Asm::default().push_address(identity).op(op::BALANCE);
                call(&mut state(code).overlay(), &env, &message(CONTRACT), moved.clone())
            });
            let outcome = fresh.join().expect("no panic").expect("runs");
            assert_eq!(outcome.gas_used - 21_003, 100);
        });
    }
}

#[test]
fn precompile_overrides_are_decided_as_other_clients_decide_them() {
    let rules = ethereum("Osaka");
    let new = |overridden: &[Address], moves: &[(Address, Address)]| {
        PrecompileOverrides::new(rules, overridden.iter().copied(), moves.iter().copied())
    };
    let (two, four, there) = (precompile(2), precompile(4), addr(0x99));
    assert_eq!(
        new(&[], &[(addr(9), there), (addr(8), there)]),
        Err(Error::NotAPrecompile(addr(8)))
    );
    assert!(new(&[addr(7)], &[]).expect("valid").is_empty());

    let echo = |overrides: PrecompileOverrides, to: Address| {
        let options = Options { precompiles: Some(Arc::new(overrides)), ..Options::default() };
        let message = Message { data: Bytes::from_static(b"echo"), ..message(to) };
        call(&mut state(Bytes::new()).overlay(), &env(rules), &message, options)
            .expect("runs")
            .output
    };
    // The highest source wins, regardless of order.
    assert_eq!(&echo(new(&[], &[(four, there), (two, there)]).expect("valid"), there)[..], b"echo");
    assert_eq!(&echo(new(&[four], &[]).expect("valid"), four)[..], b"");
    // A move may replace another precompile.
    assert_eq!(&echo(new(&[], &[(four, two)]).expect("valid"), two)[..], b"echo");
}

#[test]
fn code_put_in_place_of_a_precompile_runs() {
    let rules = ethereum("Osaka");
    let mut overlay = state(Bytes::new()).overlay();
    let code = Some(Asm::default().push(42u64).return_top().into());
    overlay.apply(precompile(4), &Override { code, ..Override::default() }).expect("applies");
    let off = PrecompileOverrides::new(rules, [precompile(4)], []).expect("valid");
    let options = Options { precompiles: Some(Arc::new(off)), ..Options::default() };
    let outcome = call(&mut overlay, &env(rules), &message(precompile(4)), options);
    assert_eq!(word(&outcome.expect("runs")), U256::from(42));
}
