#include <sotto/comm/transport.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/base/frame.h>
#include <sotto/base/names.h>
#include <sotto/base/start_threads.h>
#include <sotto/base/system_limit.h>

#include "internal/backends.h"
#include "internal/trust.h"

namespace sotto {
namespace {

using Factory = Result<std::unique_ptr<Transport>> (*)(const TransportOptions&);

/// A transport, and what makes one: null where this build lacks it.
struct Backend {
  TransportInfo info;
  Factory make;
};

/// The factory, which exists only where the transport is built.
template <bool kBuilt>
consteval Factory if_built(Factory make) {
  return kBuilt ? make : nullptr;
}

constexpr std::array kBackends = {
    Backend{{.name = "inproc",
             .summary = "threads of one process, frames copied in memory",
             .needs = "",
             .processes = false,
             .encrypts = false},
            internal::make_inproc_transport},
    Backend{{.name = "gloo",
             .summary = "TCP through Gloo, for the nodes of one trusted cluster",
             .needs = "libgloo-dev",
             .processes = true,
             .encrypts = false},
            if_built<SOTTO_HAVE_GLOO>(internal::make_gloo_transport)},
    Backend{{.name = "zmq",
             .summary = "TCP through ZeroMQ, encrypted between hosts with keys",
             .needs = "libzmq3-dev and cppzmq-dev",
             .processes = true,
             .encrypts = true,
             .streams = true},
            if_built<SOTTO_HAVE_ZMQ>(internal::make_zmq_transport)},
    Backend{{.name = "nccl",
             .summary = "GPUs through NCCL, one a node, for the nodes of one trusted cluster",
             .needs = "-DSOTTO_WITH_CUDA=ON where nvcc and NCCL are (docs/gpu.md)",
             .processes = true,
             .encrypts = false,
             .any_order = false},
            if_built<SOTTO_HAVE_NCCL>(internal::make_nccl_transport)},
};

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
  if (options.streams < 1 || options.streams > kMostStreams) {
    refuse("streams", fmt::to_string(options.streams), fmt::format("it is 1 to {}", kMostStreams));
  }
}

/// Files that a transport opens at least: its own, a listener, and a connection for each peer.
std::size_t least_files(const TransportOptions& options) {
  constexpr std::size_t kOwn = 6;
  return kOwn + std::max(options.to.size(), options.from.size());
}

}  // namespace

std::span<const TransportInfo> transports() {
  // Not constexpr: under its sanitizer GCC takes no function's address for a constant.
  static const auto infos = [] {
    std::array<TransportInfo, kBackends.size()> all{};
    std::ranges::transform(kBackends, all.begin(), [](const Backend& backend) {
      TransportInfo info = backend.info;
      info.available = backend.make != nullptr;
      return info;
    });
    return all;
  }();
  return infos;
}

const TransportInfo& transport_info(std::string_view name) {
  for (const TransportInfo& info : transports()) {
    if (info.name == name) {
      return info;
    }
  }
  refuse_unknown("transport", name, names_of(transports()));
}

void check_transport(std::string_view name, const TransportOptions& options) {
  const TransportInfo& info = transport_info(name);
  if (!info.available) {
    refuse("transport", name, fmt::format("this build lacks it; build with {}", info.needs));
  }
  if (options.streams > 1 && !info.streams) {
    refuse("streams", fmt::to_string(options.streams),
           fmt::format("{} has one connection to each peer; take zmq, or 1", name));
  }
  check_options(options);
  if (options.security && !info.encrypts) {
    refuse("transport", name, "it sends in plain text, which would undo the keys; use zmq");
  }
  if (options.security) {
    internal::check_trust(options);
  }
}

Result<std::unique_ptr<Transport>> make_transport(std::string_view name,
                                                  const TransportOptions& options) {
  check_transport(name, options);
  try {
    if (transport_info(name).processes) {
      // Told here in one way: what is short of files later blames an address or a neighbour.
      require_open_files(least_files(options), name);
    }
    return std::ranges::find(kBackends, name,
                             [](const Backend& backend) { return backend.info.name; })
        ->make(options);
  } catch (const Shortage& shortage) {
    return Status(Fault::io, shortage.what());
  }
}

}  // namespace sotto
