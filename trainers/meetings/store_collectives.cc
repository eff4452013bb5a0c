#include <sotto/trainers/meetings/store_collectives.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <sotto/comm/deadline.h>
#include <sotto/comm/run_keys.h>

namespace sotto {

namespace {

/// How often a wait looks whether somebody gave up: soon at first, as others are mostly near.
constexpr std::chrono::milliseconds kFirstPatience{20};
constexpr std::chrono::milliseconds kLongestPatience{250};
}  // namespace

Result<std::vector<std::byte>> StoreCollectives::await(const std::string& key, Rank peer,
                                                       std::chrono::milliseconds patience,
                                                       const std::string& pulse) {
  auto deadline = Deadline::after(patience);
  std::vector<std::byte> last;
  for (auto look = kFirstPatience;; look = std::min(2 * look, kLongestPatience)) {
    auto value = store_.get(key, deadline.left() < look ? deadline : Deadline::after(look));
    if (value.status().fault() == Fault::stopped) {
      return Status(Fault::stopped,
                    fmt::format("node {}: stopped while waiting for node {}", rank_, peer));
    }
    if (value.ok() || value.status().fault() != Fault::deadline) {
      return value;
    }
    if (Status cause = fault_notice_.given_up(); !cause.ok()) {
      return cause;
    }
    if (Status end = look_at(peer); !end.ok()) {
      return end;
    }
    if (Status lost = miss_ ? miss_(peer) : Status(); !lost.ok()) {
      return lost;
    }
    if (!pulse.empty()) {
      auto now = store_.get(pulse, Deadline::after({}));
      if (now.ok() && *now != last) {
        last = std::move(*now);
        deadline = Deadline::after(patience);
      }
    }
    if (deadline.expired()) {
      return naming_timeout(value.status(), timeout_)
          .with_context(fmt::format("node {}: waiting for node {}", rank_, peer));
    }
  }
}

Status StoreCollectives::look_at(Rank peer) {
  const Status end = look_ ? look_(peer) : Status();
  return end.ok() ? end : end.with_context(fmt::format("node {}", rank_));
}

Status StoreCollectives::await_all(std::string_view name) {
  for (Rank peer = 1; peer < nodes_; ++peer) {
    if (const auto value = await(node_key(name, peer), peer); !value.ok()) {
      return value.status();
    }
    // One that was there before this node, so that nobody waited, may have come from elsewhere.
    if (Status status = look_at(peer); !status.ok()) {
      return status;
    }
  }
  return {};
}

Status StoreCollectives::barrier(std::string_view name) {
  const std::string go = barrier_key(name);
  const std::string left = fmt::format("{}/left", name);
  if (rank_ == 0) {
    if (Status status = await_all(name); !status.ok()) {
      return status;
    }
    if (Status status = store_.set(go, {}); !status.ok()) {
      return status;
    }
    for (Rank peer = 1; peer < nodes_; ++peer) {
      Status status = await(node_key(left, peer), peer).status();
      // All is done: a node that is lost now has left.
      if (!status.ok() && status.fault() != Fault::peer_lost) {
        return status;
      }
    }
    return {};
  }
  if (Status status = store_.set(node_key(name, rank_), {}); !status.ok()) {
    return status;
  }
  if (const auto value = await_node_0(go); !value.ok()) {
    return value.status();
  }
  // Node 0 may be gone as soon as it has seen this, so a lost answer is no fault.
  (void)store_.set(node_key(left, rank_), {});
  return {};
}

Result<std::vector<std::vector<std::byte>>> StoreCollectives::gather(
    std::string_view name, std::span<const std::byte> value) {
  std::vector<std::vector<std::byte>> values;
  if (Status status = store_.set(node_key(name, rank_), value); !status.ok()) {
    return status;
  }
  if (rank_ != 0) {
    return values;
  }
  for (Rank peer = 0; peer < nodes_; ++peer) {
    auto one = await(node_key(name, peer), peer);
    if (!one.ok()) {
      return one.status();
    }
    values.push_back(std::move(*one));
  }
  return values;
}

Result<std::vector<std::byte>> StoreCollectives::broadcast(std::string_view name,
                                                           std::span<const std::byte> value) {
  if (rank_ == 0) {
    if (Status status = store_.set(name, value); !status.ok()) {
      return status;
    }
    return std::vector<std::byte>(value.begin(), value.end());
  }
  return await_node_0(std::string(name));
}

}  // namespace sotto
