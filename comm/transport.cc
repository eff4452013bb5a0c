#include <sotto/comm/transport.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/base/frame.h>
#include <sotto/base/nearest.h>
#include <sotto/base/start_threads.h>
#include <sotto/base/system_limit.h>

#include "internal/backends.h"

namespace sotto {
namespace {

#ifdef SOTTO_HAVE_GLOO
constexpr bool kHaveGloo = true;
#else
constexpr bool kHaveGloo = false;
#endif
#ifdef SOTTO_HAVE_ZMQ
constexpr bool kHaveZmq = true;
#else
constexpr bool kHaveZmq = false;
#endif
#ifdef SOTTO_HAVE_NCCL
constexpr bool kHaveNccl = true;
#else
constexpr bool kHaveNccl = false;
#endif

constexpr std::array<TransportInfo, 4> kTransports = {{
    {.name = "inproc",
     .summary = "threads of one process, frames copied in memory",
     .available = true,
     .needs = "",
     .processes = false,
     .encrypts = false},
    {.name = "gloo",
     .summary = "TCP through Gloo, for the nodes of one trusted cluster",
     .available = kHaveGloo,
     .needs = "libgloo-dev",
     .processes = true,
     .encrypts = false},
    {.name = "zmq",
     .summary = "TCP through ZeroMQ, encrypted between hosts with keys",
     .available = kHaveZmq,
     .needs = "libzmq3-dev and cppzmq-dev",
     .processes = true,
     .encrypts = true},
    {.name = "nccl",
     .summary = "GPUs through NCCL, one a node, for the nodes of one trusted cluster",
     .available = kHaveNccl,
     .needs = "-DSOTTO_WITH_CUDA=ON where nvcc and NCCL are (docs/gpu.md)",
     .processes = true,
     .encrypts = false,
     .any_order = false},
}};

void check_peers(std::string_view field, const std::vector<Rank>& peers,
                 const TransportOptions& options) {
  const auto shown = fmt::format("{}", fmt::join(peers, ","));
  if (std::adjacent_find(peers.begin(), peers.end(), std::greater_equal<>()) != peers.end()) {
    refuse(field, shown, "peers are sorted, each named once");
  }
  for (const Rank peer : peers) {
    if (peer < 0 || peer >= options.nodes || peer == options.rank) {
      refuse(field, shown,
             fmt::format("peers of rank {} are other ranks from 0 to {}", options.rank,
                         options.nodes - 1));
    }
  }
}

/// Bounds what a peer that runs ahead can make this node keep, and what credits can count.
constexpr std::size_t kMostFramesAhead = std::size_t{1} << 16U;

void check_options(const TransportOptions& options) {
  if (options.nodes < 1 || options.rank < 0 || options.rank >= options.nodes) {
    refuse("rank", fmt::to_string(options.rank),
           fmt::format("ranks of {} nodes go from 0 to {}", options.nodes, options.nodes - 1));
  }
  check_peers("to", options.to, options);
  check_peers("from", options.from, options);
  if (options.store == nullptr && !options.security) {
    refuse("store", "none", "nodes meet through a store; see make_store");
  }
  const bool alone = options.to.empty() && options.from.empty();
  if (!alone && options.max_frame_bytes < kFrameHeaderBytes) {
    refuse("max_frame_bytes", fmt::to_string(options.max_frame_bytes),
           fmt::format("a frame has {} bytes at least", kFrameHeaderBytes));
  }
  if (options.frames_ahead < 2 || options.frames_ahead > kMostFramesAhead) {
    refuse("frames_ahead", fmt::to_string(options.frames_ahead),
           fmt::format("it must be 2 to {}", kMostFramesAhead));
  }
}

Result<std::unique_ptr<Transport>> open_backend(std::string_view name,
                                                const TransportOptions& options) {
#ifdef SOTTO_HAVE_GLOO
  if (name == "gloo") {
    return internal::make_gloo_transport(options);
  }
#endif
#ifdef SOTTO_HAVE_ZMQ
  if (name == "zmq") {
    return internal::make_zmq_transport(options);
  }
#endif
#ifdef SOTTO_HAVE_NCCL
  if (name == "nccl") {
    return internal::make_nccl_transport(options);
  }
#endif
  return internal::make_inproc_transport(options);
}

/// Files that a transport opens at least: its own, a listener, and a connection for each peer.
std::size_t least_files(const TransportOptions& options) {
  constexpr std::size_t kOwn = 6;
  return kOwn + std::max(options.to.size(), options.from.size());
}

}  // namespace

std::span<const TransportInfo> transports() { return kTransports; }

const TransportInfo& transport_info(std::string_view name) {
  for (const TransportInfo& info : kTransports) {
    if (info.name == name) {
      return info;
    }
  }
  refuse_unknown("transport", name, names_of(kTransports));
}

void check_transport(std::string_view name, const TransportOptions& options) {
  const TransportInfo& info = transport_info(name);
  if (!info.available) {
    refuse("transport", name, fmt::format("this build lacks it; build with {}", info.needs));
  }
  check_options(options);
  if (options.security && !info.encrypts) {
    refuse("transport", name, "it sends in plain text, which would undo the keys; use zmq");
  }
#ifdef SOTTO_HAVE_ZMQ
  if (options.security) {
    internal::check_trust(options);
  }
#endif
}

Result<std::unique_ptr<Transport>> make_transport(std::string_view name,
                                                  const TransportOptions& options) {
  check_transport(name, options);
  try {
    if (transport_info(name).processes) {
      // Told here in one way: what is short of files later blames an address or a neighbour.
      require_open_files(least_files(options), name);
    }
    return open_backend(name, options);
  } catch (const Shortage& shortage) {
    return Status(Fault::io, shortage.what());
  }
}

}  // namespace sotto
