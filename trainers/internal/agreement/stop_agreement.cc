#include "stop_agreement.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/bytes.h>
#include <sotto/base/text.h>
#include <sotto/comm/run_keys.h>

#include "rounds_apart.h"
#include "store_look.h"

namespace sotto::internal {
namespace {

/// The decision.
constexpr const char* kDecided = "stop-after";

/// Some node wants to end.
std::string wanted_key() { return first_key("stop"); }

std::string answer_key(Rank node) { return node_key("stop", node); }

std::string nodes_that(const std::vector<Rank>& nodes, std::string_view one,
                       std::string_view many) {
  return nodes.size() == 1 ? fmt::format("node {} {}", nodes.front(), one)
                           : fmt::format("nodes {} {}", fmt::join(nodes, ", "), many);
}

}  // namespace

StopAgreement::StopAgreement(Store& store, RunNews& news, StoreCollectives& collectives, Rank rank,
                             int nodes, const std::atomic<bool>* stop)
    : store_(store),
      news_(news),
      collectives_(collectives),
      rank_(rank),
      nodes_(nodes),
      stop_(stop) {
  static_assert(std::atomic<EndReason>::is_always_lock_free, "a signal's handler may ask");
}

void StopAgreement::ask(EndReason reason) { asked_ = reason; }

EndReason StopAgreement::own_reason() const {
  const EndReason asked = asked_;
  return asked == EndReason::none && stop_ != nullptr && *stop_ ? EndReason::told : asked;
}

Status StopAgreement::begin(Round done) {
  {
    const std::lock_guard lock(mutex_);
    begun_ = std::max(begun_, done);
    if (!wanted()) {
      begun_ = done + 1;
      return {};
    }
    answer();
  }
  if (Status status = await_decision(); !status.ok()) {
    return status;
  }
  const std::lock_guard lock(mutex_);
  if (done >= *last_) {
    return ended();
  }
  begun_ = done + 1;
  return {};
}

void StopAgreement::listen() {
  const std::lock_guard lock(mutex_);
  if (last_) {
    return;
  }
  if (!wanted()) {
    if (!news_.any() || !look_for(store_, wanted_key()).value) {
      return;
    }
  }
  answer();
  if (rank_ == 0) {
    for (Rank peer = 1; peer < nodes_; ++peer) {
      if (!answers_.contains(peer)) {
        const StoreLook found = look_for(store_, answer_key(peer));
        if (found.value) {
          (void)take_answer(peer,
                            *found.value);  // what cannot be read is waited for, and named then
        }
      }
    }
    decide_if_complete();
  }
}

void StopAgreement::answer() {
  if (answered_) {
    return;
  }
  const EndReason reason = own_reason();
  heard_ = true;
  answered_ = true;
  // A store that is gone ends the wait for the decision, which says so.
  if (reason != EndReason::none) {
    (void)set_once(store_, wanted_key());
    (void)news_.announce();
  }
  if (rank_ == 0) {
    answers_[0] = {begun_, reason};
    return;
  }
  ByteBuffer value;
  value.write(begun_);
  value.write(static_cast<std::uint8_t>(reason));
  (void)store_.set(answer_key(rank_), value.bytes());
}

Status StopAgreement::await_decision() {
  if (rank_ != 0) {
    {
      const std::lock_guard lock(mutex_);
      if (last_) {
        return {};
      }
    }
    const auto value = collectives_.await_node_0(kDecided);
    return value.ok() ? read_decision(*value) : value.status();
  }
  for (Rank peer = 1; peer < nodes_; ++peer) {
    {
      const std::lock_guard lock(mutex_);
      if (answers_.contains(peer)) {
        continue;
      }
    }
    const auto value = collectives_.await(answer_key(peer), peer);
    Status taken = value.status();
    if (value.ok()) {
      const std::lock_guard lock(mutex_);
      taken = take_answer(peer, *value);
    }
    if (!taken.ok()) {
      return taken;
    }
  }
  const std::lock_guard lock(mutex_);
  decide_if_complete();
  return {};
}

Status StopAgreement::take_answer(Rank peer, const std::vector<std::byte>& value) {
  ByteReader in(value);
  Answer answer;
  answer.begun = in.read<Round>();
  const auto reason = in.read<std::uint8_t>();
  if (!in.finished() || reason > static_cast<std::uint8_t>(EndReason::out_of_data) ||
      !plausible(answer.begun, begun_)) {
    return {
        Fault::malformed,
        fmt::format("node {}: what node {} says of its last round cannot be read", rank_, peer)};
  }
  answer.reason = static_cast<EndReason>(reason);
  answers_.emplace(peer, answer);
  return {};
}

void StopAgreement::decide_if_complete() {
  if (last_ || answers_.size() < static_cast<std::size_t>(nodes_)) {
    return;
  }
  std::vector<Rank> told;
  std::vector<Rank> out_of_data;
  Round last = 0;
  for (const auto& [node, answer] : answers_) {
    last = std::max(last, answer.begun);
    if (answer.reason == EndReason::told) {
      told.push_back(node);
    } else if (answer.reason == EndReason::out_of_data) {
      out_of_data.push_back(node);
    }
  }
  why_ = told.empty() ? nodes_that(out_of_data, "is out of data", "are out of data")
                      : nodes_that(told, "was told to stop", "were told to stop");
  last_ = last;
  ByteBuffer decision;
  decision.write(last);
  decision.write_string(why_);
  (void)store_.set(kDecided, decision.bytes());
}

Status StopAgreement::read_decision(const std::vector<std::byte>& value) {
  constexpr std::size_t kLongestReason = std::size_t{1} << 14U;
  ByteReader in(value);
  const auto last = in.read<Round>();
  std::string why = in.read_string(kLongestReason);
  const std::lock_guard lock(mutex_);
  if (!in.finished() || !plausible(last, begun_)) {
    return {Fault::malformed,
            fmt::format("node {}: the round after which all end, by node 0, cannot be", rank_)};
  }
  last_ = last;
  why_ = printable(why);
  return {};
}

Status StopAgreement::ended() const {
  return {Fault::ended, fmt::format("{}; all nodes end with round {}", why_, *last_)};
}

std::string StopAgreement::why() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

}  // namespace sotto::internal
