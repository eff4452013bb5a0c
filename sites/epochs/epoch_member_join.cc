// EpochMember as a newcomer, and as a donor of the state.
#include <algorithm>
#include <utility>

#include <sotto/sites/epochs/epoch_member.h>

namespace sotto::sites {
namespace {

constexpr std::size_t kPiecesAsked = 8;  // at once
constexpr Round kMeansAsked = 4;         // at once

}  // namespace

void EpochMember::on_join(const EpochNode& from, const JoinMessage& join, EpochTime now) {
  if (standing_ != EpochStanding::member ||
      std::ranges::find(members_, from) != members_.end()) {
    return;
  }
  newcomers_.insert_or_assign(from, Newcomer{now, join.wanted, join.ready});
  look_after_newcomers(now);
  send(from, DonorMessage{step_, log_.oldest()});
}

void EpochMember::on_fetch(const EpochNode& from, const FetchMessage& fetch, EpochTime now) {
  if (const auto piece = copy_.piece(fetch, now)) {
    send(from, *piece);
  }
}

void EpochMember::look_after_newcomers(EpochTime now) {
  std::erase_if(newcomers_, [&](const auto& item) {
    return now - item.second.heard > kNewcomerSilent || suspected(item.first);
  });
  copy_.expire(now);
  copy_if_wanted();
  Round oldest = step_ + 1;
  for (const auto& [node, newcomer] : newcomers_) {
    oldest = std::min(oldest, newcomer.ready.value_or(newcomer.wanted.value_or(step_)) + 1);
  }
  log_.keep_from(oldest);
}

void EpochMember::copy_if_wanted() {
  const Round step = model_.step();
  const auto wants = [&](const auto& item) { return item.second.wanted == step; };
  if (copy_.step() != step && !copy_.busy(now_) && std::ranges::any_of(newcomers_, wants)) {
    copy_.take(step, model_.snapshot(), setup_.piece_bytes, now_);
  }
}

std::map<EpochNode, Round> EpochMember::ready() const {
  std::map<EpochNode, Round> steps;
  for (const auto& [node, newcomer] : newcomers_) {
    if (newcomer.ready) {
      steps.emplace(node, *newcomer.ready);
    }
  }
  return steps;
}

void EpochMember::seek(EpochTime now) {
  if (standing_ == EpochStanding::founding && !fetch_.donors().empty()) {
    begin_anew();  // a run is there
  }
  fetch_.forget([&](const EpochNode& donor, EpochTime heard) {
    return suspected(donor) || now - heard > kNewcomerSilent;
  });
  fetch_.choose(now, 4 * setup_.delta);
  const bool free = standing_ == EpochStanding::joining && !computing_;
  const std::optional<Round> ready = fetch_.done() ? std::optional(step_) : std::nullopt;
  for (const EpochPeer& peer : peers_) {
    if (!peer.suspected) {
      send({peer.name, peer.incarnation, 0},
           JoinMessage{free && !fetch_.done() ? fetch_.wanted() : std::nullopt, ready});
    }
  }
  if (!free) {
    return;
  }
  std::vector<EpochNode> donors;
  bool ahead = false;
  bool serves = false;
  for (const auto& [node, donor] : fetch_.donors()) {
    donors.push_back(node);
    ahead |= donor.step > step_;
    serves |= donor.step > step_ && donor.oldest > 0 && donor.oldest <= step_ + 1;
  }
  if (donors.empty()) {
    return;
  }
  const auto first = static_cast<std::size_t>(now.count()) % 7919;
  if (fetch_.done() && ahead && !serves) {
    fetch_.restart();  // the means that it needs are gone
  } else if (fetch_.done()) {
    for (Round k = 1; k <= kMeansAsked; ++k) {
      send(donors[(first + k) % donors.size()], WantMessage{step_ + k, kAllParts});
    }
  } else if (fetch_.wanted()) {
    for (const std::uint32_t index : fetch_.missing(kPiecesAsked)) {
      send(donors[(first + index) % donors.size()], FetchMessage{*fetch_.wanted(), index});
    }
  }
}

void EpochMember::restore_and_replay() {
  const Round step = *fetch_.wanted();
  const auto copy = fetch_.finish();
  if (!copy) {
    return;
  }
  if (Status status = model_.restore(step, *copy); !status) {
    fail(status);
    return;
  }
  step_ = step;
  log_.clear();
  held_.clear();
}

}  // namespace sotto::sites
