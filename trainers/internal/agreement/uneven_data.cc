#include "uneven_data.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/comm/run_keys.h>

#include "rounds_apart.h"
#include "store_look.h"

namespace sotto::internal {
namespace {

using std::chrono::milliseconds;

/// Pause between two looks at a node with data: longer each time.
constexpr milliseconds kFirstPause{2};
constexpr milliseconds kLongestPause{64};

/// Some node is out of data.
std::string some_out_key() { return first_key("out"); }

std::string data_key(Rank node) { return node_key_for_all("data", node); }

}  // namespace

Status UnevenData::publish(const State& state) {
  ByteBuffer value;
  value.write(state.rounds);
  value.write(static_cast<std::uint8_t>(state.out ? 1 : 0));
  return store_.set(data_key(rank_), value.bytes());
}

Status UnevenData::enter_round(Round round) {
  const std::lock_guard lock(mutex_);
  entered_ = round + 1;
  if (!some_out_) {
    return {};
  }
  told_ = entered_;
  return publish({entered_, false});
}

Status UnevenData::round_fault() {
  const std::lock_guard lock(mutex_);
  some_out_ = some_out_ || (news_.any() && look_for(store_, some_out_key()).value);
  if (!some_out_ || told_ == entered_ || left_) {
    return {};
  }
  told_ = entered_;
  return publish({entered_, false});
}

Status UnevenData::leave(Round rounds) {
  {
    const std::lock_guard lock(mutex_);
    left_ = rounds;  // round_fault() says no more that there are data
    if (Status status = publish({rounds, true}); !status.ok()) {
      return status;
    }
  }
  if (Status status = set_once(store_, some_out_key()); !status.ok()) {
    return status;
  }
  return news_.announce();
}

std::optional<UnevenData::State> UnevenData::state_of(Rank peer, Round done) const {
  const StoreLook found = look_for(store_, data_key(peer));
  if (!found.value) {
    return std::nullopt;
  }
  ByteReader in(*found.value);
  State state;
  state.rounds = in.read<Round>();
  state.out = in.read<std::uint8_t>() != 0;
  return in.finished() && plausible(state.rounds, done) ? std::optional(state) : std::nullopt;
}

std::optional<Rank> UnevenData::first_with_data(Round done, State& state) {
  for (Rank peer = 0; peer < nodes_; ++peer) {
    if (peer == rank_ || out_.contains(peer)) {
      continue;
    }
    state = state_of(peer, done).value_or(State());
    if (!state.out) {
      return peer;
    }
    out_[peer] = state.rounds;
  }
  return std::nullopt;
}

Result<UnevenData::Next> UnevenData::await(Round done, const MeetingRegister& meetings,
                                           FaultNotice& fault_notice,
                                           const std::function<bool()>& interrupted) {
  auto deadline = Deadline::after(timeout_, &stop_);
  auto pause = kFirstPause;
  std::optional<std::pair<Rank, Round>> last_seen;
  while (true) {
    State state;
    const auto peer = first_with_data(done, state);
    if (!peer) {
      Round last = *left_;
      for (const auto& [node, rounds] : out_) {
        last = std::max(last, rounds);
      }
      return done < last ? Next::round : Next::nothing;
    }
    if (state.rounds > done) {
      return Next::round;
    }
    if (meetings.asks_for_mean(*peer, done)) {
      // Once all are out of data a node may ask for the mean that ends its own run: such a node has
      // said before that it is out of data, and this node may have looked too early to know.
      if (state_of(*peer, done).value_or(State()).out) {
        continue;
      }
      return Next::mean;
    }
    if (interrupted()) {
      return Next::round;
    }
    if (Status cause = fault_notice.given_up(); !cause.ok()) {
      return cause;
    }
    const std::pair<Rank, Round> seen(*peer, state.rounds);
    if (last_seen != seen) {
      last_seen = seen;
      deadline = Deadline::after(timeout_, &stop_);
    }
    if (deadline.stopped()) {
      return Status(Fault::stopped,
                    fmt::format("node {}: stopped while waiting for node {}", rank_, *peer));
    }
    if (deadline.expired()) {
      return naming_timeout(
          {Fault::deadline,
           fmt::format("node {}: out of data after {} rounds, and waiting for node {}, which has "
                       "neither begun another round nor finished",
                       rank_, *left_, *peer)},
          timeout_);
    }
    sleep_until(deadline.or_after(pause));
    pause = std::min(2 * pause, kLongestPause);
  }
}

}  // namespace sotto::internal
