#include "labels.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/philox.h>

#include "file.h"

namespace sotto {

std::vector<double> distinct_labels(const std::filesystem::path& path,
                                    std::span<const double> labels) {
  constexpr std::size_t kMaxClasses = 1000;
  std::vector<double> distinct(labels.begin(), labels.end());
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  if (distinct.size() > kMaxClasses) {
    refuse_file(path, "",
                fmt::format("{} different labels; at most {} classes are expected", distinct.size(),
                            kMaxClasses));
  }
  return distinct;
}

std::vector<std::string> class_names(std::span<const double> distinct) {
  std::vector<std::string> names;
  names.reserve(distinct.size());
  for (const double label : distinct) {
    names.push_back(fmt::to_string(label));
  }
  return names;
}

std::vector<std::int32_t> class_numbers(std::span<const double> labels,
                                        std::span<const double> distinct) {
  std::vector<std::int32_t> numbers;
  numbers.reserve(labels.size());
  for (const double label : labels) {
    const auto found = std::lower_bound(distinct.begin(), distinct.end(), label);
    numbers.push_back(static_cast<std::int32_t>(found - distinct.begin()));
  }
  return numbers;
}

Split split_rows(const std::filesystem::path& path, std::size_t rows) {
  if (rows < 2 || rows > std::numeric_limits<std::uint32_t>::max()) {
    refuse_file(path, "",
                fmt::format("{} row(s); 2 … 2^32 − 1 are expected, to train and to test", rows));
  }
  std::vector<std::uint32_t> order(rows);
  std::iota(order.begin(), order.end(), 0U);
  RandomStream stream({.seed = 0, .purpose = Purpose::partition});
  for (std::size_t i = rows; i > 1; --i) {
    std::swap(order[i - 1], order[stream.below(i)]);
  }
  const auto cut = static_cast<std::ptrdiff_t>(rows - std::max<std::size_t>(1, rows / 5));
  return {.train = {order.begin(), order.begin() + cut},
          .test = {order.begin() + cut, order.end()}};
}

}  // namespace sotto
