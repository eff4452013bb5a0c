#include <sotto/trainers/partition.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/base/nearest.h>
#include <sotto/base/philox.h>

namespace sotto {
namespace {

using Shard = std::vector<std::uint32_t>;

constexpr double kMinAlpha = 1e-4;  // below, log-gamma draws leave the range of a double
constexpr double kMaxAlpha = 1e6;

RandomStream stream_of(std::uint64_t seed, std::uint32_t bucket) {
  return RandomStream({.seed = seed, .purpose = Purpose::partition, .bucket = bucket});
}

void shuffle(Shard& rows, RandomStream& stream) {
  for (std::size_t i = rows.size(); i > 1; --i) {
    std::swap(rows[i - 1], rows[stream.below(i)]);
  }
}

/// Cuts `rows` into contiguous shards whose sizes differ by at most one.
std::vector<Shard> cut(const Shard& rows, std::size_t nodes) {
  std::vector<Shard> shards(nodes);
  auto at = rows.begin();
  for (std::size_t i = 0; i < nodes; ++i) {
    const auto share = static_cast<std::ptrdiff_t>(rows.size() / nodes + (i < rows.size() % nodes));
    shards[i].assign(at, at + share);
    at += share;
  }
  return shards;
}

/// One draw of Dir(α p), unnormalized; classes without examples get 0. Works in logarithms, because
/// Gamma(a) for small a is mostly smaller than any double: Gamma(a) = Gamma(a + 1) U^(1/a).
std::vector<double> draw_mix(const std::vector<Shard>& pools, std::size_t examples, double alpha,
                             RandomStream& stream) {
  std::vector<double> mix(pools.size(), -std::numeric_limits<double>::infinity());
  for (std::size_t k = 0; k < pools.size(); ++k) {
    if (!pools[k].empty()) {
      const double a = alpha * static_cast<double>(pools[k].size()) / static_cast<double>(examples);
      mix[k] = std::log(stream.gamma(a + 1)) + std::log(1 - stream.uniform()) / a;
    }
  }
  const double largest = *std::max_element(mix.begin(), mix.end());
  for (double& share : mix) {
    share = std::exp(share - largest);
  }
  return mix;
}

/// A class drawn by `mix` among those with examples left. When the mix gives them no weight at all,
/// each example left is equally likely.
std::size_t draw_class(const std::vector<double>& mix, const std::vector<Shard>& pools,
                       RandomStream& stream) {
  std::vector<double> weight(pools.size());
  for (std::size_t k = 0; k < pools.size(); ++k) {
    weight[k] = pools[k].empty() ? 0 : mix[k];
  }
  double total = std::accumulate(weight.begin(), weight.end(), 0.0);
  if (!(total > 0)) {
    std::transform(pools.begin(), pools.end(), weight.begin(),
                   [](const Shard& pool) { return static_cast<double>(pool.size()); });
    total = std::accumulate(weight.begin(), weight.end(), 0.0);
  }
  double point = stream.uniform() * total;
  std::size_t chosen = pools.size();
  for (std::size_t k = 0; k < pools.size(); ++k) {
    if (weight[k] > 0) {
      chosen = k;
      point -= weight[k];
      if (point < 0) {
        break;
      }
    }
  }
  check(chosen < pools.size(), "an example is left for every draw");
  return chosen;
}

std::vector<Shard> deal_dirichlet(std::span<const std::int32_t> labels, int classes,
                                  std::size_t nodes, double alpha, std::uint64_t seed) {
  std::vector<Shard> pools(static_cast<std::size_t>(classes));
  for (std::size_t row = 0; row < labels.size(); ++row) {
    pools[static_cast<std::size_t>(labels[row])].push_back(static_cast<std::uint32_t>(row));
  }
  RandomStream stream = stream_of(seed, 0);
  for (Shard& pool : pools) {
    shuffle(pool, stream);
  }
  std::vector<std::vector<double>> mixes;
  for (std::size_t i = 0; i < nodes; ++i) {
    mixes.push_back(draw_mix(pools, labels.size(), alpha, stream));
  }
  std::vector<Shard> shards(nodes);
  RandomStream draws = stream_of(seed, 1);
  for (std::size_t dealt = 0; dealt < labels.size(); ++dealt) {
    const std::size_t node = dealt % nodes;
    Shard& pool = pools[draw_class(mixes[node], pools, draws)];
    shards[node].push_back(pool.back());
    pool.pop_back();
  }
  return shards;
}

}  // namespace

std::string Partition::spec() const {
  switch (kind) {
    case Kind::iid:
      return "iid";
    case Kind::dirichlet:
      return fmt::format("dirichlet:{}", alpha);
    case Kind::label:
      return "label";
  }
  return {};
}

Partition parse_partition(std::string_view spec) {
  if (spec == "iid") {
    return {};
  }
  if (spec == "label") {
    return {.kind = Partition::Kind::label};
  }
  constexpr std::string_view kDirichlet = "dirichlet:";
  if (!spec.starts_with(kDirichlet)) {
    refuse_unknown("partition", spec, {"iid", "dirichlet", "label"},
                   {"iid", "dirichlet:ALPHA", "label"});
  }
  const std::string_view number = spec.substr(kDirichlet.size());
  Partition result{.kind = Partition::Kind::dirichlet};
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), result.alpha);
  if (error != std::errc{} || end != number.data() + number.size() ||
      !(result.alpha >= kMinAlpha && result.alpha <= kMaxAlpha)) {
    refuse("partition", spec, fmt::format("ALPHA is a number from {} to {}", kMinAlpha, kMaxAlpha));
  }
  return result;
}

std::vector<std::vector<std::uint32_t>> partition_examples(std::span<const std::int32_t> labels,
                                                           int classes, int nodes,
                                                           const Partition& partition,
                                                           std::uint64_t seed) {
  if (nodes < 1 || static_cast<std::size_t>(nodes) > labels.size()) {
    refuse("nodes", fmt::to_string(nodes),
           fmt::format("there are {} training examples, and every node needs one: take fewer "
                       "nodes or more data",
                       labels.size()));
  }
  const auto count = static_cast<std::size_t>(nodes);
  if (partition.kind == Partition::Kind::dirichlet) {
    return deal_dirichlet(labels, classes, count, partition.alpha, seed);
  }
  Shard rows(labels.size());
  std::iota(rows.begin(), rows.end(), 0U);
  if (partition.kind == Partition::Kind::label) {
    std::stable_sort(rows.begin(), rows.end(),
                     [labels](std::uint32_t a, std::uint32_t b) { return labels[a] < labels[b]; });
  } else {
    RandomStream stream = stream_of(seed, 0);
    shuffle(rows, stream);
  }
  return cut(rows, count);
}

}  // namespace sotto
