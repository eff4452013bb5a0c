#include <sotto/groups/programs/graph_network.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/error.h>
#include <sotto/optim/state_io.h>

namespace sotto {
namespace {

constexpr std::uint32_t kElsewhere = std::numeric_limits<std::uint32_t>::max();

/// The part of a graph that fits the options, for initializers.
GraphPart fitting_part(const ProgramNode& node, const RatedGraph& graph,
                       const GraphNetworkOptions& options) {
  require_between("features", options.features, 1, kMostDimension);
  require_between("hidden", options.hidden, 1, kMostDimension);
  require_between("embedding", options.embedding, 1, kMostDimension);
  if (graph.features.size() != graph.owner.size() * options.features) {
    refuse("features", fmt::format("{}", graph.features.size()),
           fmt::format("{} nodes have {} each", graph.owner.size(), options.features));
  }
  if (node.parameters().size() != options.parameters()) {
    refuse("parameters", fmt::format("{}", node.parameters().size()),
           fmt::format("a network of this size has {}", options.parameters()));
  }
  const Group group = node.everyone().group;
  GraphPart part = graph_part(graph.edges, graph.owner, group.size(), group.position);
  part.lists.digest = graph.digest(part.lists.digest);
  return part;
}

/// How rows of T and Z go.
Encoding encoding_of(const GraphNetworkOptions& options) {
  return {.data = Carried::activation,
          .memory = options.keyed ? ErrorMemory::keyed : ErrorMemory::none,
          .compressor = options.compressor};
}

/// Row of each node of the graph in a part's matrices; kElsewhere for nodes that it has none of.
std::vector<std::uint32_t> rows_of(const GraphPart& part, std::size_t nodes) {
  std::vector<std::uint32_t> rows(nodes, kElsewhere);
  std::uint32_t row = 0;
  for (const std::uint32_t v : part.own) {
    rows[v] = row++;
  }
  for (const std::uint32_t v : part.ghosts) {
    rows[v] = row++;
  }
  return rows;
}

/// W += x ⊗ y.
void add_outer(std::span<const float> x, std::span<const float> y, std::span<float> w) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < y.size(); ++j) {
      w[i * y.size() + j] += x[i] * y[j];
    }
  }
}

void write_norms(std::span<const float> rows, std::size_t width, std::span<float> norms) {
  for (std::size_t v = 0; v < norms.size(); ++v) {
    float squares = 0;
    for (const float value : rows.subspan(v * width, width)) {
      squares += value * value;
    }
    norms[v] = std::sqrt(squares);
  }
}

}  // namespace

GraphNetwork::SharedRows::SharedRows(const ProgramNode& node, const GraphPart& part,
                                     const Encoding& encoding, const GraphNetworkOptions& options)
    : halo(node.everyone(), part.lists, options.embedding, encoding, Halo::Merge::replace,
           options.first),
      cache(part.own.size(), part.lists, options.cache),
      rows((part.own.size() + part.ghosts.size()) * options.embedding) {}

GraphNetwork::GraphNetwork(const ProgramNode& node, const RatedGraph& graph,
                           const GraphNetworkOptions& options)
    : options_(options),
      part_(fitting_part(node, graph, options)),
      matrix_(part_, graph.edges, rows_of(part_, graph.owner.size())),
      x_(node.parameters()),
      members_(node.everyone().group.size()),
      features_halo_(node.everyone(), part_.lists, options.features, {.data = Carried::activation},
                     Halo::Merge::replace),
      t_(node, part_, encoding_of(options), options),
      z_(node, part_, encoding_of(options), options),
      dz_(node, part_,
          {.data = Carried::activation_gradient, .compressor = options.gradient_compressor},
          options),
      gradient_(options.parameters()) {
  const std::size_t own_rows = part_.own.size();
  const std::size_t rows = own_rows + part_.ghosts.size();
  features_.resize(rows * options.features);
  for (std::size_t v = 0; v < own_rows; ++v) {
    std::copy_n(
        graph.features.begin() + static_cast<std::ptrdiff_t>(part_.own[v] * options.features),
        options.features, features_.begin() + static_cast<std::ptrdiff_t>(v * options.features));
  }
  ax_.resize(own_rows * options.features);
  h_.resize(own_rows * options.hidden);
  dt_.resize(own_rows * options.embedding);
  dh_.resize(own_rows * options.hidden);
  t_norm_.resize(own_rows);
  z_norm_.resize(own_rows);
  find_links(graph, graph.weight_of_all());
  add_stages();
}

