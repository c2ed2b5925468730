//! Keccak-256 of many inputs at once.
//!
//! Finishing a block hashes a few short inputs per transaction. With AVX-512, eight inputs are
//! hashed in parallel at little more than the cost of one. Single inputs and other processors use
//! `alloy_primitives::keccak256`.

use alloy_primitives::{B256, keccak256};

/// With fewer inputs than this, hashing one by one is as fast.
#[cfg(target_arch = "x86_64")]
const WORTH_WHILE: usize = 4;

/// The hash of each input, in order.
pub fn hash_all<T: AsRef<[u8]>>(texts: &[T]) -> Vec<B256> {
    #[cfg(target_arch = "x86_64")]
    if texts.len() >= WORTH_WHILE && is_x86_feature_detected!("avx512f") {
        return wide::hash_all(texts);
    }
    texts.iter().map(keccak256).collect()
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::{
        __m512i, _mm512_rol_epi64, _mm512_set_epi64, _mm512_set1_epi64, _mm512_setzero_si512,
        _mm512_ternarylogic_epi64, _mm512_xor_si512,
    };
    use std::array::from_fn;

    use alloy_primitives::{B256, keccak256};

    const LANES: usize = 8;
    /// The number of bytes absorbed per permutation, and the same in words.
    const RATE: usize = 136;
    const RATE_WORDS: usize = RATE / 8;

    /// The same word of eight Keccak states.
    type Word = __m512i;

    /// Requires AVX-512F.
    pub(super) fn hash_all<T: AsRef<[u8]>>(texts: &[T]) -> Vec<B256> {
        let mut hashes = vec![B256::ZERO; texts.len()];
        // Group inputs with the same number of blocks, so that short ones do not wait for long
        // ones.
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|&at| texts[at].as_ref().len() / RATE);
        for group in order.chunks(LANES) {
            if let [alone] = group {
                hashes[*alone] = keccak256(&texts[*alone]);
                continue;
            }
            let lanes = from_fn(|lane| group.get(lane).map_or(&[][..], |&at| texts[at].as_ref()));
            // SAFETY: the caller has checked that the processor has AVX-512F.
            let found = unsafe { hash_lanes(&lanes) };
            group.iter().zip(found).for_each(|(&at, hash)| hashes[at] = hash);
        }
        hashes
    }

    #[target_feature(enable = "avx512f")]
    fn hash_lanes(lanes: &[&[u8]; LANES]) -> [B256; LANES] {
        let blocks = lanes.map(|text| text.len() / RATE + 1);
        let most = blocks.into_iter().fold(0, usize::max);
        let mut state = [_mm512_setzero_si512(); 25];
        let mut hashes = [B256::ZERO; LANES];
        for block in 0..most {
            let [a, b, c, d, e, f, g, h] = lanes.map(|text| words_of(text, block));
            for at in 0..RATE_WORDS {
                let taken =
                    _mm512_set_epi64(h[at], g[at], f[at], e[at], d[at], c[at], b[at], a[at]);
                state[at] = _mm512_xor_si512(state[at], taken);
            }
            permute(&mut state);
            let words = [state[0], state[1], state[2], state[3]].map(lanes_of);
            for lane in (0..LANES).filter(|&lane| blocks[lane] == block + 1) {
                let bytes = words.map(|word| word[lane].to_le_bytes());
                hashes[lane] = B256::from_slice(bytes.as_flattened());
            }
        }
        hashes
    }

    /// The block of an input to absorb, padded if the input ends in it; zeros after the end.
    fn words_of(text: &[u8], block: usize) -> [i64; RATE_WORDS] {
        let Some(rest) = text.get(block * RATE..) else { return [0; RATE_WORDS] };
        if let Some(whole) = rest.first_chunk() {
            return words(whole);
        }
        let mut padded = [0_u8; RATE];
        padded[..rest.len()].copy_from_slice(rest);
        padded[rest.len()] ^= 0x01;
        padded[RATE - 1] ^= 0x80;
        words(&padded)
    }

    fn words(bytes: &[u8; RATE]) -> [i64; RATE_WORDS] {
        let (words, _) = bytes.as_chunks::<8>();
        from_fn(|at| i64::from_le_bytes(words[at]))
    }

    fn lanes_of(word: Word) -> [u64; LANES] {
        // SAFETY: both types are 64 bytes without padding, and any bit pattern is a valid u64.
        unsafe { std::mem::transmute::<Word, [u64; LANES]>(word) }
    }

    /// Repeats the body for every word of a state, or of a column. The compiler does not unroll
    /// loops of this size, and words with a variable index are kept in memory.
    macro_rules! each {
        (word $at:ident $body:block) => {
            each!($at $body 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24)
        };
        (column $at:ident $body:block) => { each!($at $body 0 1 2 3 4) };
        ($at:ident $body:block $($value:literal)+) => { $({ const $at: usize = $value; $body })+ };
    }

    /// Keccak-f[1600], FIPS 202 section 3.3; word `x + 5 * y` is lane (x, y) of the standard.
    #[target_feature(enable = "avx512f")]
    fn permute(state: &mut [Word; 25]) {
        let mut words = *state;
        let mut moved = [_mm512_setzero_si512(); 25];
        let mut column = [_mm512_setzero_si512(); 5];
        for round in ROUND_CONSTANTS {
            each!(column X {
                let three = xor3(words[X], words[X + 5], words[X + 10]);
                column[X] = xor3(three, words[X + 15], words[X + 20]);
            });
            each!(word AT {
                const X: usize = AT % 5;
                const Y: usize = AT / 5;
                let turned = _mm512_rol_epi64::<1>(column[(X + 1) % 5]);
                let mixed = xor3(words[AT], column[(X + 4) % 5], turned);
                moved[Y + 5 * ((2 * X + 3 * Y) % 5)] = _mm512_rol_epi64::<{ ROTATIONS[AT] }>(mixed);
            });
            each!(word AT {
                const ROW: usize = AT - AT % 5;
                let next = moved[ROW + (AT + 1) % 5];
                words[AT] = chi(moved[AT], next, moved[ROW + (AT + 2) % 5]);
            });
            words[0] = _mm512_xor_si512(words[0], _mm512_set1_epi64(round as i64));
        }
        *state = words;
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn xor3(a: Word, b: Word, c: Word) -> Word {
        _mm512_ternarylogic_epi64::<0x96>(a, b, c)
    }

    /// `a ^ (!b & c)`
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn chi(a: Word, b: Word, c: Word) -> Word {
        _mm512_ternarylogic_epi64::<0xd2>(a, b, c)
    }

    const ROTATIONS: [i32; 25] = [
        0, 1, 62, 28, 27, 36, 44, 6, 55, 20, 3, 10, 43, 25, 39, 41, 45, 15, 21, 8, 18, 2, 61, 56,
        14,
    ];

    const ROUND_CONSTANTS: [u64; 24] = [
        0x0000_0000_0000_0001,
        0x0000_0000_0000_8082,
        0x8000_0000_0000_808a,
        0x8000_0000_8000_8000,
        0x0000_0000_0000_808b,
        0x0000_0000_8000_0001,
        0x8000_0000_8000_8081,
        0x8000_0000_0000_8009,
        0x0000_0000_0000_008a,
        0x0000_0000_0000_0088,
        0x0000_0000_8000_8009,
        0x0000_0000_8000_000a,
        0x0000_0000_8000_808b,
        0x8000_0000_0000_008b,
        0x8000_0000_0000_8089,
        0x8000_0000_0000_8003,
        0x8000_0000_0000_8002,
        0x8000_0000_0000_0080,
        0x0000_0000_0000_800a,
        0x8000_0000_8000_000a,
        0x8000_0000_8000_8081,
        0x8000_0000_0000_8080,
        0x0000_0000_8000_0001,
        0x8000_0000_8000_8008,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at * 31 + length) as u8).collect()
    }

    fn plain(texts: &[Vec<u8>]) -> Vec<B256> {
        texts.iter().map(keccak256).collect()
    }

    /// Without AVX-512 this compares the reference implementation with itself.
    #[test]
    fn texts_of_every_length_hash_as_alone() {
        let texts: Vec<_> = (0..600).map(text).collect();
        assert_eq!(hash_all(&texts), plain(&texts));
    }

    #[test]
    fn any_number_of_texts_of_mixed_lengths_hash_as_alone() {
        for count in 0..40 {
            let texts: Vec<_> = (0..count).map(|at| text(at * 97 % 450)).collect();
            assert_eq!(hash_all(&texts), plain(&texts), "{count} texts");
        }
    }
}
