#include <sotto/trainers/data/partition.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/base/number.h>
#include <sotto/base/philox.h>

namespace sotto {
namespace {

using Shard = std::vector<std::uint32_t>;

constexpr double kLeastAlpha = 1e-4;  // below, log-gamma draws leave the range of a double
constexpr double kMostAlpha = 1e6;

/// How a kind is written, with its number where it has one.
struct Form {
  Partition::Kind kind;
  std::string_view name;
  std::string_view synopsis;
  double Partition::*number;
};

constexpr auto kForms = std::to_array<Form>(
    {{Partition::Kind::iid, "iid", "iid", nullptr},
     {Partition::Kind::dirichlet, "dirichlet", "dirichlet:ALPHA", &Partition::alpha},
     {Partition::Kind::label, "label", "label", nullptr},
     {Partition::Kind::sizes, "sizes", "sizes:BETA", &Partition::beta},
     {Partition::Kind::blocks, "blocks", "blocks", nullptr}});

RandomStream stream_of(std::uint64_t seed, std::uint32_t bucket) {
  return RandomStream({.seed = seed, .purpose = Purpose::partition, .bucket = bucket});
}

void shuffle(Shard& rows, RandomStream& stream) {
  for (std::size_t i = rows.size(); i > 1; --i) {
    std::swap(rows[i - 1], rows[stream.below(i)]);
  }
}

/// Sizes of shards that differ by at most one.
std::vector<std::size_t> even_sizes(std::size_t examples, std::size_t nodes) {
  std::vector<std::size_t> sizes(nodes);
  for (std::size_t i = 0; i < nodes; ++i) {
    sizes[i] = examples / nodes + (i < examples % nodes ? 1 : 0);
  }
  return sizes;
}

/// Cuts `rows` into contiguous shards of these sizes.
std::vector<Shard> cut(const Shard& rows, const std::vector<std::size_t>& sizes) {
  std::vector<Shard> shards;
  auto at = rows.begin();
  for (const std::size_t size : sizes) {
    const auto end = at + static_cast<std::ptrdiff_t>(size);
    shards.emplace_back(at, end);
    at = end;
  }
  return shards;
}

/// One draw of Dir(a), unnormalized; where a_k is 0, so is the share. Works in logarithms, because
/// Gamma(a) for small a is mostly smaller than any double: Gamma(a) = Gamma(a + 1) U^(1/a).
std::vector<double> draw_shares(const std::vector<double>& a, RandomStream& stream) {
  std::vector<double> shares(a.size(), -std::numeric_limits<double>::infinity());
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (a[k] > 0) {
      shares[k] = std::log(stream.gamma(a[k] + 1)) + std::log(1 - stream.uniform()) / a[k];
    }
  }
  const double largest = *std::max_element(shares.begin(), shares.end());
  for (double& share : shares) {
    share = std::exp(share - largest);
  }
  return shares;
}

/// One draw of Dir(α p), unnormalized; classes without examples get 0.
std::vector<double> draw_mix(const std::vector<Shard>& pools, std::size_t examples, double alpha,
                             RandomStream& stream) {
  std::vector<double> a(pools.size());
  for (std::size_t k = 0; k < pools.size(); ++k) {
    a[k] = alpha * static_cast<double>(pools[k].size()) / static_cast<double>(examples);
  }
  return draw_shares(a, stream);
}

/// Sizes of shards with shares drawn from Dir(β), none of them empty: of what is left when each has
/// one, node i ends at the whole part of the first i shares.
std::vector<std::size_t> drawn_sizes(std::size_t examples, std::size_t nodes, double beta,
                                     RandomStream& stream) {
  std::vector<double> shares = draw_shares(std::vector<double>(nodes, beta), stream);
  const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
  const auto spare = static_cast<double>(examples - nodes);
  std::vector<std::size_t> sizes(nodes, 1);
  double sum = 0;
  std::size_t dealt = 0;
  for (std::size_t i = 0; i < nodes; ++i) {
    sum += shares[i];
    const bool last = i + 1 == nodes;
    const auto until =
        last ? examples - nodes
             : std::min(examples - nodes,
                        static_cast<std::size_t>(std::floor(spare * std::min(1.0, sum / total))));
    sizes[i] += until - dealt;
    dealt = until;
  }
  return sizes;
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
  const Form& form = *std::ranges::find(kForms, kind, &Form::kind);
  return form.number == nullptr ? std::string(form.name)
                                : fmt::format("{}:{}", form.name, this->*form.number);
}

std::vector<std::string> partition_names() { return names_of(kForms); }

Partition parse_partition(std::string_view spec) {
  const auto colon = spec.find(':');
  const auto* const form = std::ranges::find(kForms, spec.substr(0, colon), &Form::name);
  if (form == kForms.end() || (form->number == nullptr) != (colon == std::string_view::npos)) {
    refuse_unregistered("partition", spec, kForms);
  }
  Partition partition{.kind = form->kind};
  if (form->number != nullptr) {
    const auto value = parse_number<double>(spec.substr(colon + 1), kLeastAlpha, kMostAlpha);
    if (!value) {
      refuse("partition", spec,
             fmt::format("{} is a number from {} to {}",
                         form->synopsis.substr(form->name.size() + 1), kLeastAlpha, kMostAlpha));
    }
    partition.*form->number = *value;
  }
  return partition;
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
  } else if (partition.kind != Partition::Kind::blocks) {
    RandomStream stream = stream_of(seed, 0);
    shuffle(rows, stream);
  }
  if (partition.kind == Partition::Kind::sizes) {
    RandomStream stream = stream_of(seed, 1);
    return cut(rows, drawn_sizes(rows.size(), count, partition.beta, stream));
  }
  return cut(rows, even_sizes(rows.size(), count));
}

}  // namespace sotto
