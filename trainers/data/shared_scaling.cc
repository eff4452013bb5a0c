#include <sotto/trainers/data/shared_scaling.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include <sotto/base/digest.h>
#include <sotto/base/error.h>
#include <sotto/base/text.h>

namespace sotto {
namespace {

/// Below it a variance, in units of half the bounds' distance, may be the rounding of its sums.
constexpr double kLeastVariance = 0x1p-28;

std::string_view role_of(const ColumnSums& column) { return column.target ? "target" : "feature"; }

/// Throws Error where two tables cannot be added up.
void require_alike(const TableSums& first, const TableSums& other) {
  const auto differs = [&](const std::string& how) {
    refuse("combine", other.source, fmt::format("{} in {}", how, first.source));
  };
  if (first.columns.size() != other.columns.size()) {
    differs(fmt::format("it has sums of {} columns, and there are {}", other.columns.size(),
                        first.columns.size()));
  }
  for (std::size_t k = 0; k < first.columns.size(); ++k) {
    const ColumnSums& a = first.columns[k];
    const ColumnSums& b = other.columns[k];
    if (a.name != b.name) {
      differs(fmt::format("its column {} is '{}', and it is '{}'", k + 1, excerpt(b.name),
                          excerpt(a.name)));
    }
    if (a.target != b.target) {
      differs(fmt::format("'{}' is a {} there, and a {}", excerpt(b.name), role_of(b), role_of(a)));
    }
    if (a.least != b.least || a.largest != b.largest) {
      differs(fmt::format("'{}' has the bounds {}:{} there, and {}:{}", excerpt(b.name), b.least,
                          b.largest, a.least, a.largest));
    }
  }
  if (!first.digest.empty() && first.digest == other.digest) {
    refuse("combine", other.source, fmt::format("these are the sums of {}", first.source));
  }
}

/// σ Δ of a table's noise.
double noise_of(const TableSums& table) {
  return table.privacy.noise_multiplier *
         std::sqrt(1 + 2 * static_cast<double>(table.columns.size()));
}

/// Throws Error for sums that no rows have, whatever the noise: a normal number lies within ±8.5
/// (base/secret_stream.h), and values within −1 … 1.
void require_possible(const TableSums& table) {
  const double noise = 18 * noise_of(table) + 1e-6;
  const double most = std::max(0.0, table.rows) * (1 + 1e-6) + noise;
  for (const ColumnSums& column : table.columns) {
    if (std::abs(column.sum) > most || column.squares > most || column.squares < -noise) {
      refuse("combine", table.source,
             fmt::format("'{}' has sums there that no {:.6g} rows have: they are of no table",
                         excerpt(column.name), table.rows));
    }
  }
}

/// The mean and the deviation of a column of several tables, in the table's units.
ScaledColumn combined_column(std::span<const TableSums> tables, std::size_t k, double rows,
                             double noise, std::vector<std::string>& warnings) {
  const ColumnSums& column = tables.front().columns[k];
  double sum = 0;
  double squares = 0;
  for (const TableSums& table : tables) {
    sum += table.columns[k].sum;
    squares += table.columns[k].squares;
  }
  const double half = (column.largest - column.least) / 2;
  const double mean = std::clamp(sum / rows, -1.0, 1.0);
  double variance = std::min(squares / rows, 1.0) - mean * mean;
  ScaledColumn scaled{.name = column.name,
                      .mean = (column.least + column.largest) / 2 + half * mean};
  if (noise == 0 && variance < kLeastVariance) {
    warnings.push_back(fmt::format(
        "'{}' is the same in all rows, or its bounds {}:{} are much too wide: it is only shifted",
        excerpt(column.name), column.least, column.largest));
    return scaled;
  }
  const double hidden = noise / rows;  // what noise may do to a variance
  if (noise > 0 && variance < hidden) {
    warnings.push_back(fmt::format(
        "'{}': its variance is {:.3g} with noise, of the size of the noise, {:.3g}, which is taken "
        "for it; narrower bounds than {}:{}, more rows or a larger budget would tell it",
        excerpt(column.name), variance * half * half, hidden * half * half, column.least,
        column.largest));
    variance = std::min(hidden, 1.0);
  }
  scaled.deviation = std::sqrt(variance) * half;
  return scaled;
}

}  // namespace

CombinedScaling combine_sums(std::span<const TableSums> tables) {
  if (tables.empty()) {
    throw Error("combine", "name the sums of one site at least");
  }
  CombinedScaling combined;
  double variance = 0;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    for (std::size_t before = 0; before < i; ++before) {
      require_alike(tables[before], tables[i]);
    }
    combined.rows += tables[i].rows;
    variance += noise_of(tables[i]) * noise_of(tables[i]);
    combined.scaling.sites.push_back({tables[i].digest, tables[i].privacy.noise_multiplier});
  }
  const double noise = std::sqrt(variance);
  if (!(combined.rows >= 1)) {
    throw Error("combine", fmt::format("with noise there are {:.4g} rows in all: the noise of "
                                       "deviation {:.4g} hides that there are any; take more rows, "
                                       "or a larger budget",
                                       combined.rows, noise));
  }
  for (const TableSums& table : tables) {
    require_possible(table);
  }
  if (noise > 0 && combined.rows < 10 * noise) {
    combined.warnings.push_back(
        fmt::format("there are {:.0f} rows, and sums have noise of deviation {:.3g}: means may be "
                    "off by {:.0f} % of half the distance of their bounds",
                    combined.rows, noise, 100 * noise / combined.rows));
  }
  for (std::size_t k = 0; k < tables.front().columns.size(); ++k) {
    auto& list =
        tables.front().columns[k].target ? combined.scaling.targets : combined.scaling.columns;
    list.push_back(combined_column(tables, k, combined.rows, noise, combined.warnings));
  }
  return combined;
}

std::string scaling_digest(const SharedScaling& scaling) {
  std::string text;
  for (const auto& [role, columns] :
       {std::pair{"feature", &scaling.columns}, {"target", &scaling.targets}}) {
    for (const ScaledColumn& column : *columns) {
      text += fmt::format("{} {} {} {}\n", role, column.mean + 0.0, column.deviation,
                          one_line(column.name));
    }
  }
  return sha256_hex(std::as_bytes(std::span(text)));
}

namespace {

void require_names(const SharedScaling& scaling, std::span<const ScaledColumn> scaled,
                   std::span<const std::string> names, std::string_view what) {
  for (std::size_t k = 0; k < std::max(scaled.size(), names.size()); ++k) {
    const std::string here = k < names.size() ? printable(names[k]) : "";
    if (k < scaled.size() && k < names.size() && scaled[k].name == here) {
      continue;
    }
    const std::string there =
        k < scaled.size() ? fmt::format("'{}'", excerpt(scaled[k].name)) : "none";
    refuse("scaling", scaling.source,
           fmt::format("{} {} is {} there, and {} in the table: it has the scaling of other "
                       "columns, or of these in another order",
                       what, k + 1, there,
                       k < names.size() ? fmt::format("'{}'", excerpt(here)) : "none"));
  }
}

}  // namespace

void require_columns(const SharedScaling& scaling, std::span<const std::string> columns,
                     std::span<const std::string> targets) {
  require_names(scaling, scaling.columns, columns, "feature");
  require_names(scaling, scaling.targets, targets, "target");
}

}  // namespace sotto
