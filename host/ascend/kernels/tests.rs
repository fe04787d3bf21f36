//! Tests of the embedded kernels.

use super::*;

#[test]
fn the_simulator_runs_the_text_of_an_embedded_geometry_for_fewer_tokens() {
    assert!(!EMBEDDED.is_empty());
    for embedded in EMBEDDED {
        let text = simulated::text(&embedded.params).unwrap();
        for tokens in 1..=embedded.params.tokens {
            let code = embedded_code(&Params { tokens, ..embedded.params }, true).unwrap();
            assert!(code.iter().all(|kernel| **kernel == *text.as_bytes()));
        }
        for other in [
            Params { k: 1024, ..embedded.params },
            Params { retries: 3, ..embedded.params },
            Params { page: 64, ..embedded.params },
            Params { lifetime: Lifetime::Constant(16), ..embedded.params },
        ] {
            assert!(!is_compatible(&other, &embedded.params), "{other}");
        }
    }
    let small = Params::wide(16, 1, 128);
    let text = simulated::text(&small).unwrap();
    assert_eq!(*embedded_code(&small, true).unwrap()[0], *text.as_bytes());
}