void GraphNetwork::find_links(const RatedGraph& graph, double total) {
  const auto rows = rows_of(part_, graph.owner.size());
  const std::size_t own_rows = part_.own.size();
  for (const GraphLink& link : graph.links) {
    const std::uint32_t from = rows[link.from];
    const std::uint32_t to = rows[link.to];
    if (from >= own_rows && to >= own_rows) {
      continue;
    }
    links_.push_back(
        {from, to, link.positive, static_cast<float>(static_cast<double>(link.weight) / total)});
  }
}

void GraphNetwork::add_stages() {
  const auto stage = [this](const char* name, auto work, Halo* halo, bool optional = false) {
    stages_.push_back({name,
                       [work](const RoundInput&) {
                         work();
                         return Status();
                       },
                       halo, 0, optional});
  };
  // Features are the same in all rounds.
  stage(
      "features",
      [this] {
        if (!met_) {
          features_halo_.begin(own(features_, options_.features),
                               ghosts(features_, options_.features));
        }
      },
      &features_halo_, true);
  stage(
      "hidden rows",
      [this] {
        make_hidden();
        exchange(t_, t_norm_);
      },
      &t_.halo);
  stage(
      "embeddings",
      [this] {
        make_embeddings();
        exchange(z_, z_norm_);
      },
      &z_.halo);
  stage(
      "loss",
      [this] {
        compare();
        exchange(dz_, z_norm_);
      },
      &dz_.halo);
  stage(
      "learn", [this] { learn(); }, nullptr);
}

GraphNetwork::Weights GraphNetwork::weights(std::span<float> all) const {
  const std::size_t d = options_.embedding;
  std::size_t at = 0;
  const auto next = [&](std::size_t count) {
    const auto piece = all.subspan(at, count);
    at += count;
    return piece;
  };
  const auto w1 = next(options_.features * options_.hidden);
  const auto w2 = next(options_.hidden * d);
  const auto p = next(d);
  const auto q = next(d);
  const auto r = next(d);
  return {w1, w2, p, q, r, next(1)};
}

void GraphNetwork::exchange(SharedRows& shared, std::span<const float> norms) const {
  shared.halo.begin(own(shared.rows, options_.embedding), ghosts(shared.rows, options_.embedding),
                    shared.cache.choose(norms));
}

void GraphNetwork::make_hidden() {
  const std::size_t own_rows = part_.own.size();
  const std::size_t f = options_.features;
  const std::size_t h = options_.hidden;
  const std::size_t d = options_.embedding;
  if (!met_) {
    matrix_.multiply(features_, f, ax_);
    met_ = true;
  }
  const Weights w = weights(x_);
  product_.times({own_rows, f, h}, ax_, w.w1, h_);
  for (float& value : h_) {
    value = std::max(value, 0.0F);
  }
  product_.times({own_rows, h, d}, h_, w.w2, own(std::span(t_.rows), d));
}

void GraphNetwork::make_embeddings() {
  matrix_.multiply(t_.rows, options_.embedding, own(std::span(z_.rows), options_.embedding));
}

double GraphNetwork::score(std::span<const float> from, std::span<const float> to) const {
  const Weights w = weights(x_);
  double sum = static_cast<double>(w.b[0]);
  for (std::size_t i = 0; i < options_.embedding; ++i) {
    sum += static_cast<double>(w.p[i] * from[i] + w.q[i] * to[i] + w.r[i] * from[i] * to[i]);
  }
  return sum;
}

