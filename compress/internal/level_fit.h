// Levels for magnitudes, by the method of Lloyd and Max (S. P. Lloyd 1982, "Least squares
// quantization in PCM", IEEE Trans. Inf. Theory 28; J. Max 1960). Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sotto::internal {

/// The most levels that are fitted.
inline constexpr std::size_t kMostLevels = 8;

/// Puts the magnitudes of `values`, at least one and all finite, into cells, and sets each level to
/// the mean of its cell, summed in double precision in a fixed order and rounded to float32; of a
/// cell without values it is not negative and finite. cells[i] is the cell of |values[i]|.
///
/// Where there are no more distinct magnitudes than levels, each has its own. Otherwise the cells
/// begin between quantiles and equal ranges, and are moved at most 8 times so that each magnitude
/// goes to the nearest level. Magnitudes that share an exponent and the upper bits of their
/// mantissas move together: they differ by less than 2^-8 of the range of their logarithms.
void fit_levels(std::span<const float> values, std::span<float> levels,
                std::span<std::uint8_t> cells);

}  // namespace sotto::internal
