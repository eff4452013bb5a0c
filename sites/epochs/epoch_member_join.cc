// EpochMember as a newcomer, and as a donor of the state.
#include <algorithm>
#include <utility>

#include <sotto/sites/epochs/epoch_member.h>

namespace sotto::sites {
namespace {

constexpr std::size_t kPiecesAsked = 8;  // at once
/// Means that are asked for at once: those of so many bytes, as a run may make many steps in a
/// round trip, and a donor's channel takes no more of what waits.
constexpr std::size_t kMeanBytesAsked = std::size_t{16} << 20;
constexpr Round kFewestMeansAsked = 2;
constexpr Round kMostMeansAsked = 128;

}  // namespace

void EpochMember::on_join(const EpochNode& from, const JoinMessage& join, EpochTime now) {
  if (standing_ != EpochStanding::member) {
    return;
  }
  if (std::ranges::find(members_, from) != members_.end()) {
    on_ask(from, epoch_ - 1);  // it has not heard that it was taken in
    return;
  }
  newcomers_.insert_or_assign(from, Newcomer{now, join.wanted, join.ready,
                                             step_ - std::min(step_, join.ready.value_or(0))});
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

void EpochMember::measure_pace(EpochTime now) {
  if (!frozen() && now - paced_at_ >= setup_.delta) {
    pace_ = step_ - paced_step_;
    paced_at_ = now;
    paced_step_ = step_;
  }
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
  fetch_.choose(now, 4 * setup_.delta + 4 * kAgain);
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
  fetch_.ask_again();
  ++turn_;
  bool ahead = false;
  bool serves = false;
  for (const auto& [node, donor] : fetch_.donors()) {
    ahead |= donor.step > step_;
    serves |= donor.step > step_ && donor.oldest > 0 && donor.oldest <= step_ + 1;
  }
  if (fetch_.done() && ahead && !serves) {
    fetch_.restart();  // the means that it needs are gone
  }
}

void EpochMember::fetch() {
  std::vector<EpochNode> donors;
  for (const auto& [node, donor] : fetch_.donors()) {
    donors.push_back(node);
  }
  if (standing_ != EpochStanding::joining || computing_ || donors.empty()) {
    return;
  }
  for (const std::uint32_t index : fetch_.ask(kPiecesAsked)) {
    send(donors[(turn_ + index) % donors.size()], FetchMessage{*fetch_.wanted(), index});
  }
}

void EpochMember::pull() {
  if (standing_ != EpochStanding::joining || !fetch_.done() || computing_) {
    return;
  }
  const auto serves = [&](const EpochNode& node, const StateFetch::Donor& donor) {
    return !suspected(node) && donor.oldest > 0 && donor.oldest <= step_ + 1;
  };
  const auto& donors = fetch_.donors();
  auto from = asked_from_ ? donors.find(*asked_from_) : donors.end();
  if (from == donors.end() || !serves(from->first, from->second)) {
    from = donors.end();
    for (auto donor = donors.begin(); donor != donors.end(); ++donor) {
      if (serves(donor->first, donor->second) &&
          (from == donors.end() || donor->second.step > from->second.step)) {
        from = donor;
      }
    }
  }
  if (from == donors.end()) {
    return;
  }
  asked_from_ = from->first;
  asked_to_ = std::max(asked_to_, step_);
  const Round most =
      std::clamp<Round>(kMeanBytesAsked / (sizeof(float) * setup_.parameters.size() + 1),
                        kFewestMeansAsked, kMostMeansAsked);
  while (asked_to_ < std::min(from->second.step, step_ + most)) {
    send(from->first, WantMessage{++asked_to_, kAllParts});
  }
}

void EpochMember::push_to_newcomers(const StepMean& mean, const EpochDigest& digest) {
  if (!index_ || members_.empty() || mean.step % members_.size() != *index_) {
    return;  // one member sends each mean; what is lost, or comes too early, is asked for
  }
  for (const auto& [node, newcomer] : newcomers_) {
    if (newcomer.ready && newcomer.behind <= 3) {
      send_mean(node, mean, digest, kAllParts);
    }
  }
}

void EpochMember::restore() {
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
  asked_to_ = 0;
  asked_from_.reset();
  log_.clear();
  held_.clear();
}

}  // namespace sotto::sites