void GraphNetwork::compare() {
  const std::size_t d = options_.embedding;
  const std::size_t own_rows = part_.own.size();
  const Weights w = weights(x_);
  std::ranges::fill(gradient_, 0.0F);
  const Weights g = weights(gradient_);
  std::ranges::fill(own(std::span(dz_.rows), d), 0.0F);
  loss_ = 0;
  for (const OwnLink& link : links_) {
    const auto from = std::span<const float>(z_.rows).subspan(link.from * d, d);
    const auto to = std::span<const float>(z_.rows).subspan(link.to * d, d);
    const double margin = link.positive ? score(from, to) : -score(from, to);
    const double slope = static_cast<double>(link.weight) / (1 + std::exp(margin));
    const auto ds = static_cast<float>(link.positive ? -slope : slope);
    for (std::size_t i = 0; i < d; ++i) {
      if (link.from < own_rows) {
        dz_.rows[link.from * d + i] += ds * (w.p[i] + w.r[i] * to[i]);
        g.p[i] += ds * from[i];
        g.q[i] += ds * to[i];
        g.r[i] += ds * from[i] * to[i];
      }
      if (link.to < own_rows) {
        dz_.rows[link.to * d + i] += ds * (w.q[i] + w.r[i] * from[i]);
      }
    }
    if (link.from < own_rows) {  // a link counts where it begins
      g.b[0] += ds;
      loss_ += static_cast<double>(link.weight) *
               (std::max(-margin, 0.0) + std::log1p(std::exp(-std::abs(margin))));
    }
  }
  write_norms(own(dz_.rows, d), d, z_norm_);
}

void GraphNetwork::learn() {
  const std::size_t f = options_.features;
  const std::size_t h = options_.hidden;
  const std::size_t d = options_.embedding;
  const Weights w = weights(x_);
  const Weights g = weights(gradient_);
  matrix_.multiply(dz_.rows, d, dt_);
  product_.times_transposed({part_.own.size(), d, h}, dt_, w.w2, dh_);
  for (std::size_t i = 0; i < dh_.size(); ++i) {
    dh_[i] = h_[i] > 0 ? dh_[i] : 0;
  }
  for (std::size_t v = 0; v < part_.own.size(); ++v) {
    const auto row = [v](std::span<const float> rows, std::size_t width) {
      return rows.subspan(v * width, width);
    };
    add_outer(row(h_, h), row(dt_, d), g.w2);
    add_outer(row(ax_, f), row(dh_, h), g.w1);
  }
  write_norms(dt_, d, t_norm_);
  for (float& value : gradient_) {
    value *= static_cast<float>(members_);  // the algorithm takes the mean
  }
}

std::uint64_t GraphNetwork::rows_sent() const {
  return t_.cache.sent() + z_.cache.sent() + dz_.cache.sent();
}

std::uint64_t GraphNetwork::rows_kept() const {
  return t_.cache.kept() + z_.cache.kept() + dz_.cache.kept();
}

void GraphNetwork::save(ByteBuffer& out) const {
  out.write(static_cast<std::uint8_t>(met_ ? 1 : 0));
  for (const auto* rows : {&ax_, &t_.rows, &z_.rows, &dz_.rows, &t_norm_, &z_norm_}) {
    write_floats(std::span<const float>(*rows), out);
  }
  for (const auto* cache : {&t_.cache, &z_.cache, &dz_.cache}) {
    cache->save(out);
  }
}

Status GraphNetwork::load(ByteReader& in) {
  met_ = in.read<std::uint8_t>() != 0;
  Status status;
  for (auto* rows : {&ax_, &t_.rows, &z_.rows, &dz_.rows, &t_norm_, &z_norm_}) {
    if (status.ok()) {
      status = read_floats(in, "rows of a graph", *rows);
    }
  }
  for (auto* cache : {&t_.cache, &z_.cache, &dz_.cache}) {
    if (status.ok()) {
      status = cache->load(in);
    }
  }
  return status;
}

}  // namespace sotto
