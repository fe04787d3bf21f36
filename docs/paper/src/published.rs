//! Figures that the paper states, copied as data. The paper measured them on an Ascend 910B, with
//! K = 2048 and one token per step unless something else is said.
//!
//! Source: W. Kuang, X. Wang, C. Wu, J. Wang, W. Zhang, B. K. Chen, L. Lan, K. Zhang: "AVSG:
//! Accelerated Vectorized Sparse Gather for Efficient KV Cache Offload in Sparse-Attention LLM
//! Serving", Theory Lab, 2012 Labs, Huawei, 2026.

/// The values of gamma and of mu in [`REUSE`].
pub const SHARES: [f64; 3] = [0.5, 0.7, 0.9];

/// (S, hit rates in percent by gamma and mu) on the synthetic workload, L = 8: appendix "Cache Reuse".
pub const REUSE: [(u32, [[f64; 3]; 3]); 2] = [
    (4096, [[60.00, 70.44, 84.29], [74.76, 81.94, 90.12], [88.90, 92.61, 96.21]]),
    (8192, [[68.19, 81.27, 94.15], [82.55, 89.99, 96.79], [94.91, 97.02, 99.04]]),
];

/// (L, hit rate in percent) on 2000 requests from production, one representative layer, S = 8192:
/// appendix "Max Lifetime Ablation". L = 2 and 4 are drawn without figures, and L = 32 is drawn a
/// little below L = 16.
pub const LIFETIMES: [(i8, f64); 3] = [(1, 92.21), (8, 94.83), (16, 95.04)];

/// Percent of the ids of the same requests that the previous step selected, too.
pub const PREVIOUS_STEP: f64 = 81.61;

/// Hit rate of the same requests in percent with 4096 slots, L = 8.
pub const SLOTS_4096: f64 = 88.72;

/// (draft tokens, reuse in percent) in the first decode iteration of the same requests, all drafts
/// accepted: appendix "Cache Reuse".
pub const COLD_START: [(usize, f64); 4] = [(0, 0.0), (1, 38.71), (2, 53.79), (3, 61.87)];

/// (B, percent of the ids that hit, GB/s of S1, S2 and S3) with rows of 1152 bytes: appendix "H2D
/// Core-Binding Strategies". The bandwidth is that of the bytes that are copied.
pub const TRANSFERS: [(usize, usize, [f64; 3]); 24] = [
    (1, 0, [2.7164, 93.0307, 90.8505]),
    (1, 25, [2.7205, 67.6668, 93.7022]),
    (1, 50, [2.7351, 44.4206, 83.1734]),
    (1, 75, [2.6629, 21.938, 74.7369]),
    (2, 0, [5.3596, 97.4847, 98.8166]),
    (2, 25, [5.4038, 83.2732, 102.2639]),
    (2, 50, [5.3269, 53.9419, 94.1647]),
    (2, 75, [5.2613, 28.7019, 84.4718]),
    (4, 0, [10.6228, 104.2751, 100.6043]),
    (4, 25, [10.692, 84.447, 102.3319]),
    (4, 50, [10.8849, 58.7102, 100.6075]),
    (4, 75, [10.8392, 29.1469, 94.0896]),
    (8, 0, [21.423, 106.6558, 104.2904]),
    (8, 25, [20.8603, 85.8649, 102.9668]),
    (8, 50, [21.5623, 58.089, 103.2277]),
    (8, 75, [20.9256, 29.8066, 103.4507]),
    (16, 0, [41.6336, 108.4312, 104.9474]),
    (16, 25, [41.4463, 85.8342, 103.2037]),
    (16, 50, [43.0587, 59.2252, 105.5702]),
    (16, 75, [41.6196, 40.4595, 102.7434]),
    (32, 0, [83.1604, 108.4119, 105.4712]),
    (32, 25, [84.4773, 84.485, 103.384]),
    (32, 50, [81.7463, 76.8601, 106.5611]),
    (32, 75, [80.8333, 75.0018, 103.9796]),
];
