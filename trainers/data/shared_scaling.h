// Means and deviations of a table's columns that several sites use in place of their own, so that
// one model takes the same numbers in everywhere.
//
//   const SharedScaling scaling = combine_sums(sums).scaling;   // sums of each site: table_sums.h
//   load_task("csv:patients.csv", &scaling);
//
// Plain values; pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <sotto/trainers/data/dataset.h>
#include <sotto/trainers/data/table_sums.h>

namespace sotto {

/// A column and the numbers that scale it: a value v goes in as (v − mean) / deviation.
struct ScaledColumn {
  std::string name;      ///< the column's name, as `printable` (base/text.h) has it
  double mean = 0;       ///< finite
  double deviation = 1;  ///< positive and finite

  /// The scaling as data sets have it.
  FeatureScaling scaling() const { return {mean, 1 / deviation}; }
};

/// A site's sums that a scaling was computed from.
struct ScalingSource {
  std::string sums;  ///< SHA-256 of the site's file, in hex
  /// Noise multiplier of its sums (private_moments.h); 0: without noise.
  double noise_multiplier = 0;
};

struct SharedScaling {
  std::string source{};  ///< origin of the scaling, a file's path, for messages
  std::vector<ScaledColumn> columns{};
  std::vector<ScaledColumn> targets{};  ///< targets of a regression
  std::vector<ScalingSource> sites{};   ///< sites whose data went in; empty: none
};

/// A scaling that was computed, and what its user must be told.
struct CombinedScaling {
  SharedScaling scaling;
  double rows = 0;  ///< rows of all sites, as noise left them
  std::vector<std::string> warnings;
};

/// Mean and deviation of each column over the rows of all tables. Where noise left a variance
/// below its own size, or negative, that size is taken for the variance; of a column without noise
/// that is the same in all rows the deviation is 1. `warnings` names each. Throws Error (field
/// `combine`) without tables, where columns, roles or bounds differ, where one table is given
/// twice, for sums that no table has, and where noise left no rows.
CombinedScaling combine_sums(std::span<const TableSums> tables);

/// How much of a digest settings and messages show.
inline constexpr std::size_t kDigestShown = 16;

/// SHA-256 of names, roles, means and deviations in hex: two scalings are alike just where their
/// digests are.
std::string scaling_digest(const SharedScaling& scaling);

/// Throws Error (field `scaling`), naming the first difference, unless the scaling is of these
/// columns and targets in this order.
void require_columns(const SharedScaling& scaling, std::span<const std::string> columns,
                     std::span<const std::string> targets);

}  // namespace sotto
