// Models as text: a CSV file without a header, one row of numbers for each model. Pure functions
// but for the file.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace sotto {

/// One row with 9 significant digits, which is enough to read the same floats back.
std::string parameter_row(std::span<const float> parameters);

/// The first row of the file at `path`. Throws Error naming file, place and what was expected:
/// `dimension` finite numbers.
std::vector<float> read_parameter_row(const std::string& path, std::size_t dimension);

}  // namespace sotto
