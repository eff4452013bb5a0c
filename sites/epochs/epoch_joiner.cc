#include <sotto/sites/epochs/epoch_joiner.h>

#include <algorithm>
#include <utility>

#include <sotto/sites/epochs/epoch_mean.h>

namespace sotto::sites {
namespace {

constexpr std::size_t kPiecesAsked = 8;  // at once
/// Means that are asked for at once: those of so many bytes, as a run may make many steps in a
/// round trip, and a donor's channel takes no more of what waits.
constexpr std::size_t kMeanBytesAsked = std::size_t{16} << 20;
constexpr Round kFewestMeansAsked = 2;
constexpr Round kMostMeansAsked = 128;

/// A copy of the state has at most so many floats for each parameter, and so many bytes besides: no
/// step rule keeps more.
constexpr std::size_t kMostStateFloats = 16;
constexpr std::size_t kMostRest = std::size_t{1} << 20U;

}  // namespace

EpochJoiner::EpochJoiner(const EpochSetup& setup, EpochPost& post)
    : setup_(setup),
      post_(post),
      fetch_(kMostStateFloats * sizeof(float) * setup.parameters.size() + kMostRest) {}

std::optional<FetchedState> EpochJoiner::take(const EpochNode& from, const PieceMessage& piece,
                                              EpochTime now) {
  if (!hears(from) || !fetch_.take(piece, now)) {
    return std::nullopt;
  }
  const Round step = *fetch_.wanted();
  auto copy = fetch_.finish();
  if (!copy) {
    return std::nullopt;
  }
  forget_requests();
  return FetchedState{step, *std::move(copy)};
}

void EpochJoiner::seek(Round step, bool free, EpochTime now) {
  fetch_.forget([&](const EpochNode& donor, EpochTime heard) {
    return post_.suspects(donor) || now - heard > kDonorSilent;
  });
  fetch_.choose(now, 4 * setup_.delta + 4 * kEpochAgain);
  for (const EpochPeer& peer : post_.peers()) {
    if (!peer.suspected) {
      post_.send({peer.name, peer.incarnation, 0},
                 JoinMessage{free && !replays() ? fetch_.wanted() : std::nullopt,
                             replays() ? std::optional(step) : std::nullopt});
    }
  }
  if (!free) {
    return;
  }
  fetch_.ask_again();
  ++turn_;
  bool ahead = false;
  bool served = false;
  for (const auto& [node, donor] : fetch_.donors()) {
    ahead |= donor.step > step;
    served |= donor.step > step && donor.oldest > 0 && donor.oldest <= step + 1;
  }
  if (replays() && ahead && !served) {
    fetch_.restart();  // the means that it needs are gone
  }
}

void EpochJoiner::ask(Round step) {
  ask_for_pieces();
  if (replays()) {
    ask_for_means(step);
  }
}

void EpochJoiner::ask_for_pieces() {
  std::vector<EpochNode> donors;
  donors.reserve(fetch_.donors().size());
  const auto holds = [this](const auto& item) { return item.second.copy == fetch_.wanted(); };
  const bool any_holds = std::ranges::any_of(fetch_.donors(), holds);
  for (const auto& item : fetch_.donors()) {
    if (!any_holds || holds(item)) {
      donors.push_back(item.first);
    }
  }
  if (donors.empty()) {
    return;
  }
  for (const std::uint32_t index : fetch_.ask(kPiecesAsked)) {
    post_.send(donors[(turn_ + index) % donors.size()], FetchMessage{*fetch_.wanted(), index});
  }
}

bool EpochJoiner::serves(const EpochNode& node, const StateFetch::Donor& donor, Round step) const {
  return !post_.suspects(node) && donor.oldest > 0 && donor.oldest <= step + 1;
}

void EpochJoiner::ask_for_means(Round step) {
  const auto& donors = fetch_.donors();
  auto from = asked_from_ ? donors.find(*asked_from_) : donors.end();
  if (from == donors.end() || !serves(from->first, from->second, step)) {
    from = donors.end();
    for (auto donor = donors.begin(); donor != donors.end(); ++donor) {
      if (serves(donor->first, donor->second, step) &&
          (from == donors.end() || donor->second.step > from->second.step)) {
        from = donor;
      }
    }
  }
  if (from == donors.end()) {
    return;
  }
  asked_from_ = from->first;
  asked_to_ = std::max(asked_to_, step);
  const Round most =
      std::clamp<Round>(kMeanBytesAsked / (sizeof(float) * setup_.parameters.size() + 1),
                        kFewestMeansAsked, kMostMeansAsked);
  while (asked_to_ < std::min(from->second.step, step + most)) {
    post_.send(from->first, WantMessage{++asked_to_, kAllParts});
  }
}

void EpochJoiner::look_for_progress(Round step) {
  if (std::exchange(replayed_, step) == step) {
    forget_requests();  // what was asked for is lost, or comes from nobody
  }
}

void EpochJoiner::forget_requests() {
  asked_to_ = 0;
  asked_from_.reset();
}

}  // namespace sotto::sites
