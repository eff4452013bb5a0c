// Sums over the rows of one site's table, from which several sites compute a common scaling
// (shared_scaling.h) without showing each other a row.
//
// A value v of a used column with bounds [a, b] counts as u = (v − (a + b) / 2) / ((b − a) /
// 2), clipped to −1 … 1. What leaves is the number of rows and each column's Σ u and Σ u², with
// noise that hides one row in all of them together (optim/privacy/private_moments.h has the
// sensitivity, √(1 + 2 columns), and the argument). Classes are not counted.
//
// Plain values; pure functions of the files; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sotto {

/// Bounds of a column that are known without looking at the data.
struct ValueBounds {
  std::string column;
  double least = 0;
  double largest = 1;  ///< finite, and above `least`
};

/// "age=0:120,bmi=10:60". A name may hold commas, colons and '='. Throws Error (field `bounds`) for
/// what is no such list, for bounds that are not finite or in the wrong order, and for a column
/// that is named twice.
std::vector<ValueBounds> parse_bounds(std::string_view list);

/// The noise that is wanted.
struct SumsPrivacy {
  double noise_multiplier = 0;  ///< σ: deviation of the noise over the sensitivity; 0: no noise
  double epsilon = 0;           ///< ε of the noise at delta; unused without noise
  double delta = 1e-5;
  /// Takes the noise from this seed, which hides nothing. For tests.
  std::optional<std::uint64_t> test_seed{};
};

/// Sums of one column.
struct ColumnSums {
  std::string name;  ///< the column's name, as `printable` (base/text.h) has it
  bool target = false;
  double least = 0;    ///< a
  double largest = 1;  ///< b
  double sum = 0;      ///< Σ u
  double squares = 0;  ///< Σ u²
};

/// The sums that leave a site.
struct TableSums {
  std::string source{};  ///< origin of the sums, a file's path, for messages
  std::string digest{};  ///< SHA-256 of that file in hex; empty before it was written
  double rows = 0;
  SumsPrivacy privacy{};
  std::vector<ColumnSums> columns{};  ///< features in the table's order, then targets
};

/// The sums that leave a site, and facts for the site itself.
struct SummedTable {
  TableSums sums;
  std::size_t rows = 0;
  std::vector<std::size_t> clipped;  ///< number of values outside of the bounds, by column
  double noise = 0;                  ///< deviation σ Δ of the noise of each sum
  std::vector<std::string> warnings;
};

/// Sums over all rows of a table, the test rows among them; `task` is a file, or csv:FILE with its
/// parameters. Columns of true and false have the bounds 0 and 1 unless others are given. Throws
/// Error for a file that its loader refuses, for a task of another kind, and (field `bounds`) for
/// columns without bounds and bounds without a column.
SummedTable sum_table(std::string_view task, std::span<const ValueBounds> bounds,
                      const SumsPrivacy& privacy);

}  // namespace sotto
