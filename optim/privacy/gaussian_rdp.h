// The Rényi differential privacy of one step of DP-SGD: the Gaussian mechanism on a Poisson sample.
//
// Each record is in the sample with probability q, on its own; to a sum in which no record moves
// the result by more than C, normal noise of deviation σ C is added. Neighbouring data sets differ
// by one record that is there or not (add/remove).
// Source: Mironov, Talwar and Zhang 2019, arXiv:1908.10530, Section 3.3. Pure functions.
#pragma once

namespace sotto {

/// ε of (α, ε)-RDP of one step, with σ = noise_multiplier and q = sampling_rate, for any order
/// α > 1:
///   ε = log A_α / (α − 1),  A_α = E_{z ~ N(0, σ²)} ((1 − q) + q exp((2 z − 1) / 2σ²))^α.
/// Infinite without noise, 0 when nothing is sampled. For whole orders nothing cancels; for others
/// the error of log A_α is about 1e-12 × max(1, log A_α). Takes a bounded number of steps, at most
/// 10^5 + α. Requires σ ≥ 0 and 0 ≤ q ≤ 1.
double subsampled_gaussian_rdp(double noise_multiplier, double sampling_rate, double order);

/// log erfc(x), also where erfc itself is 0 in double precision.
double log_erfc(double x);

}  // namespace sotto
