// sotto_compressor and sotto_topology: parts of a node that are used alone.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <sotto/base/json_text.h>
#include <sotto/compress/compressor.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/algorithm.h>
#include <sotto/topology/registry.h>
#include <sotto/topology/topology.h>

#include "guard.h"
#include "handles.h"
#include "setting_pairs.h"
#include "settings.h"

struct sotto_compressor {
  static constexpr std::string_view kKind = "compressor";

  std::unique_ptr<sotto::Compressor> compressor;
  std::atomic_flag busy;
};

struct sotto_topology {
  std::shared_ptr<const sotto::Topology> topology;
};

namespace sotto::c {
namespace {

/// Infinite bounds are no bounds.
nlohmann::ordered_json bound_of(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

void check_length(std::size_t count) {
  if (count > kMostDimension) {
    refuse("count", fmt::to_string(count), fmt::format("0 to {} would do", kMostDimension));
  }
}

/// in_turn for vectors of `count` floats.
template <typename Body>
sotto_status with_codec(sotto_compressor* held, std::size_t count, const Body& body) noexcept {
  return in_turn(held, [&] {
    check_length(count);
    return body(*held->compressor);
  });
}

}  // namespace
}  // namespace sotto::c

using namespace sotto;     // NOLINT(google-build-using-namespace)
using namespace sotto::c;  // NOLINT(google-build-using-namespace)

sotto_status sotto_compressor_create(const char* spec, const sotto_layout* layout,
                                     sotto_compressor** out) {
  return guarded([&] {
    need(spec, "spec");
    need(out, "out");
    auto made = std::make_unique<sotto_compressor>();
    made->compressor = make_compressor(spec, ContractKind::any, host_ops(), blocks_of(layout));
    *out = made.release();
    return SOTTO_OK;
  });
}

void sotto_compressor_destroy(sotto_compressor* compressor) { delete compressor; }

sotto_status sotto_compressor_max_bytes(sotto_compressor* compressor, size_t count, size_t* bytes) {
  return with_codec(compressor, count, [&](const Compressor& codec) {
    need(bytes, "bytes");
    *bytes = codec.max_bytes(count);
    return SOTTO_OK;
  });
}

sotto_status sotto_compressor_encode(sotto_compressor* compressor, const float* x, size_t count,
                                     uint64_t seed, uint64_t round, void* out, size_t capacity,
                                     size_t* size) {
  return with_codec(compressor, count, [&](Compressor& codec) {
    need(size, "size");
    const auto input = span_at(x, count, "x");
    const std::size_t most = codec.max_bytes(count);
    if (capacity < most) {
      *size = most;
      return fail(SOTTO_TOO_SMALL,
                  fmt::format("capacity: {} bytes are too few; max_bytes is {}", capacity, most));
    }
    if (const auto bad = host_ops().count_non_finite(input); bad.count > 0) {
      return fail(SOTTO_NON_FINITE,
                  fmt::format("x: {} of {} values are no finite numbers", bad.count, count));
    }
    const RandomKey key{
        .seed = seed, .rank = 0, .round = round, .purpose = Purpose::quantize, .bucket = 0};
    *size = codec.encode(input, key, span_at(static_cast<std::byte*>(out), most, "out"));
    return sotto_status{SOTTO_OK};
  });
}

sotto_status sotto_compressor_decode_add(sotto_compressor* compressor, const void* bytes,
                                         size_t size, float scale, float* y, size_t count) {
  return with_codec(compressor, count, [&](const Compressor& codec) {
    return codec.decode_add(span_at(static_cast<const std::byte*>(bytes), size, "bytes"), scale,
                            span_at(y, count, "y"));
  });
}

sotto_status sotto_compressor_describe(sotto_compressor* compressor, size_t count, char** json) {
  return with_codec(compressor, count, [&](const Compressor& codec) {
    need(json, "json");
    const Contract contract = codec.contract(count);
    const nlohmann::ordered_json described = {
        {"spec", codec.spec()},
        {"max_bytes", codec.max_bytes(count)},
        {"contract",
         {{"unbiased", contract.unbiased},
          {"alpha", bound_of(contract.alpha)},
          {"absolute_per_element", bound_of(contract.absolute_per_element)},
          {"delta", contract.delta},
          {"floor_per_element", contract.floor_per_element},
          {"summary", contract.describe()}}}};
    return give(json_text(described), json);
  });
}

sotto_status sotto_topology_create(const char* const* settings, sotto_topology** out) {
  return guarded([&] {
    need(out, "out");
    const NodeSettings read = read_settings(settings);
    constexpr std::array<std::string_view, 5> kTaken = {"topology", "nodes", "weighting", "lazy",
                                                        "seed"};
    for (const std::string& name : read.given) {
      if (std::find(kTaken.begin(), kTaken.end(), name) == kTaken.end()) {
        throw Error(field_named(name), "a topology has topology, nodes, weighting, lazy and seed");
      }
    }
    TopologyOptions options;
    if (!read.shared.weighting.empty()) {
      options.weighting = parse_weighting(read.shared.weighting);
    }
    options.lazy = read.shared.lazy;
    options.seed = read.seed;
    *out = new sotto_topology{
        make_topology(read.shared.topology, read.shared.nodes.value_or(0), options)};
    return SOTTO_OK;
  });
}

void sotto_topology_destroy(sotto_topology* topology) { delete topology; }

sotto_status sotto_topology_size(const sotto_topology* topology, size_t* nodes, uint64_t* period) {
  return guarded([&] {
    need(topology, "topology");
    need(nodes, "nodes");
    need(period, "period");
    *nodes = static_cast<std::size_t>(topology->topology->nodes());
    *period = topology->topology->period();
    return SOTTO_OK;
  });
}

sotto_status sotto_topology_weights(const sotto_topology* topology, uint64_t round, float* w,
                                    size_t count) {
  return guarded([&] {
    need(topology, "topology");
    const Topology& graph = *topology->topology;
    const auto nodes = static_cast<std::size_t>(graph.nodes());
    if (count != nodes * nodes) {
      refuse("count", fmt::to_string(count), fmt::format("W has {} x {} weights", nodes, nodes));
    }
    const auto weights = span_at(w, count, "w");
    std::fill(weights.begin(), weights.end(), 0.0F);
    for (std::size_t i = 0; i < nodes; ++i) {
      const auto row = weights.subspan(i * nodes, nodes);
      row[i] = graph.self_weight(static_cast<Rank>(i), round);
      for (const Edge& edge : graph.in_edges(static_cast<Rank>(i), round)) {
        row[static_cast<std::size_t>(edge.peer)] = edge.weight;
      }
    }
    return SOTTO_OK;
  });
}
