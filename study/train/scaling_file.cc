#include <sotto/study/train/scaling_file.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include <sotto/base/digest.h>
#include <sotto/base/error.h>
#include <sotto/base/input_file.h>
#include <sotto/base/text.h>
#include <sotto/optim/privacy/privacy_options.h>
#include <sotto/study/toml/reader.h>
#include <sotto/study/toml/text.h>

namespace sotto::study {
namespace {

constexpr std::uint64_t kMostScalingBytes = 16U << 20U;
constexpr std::size_t kMostScaledColumns = 1U << 16U;
constexpr double kMostNoiseMultiplier = 1e6;
constexpr std::string_view kSums = "sotto-column-sums";
constexpr std::string_view kScaling = "sotto-scaling";

std::string read_whole(std::string_view option, const std::string& path) {
  auto text = read_input(path, kMostScalingBytes);
  if (!text.ok()) {
    sotto::refuse(option, path, text.status().message());
  }
  return *std::move(text);
}

/// Beyond it a number is of no table, and sums of several may overflow.
constexpr double kMostSum = 0x1p60;

/// Refuses a file of another kind, or of another version.
void require_kind(TomlReader& in, std::string_view kind) {
  const bool sums = kind == kSums;
  if (in.has(sums ? kScaling : kSums)) {
    in.refuse(sums ? kScaling : kSums,
              sums ? "this is a scaling that was combined; the sums of one site are expected"
                   : "these are the sums of one site; combine those of all with "
                     "`sotto data scaling --combine`");
  }
  in.require(kind, fmt::format("the version of this format, {} = 1", kind));
  (void)in.count(kind, 1, 1);
}

double finite(TomlReader& in, std::string_view key) {
  in.require(key, "a number");
  const double value = *in.number(key);
  if (!std::isfinite(value)) {
    in.refuse(key, "it must be finite");
  }
  return value;
}

double sum_in(TomlReader& in, std::string_view key) {
  const double value = finite(in, key);
  if (std::abs(value) > kMostSum) {
    in.refuse(key, "no table has so many rows");
  }
  return value;
}

double noise_in(TomlReader& in, double least) {
  const double noise = finite(in, "noise-multiplier");
  if (noise < least || noise > kMostNoiseMultiplier) {
    in.refuse("noise-multiplier",
              fmt::format("it must be {} to {:.0f}", least, kMostNoiseMultiplier));
  }
  return noise;
}

std::string name_in(TomlReader& in) {
  in.require("name", "the column's name");
  std::string name = *in.text("name");
  if (name.empty()) {
    in.refuse("name", "it is empty");
  }
  return name;
}

bool is_target(TomlReader& in) {
  const std::string role = in.text("role").value_or("feature");
  if (role != "feature" && role != "target") {
    in.refuse("role", "it is feature or target");
  }
  return role == "target";
}

/// Calls `take` with each [[column]]; each has a name of its own.
template <typename Take>
void for_each_column(TomlReader& in, const Take& take) {
  auto columns = in.tables("column");
  if (columns.empty() || columns.size() > kMostScaledColumns) {
    in.refuse("column", fmt::format("1 to {} tables [[column]] are expected; found {}",
                                    kMostScaledColumns, columns.size()));
  }
  std::set<std::string> names;
  for (TomlReader& column : columns) {
    const std::string name = name_in(column);
    if (!names.insert(name).second) {
      column.refuse("name", "there is another column of this name");
    }
    take(column, name, is_target(column));
    column.finish();
  }
}

std::string column_head(const std::string& name, bool target) {
  return fmt::format("\n[[column]]\nname = {}\nrole = \"{}\"\n", toml_text(name),
                     target ? "target" : "feature");
}

}  // namespace

TableSums read_table_sums(std::string_view option, const std::string& path) {
  const std::string text = read_whole(option, path);
  const toml::table file = parse_toml(path, text);
  TomlReader in(path, "", file);
  require_kind(in, kSums);
  TableSums sums;
  sums.source = path;
  sums.digest = sha256_hex(std::as_bytes(std::span(text)));
  sums.rows = sum_in(in, "rows");
  if (auto privacy = in.table("privacy")) {
    sums.privacy.noise_multiplier = noise_in(*privacy, kLeastNoiseMultiplier);
    sums.privacy.epsilon = finite(*privacy, "epsilon");
    sums.privacy.delta = finite(*privacy, "delta");
    privacy->finish();
  }
  for_each_column(in, [&](TomlReader& column, const std::string& name, bool target) {
    ColumnSums& one = sums.columns.emplace_back();
    one.name = name;
    one.target = target;
    one.least = finite(column, "least");
    one.largest = finite(column, "largest");
    if (one.least >= one.largest || !std::isfinite(one.largest - one.least) ||
        !std::isfinite(one.largest + one.least)) {
      column.refuse("largest", "it must be above least, by a finite number");
    }
    one.sum = sum_in(column, "sum");
    one.squares = sum_in(column, "squares");
  });
  in.finish();
  return sums;
}

std::string table_sums_text(const TableSums& sums) {
  std::string text = fmt::format("{} = 1\nrows = {}\n", kSums, sums.rows);
  if (sums.privacy.noise_multiplier > 0) {
    text += fmt::format(
        "\n[privacy]  # of one row, in all that stands below together\n"
        "noise-multiplier = {}\nepsilon = {}\ndelta = {}\n",
        sums.privacy.noise_multiplier, sums.privacy.epsilon, sums.privacy.delta);
  }
  for (const ColumnSums& column : sums.columns) {
    text += column_head(column.name, column.target);
    text += fmt::format("least = {}\nlargest = {}\nsum = {}\nsquares = {}\n", column.least,
                        column.largest, column.sum, column.squares);
  }
  return text;
}

SharedScaling read_scaling(std::string_view option, const std::string& path) {
  const std::string text = read_whole(option, path);
  const toml::table file = parse_toml(path, text);
  TomlReader in(path, "", file);
  require_kind(in, kScaling);
  SharedScaling scaling;
  scaling.source = path;
  for (TomlReader& site : in.tables("site")) {
    site.require("sums", "the SHA-256 of the site's file of sums");
    ScalingSource& source = scaling.sites.emplace_back();
    source.sums = *site.text("sums");
    source.noise_multiplier = noise_in(site, 0);
    site.finish();
  }
  for_each_column(in, [&](TomlReader& column, const std::string& name, bool target) {
    ScaledColumn scaled{.name = name, .mean = finite(column, "mean")};
    scaled.deviation = finite(column, "deviation");
    if (scaled.deviation <= 0 || !std::isfinite(1 / scaled.deviation)) {
      column.refuse("deviation", "it must be positive");
    }
    (target ? scaling.targets : scaling.columns).push_back(std::move(scaled));
  });
  in.finish();
  return scaling;
}

std::string scaling_text(const SharedScaling& scaling) {
  std::string text = fmt::format("{} = 1\n", kScaling);
  for (const ScalingSource& site : scaling.sites) {
    text += fmt::format("\n[[site]]\nsums = {}\nnoise-multiplier = {}\n", toml_text(site.sums),
                        site.noise_multiplier);
  }
  for (const bool target : {false, true}) {
    for (const ScaledColumn& column : target ? scaling.targets : scaling.columns) {
      text += column_head(column.name, target);
      text += fmt::format("mean = {}\ndeviation = {}\n", column.mean + 0.0, column.deviation);
    }
  }
  return text;
}

}  // namespace sotto::study
