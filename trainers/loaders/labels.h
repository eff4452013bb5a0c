// Steps that the loaders of tables share: classes from numeric labels, and the split.
//
// Private to the loaders. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace sotto {

/// The distinct values in ascending order. Throws Error, naming the file, for more than 1000 of
/// them.
std::vector<double> distinct_labels(const std::filesystem::path& path,
                                    std::span<const double> labels);

/// The labels as text.
std::vector<std::string> class_names(std::span<const double> distinct);

/// Each label's place in `distinct`, which holds it.
std::vector<std::int32_t> class_numbers(std::span<const double> labels,
                                        std::span<const double> distinct);

struct Split {
  std::vector<std::uint32_t> train;
  std::vector<std::uint32_t> test;
};

/// A fixed shuffle of 0 … rows − 1, of which a fifth (at least one) tests. Throws Error, naming the
/// file, for fewer than two rows or more than 2^32 − 1.
Split split_rows(const std::filesystem::path& path, std::size_t rows);

}  // namespace sotto
