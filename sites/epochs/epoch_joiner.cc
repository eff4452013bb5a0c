#include <sotto/sites/epochs/epoch_joiner.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <sotto/sites/epochs/epoch_mean.h>

namespace sotto::sites {
namespace {

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
      fetch_(kMostStateFloats * sizeof(float) * setup.parameters.size() + kMostRest,
             sizeof(float) * setup.parameters.size()) {}

void EpochJoiner::distrust(const std::vector<EpochNode>& unequal) {
  const auto gave = [&](const EpochNode& node) { return fetch_.givers().contains(node); };
  const bool anew = std::ranges::any_of(unequal, gave);
  if (unequal_.size() > kMostEpochMembers) {
    unequal_.clear();  // their stays are over by now
  }
  unequal_.insert(unequal.begin(), unequal.end());
  fetch_.forget([&](const EpochNode& donor, EpochTime) { return unequal_.contains(donor); });
  if (anew) {
    restart();
  }
}

bool EpochJoiner::hear(const EpochNode& from, const DonorMessage& donor, EpochTime now) {
  if (unequal_.contains(from)) {
    return false;
  }
  // What members say of steps that this node has not named is no question for its caller.
  const auto& theirs = donor.settings;
  const bool differs = theirs && (theirs->learning_rate != said_.learning_rate ||
                                  (theirs->of == said_.of && theirs->further != said_.further));
  if (!differs) {
    others_.erase(from);
    fetch_.hear(from, donor, now);
    return true;
  }
  others_since_ = others_.empty() ? now : others_since_;
  others_.insert_or_assign(from, *theirs);
  return false;
}

Status EpochJoiner::refusal(EpochTime now) {
  std::erase_if(others_, [&](const auto& item) { return post_.suspects(item.first); });
  if (others_.size() <= donors() || now - others_since_ < 2 * setup_.delta) {
    return {};
  }
  const auto& [node, settings] = *others_.begin();
  const bool rates = settings.learning_rate != said_.learning_rate;
  return {Fault::unexpected,
          fmt::format("{}: the run does not let this node in: {}; give all nodes the same",
                      rates ? "learning_rate" : "step_settings",
                      rates ? fmt::format("{} has {:g}, and this node {:g}", node.name,
                                          settings.learning_rate, said_.learning_rate)
                            : fmt::format("{} makes step {} with other settings than this node, "
                                          "such as rates of a schedule",
                                          node.name, settings.of + 1))};
}

std::optional<FetchedState> EpochJoiner::take(const EpochNode& from, const PieceMessage& piece,
                                              EpochTime now) {
  if (unequal_.contains(from) || !fetch_.take(from, piece, now)) {
    return std::nullopt;
  }
  const Round step = *fetch_.wanted();
  auto copy = fetch_.finish();
  if (!copy) {
    return std::nullopt;
  }
  forget_requests();
  avoided_.reset();
  // A state is at least as long as a mean.
  wait_.begin({step, 0}, now - fetch_.begun(), now);
  return FetchedState{step, *std::move(copy)};
}

void EpochJoiner::seek(Round step, bool free, EpochTime now) {
  fetch_.forget([&](const EpochNode& donor, EpochTime heard) {
    // What it says comes after what it sends, however long that takes.
    const bool sends = fetch_.awaits(donor) || (asked_from_ == donor && asked_to_ > step);
    return post_.suspects(donor) || (now - heard > kDonorSilent && !sends);
  });
  fetch_.choose(now, 4 * setup_.delta + 4 * kEpochAgain);
  said_ = step_settings_of(setup_, replays() ? step : 0);
  for (const EpochPeer& peer : post_.peers()) {
    if (!peer.suspected) {
      post_.send({peer.name, peer.incarnation, 0},
                 JoinMessage{free && !replays() ? fetch_.wanted() : std::nullopt,
                             replays() ? std::optional(step) : std::nullopt, said_});
    }
  }
  if (!free) {
    return;
  }
  bool ahead = false;
  bool served = false;
  for (const auto& [node, donor] : fetch_.donors()) {
    ahead |= donor.step > step;
    served |= donor.step > step && donor.oldest > 0 && donor.oldest <= step + 1;
  }
  if (replays() && ahead && !served) {
    restart();  // the means that it needs are gone
  }
}

void EpochJoiner::ask(Round step, EpochTime now) {
  for (const auto& [donor, index] : fetch_.ask(now)) {
    post_.send(donor, FetchMessage{*fetch_.wanted(), index});
  }
  if (replays()) {
    ask_for_means(step, now);
  }
}

bool EpochJoiner::serves(const EpochNode& node, const StateFetch::Donor& donor, Round step) const {
  return !post_.suspects(node) && donor.oldest > 0 && donor.oldest <= step + 1;
}

std::optional<EpochNode> EpochJoiner::choose_for_means(Round step) const {
  const auto& donors = fetch_.donors();
  if (const auto known = asked_from_ ? donors.find(*asked_from_) : donors.end();
      known != donors.end() && serves(known->first, known->second, step)) {
    return known->first;
  }
  std::optional<EpochNode> best;
  const auto rank = [&](const EpochNode& node) {
    return std::pair(node != avoided_, donors.at(node).step);
  };
  for (const auto& [node, donor] : donors) {
    if (serves(node, donor, step) && (!best || rank(node) > rank(*best))) {
      best = node;
    }
  }
  return best;
}

void EpochJoiner::ask_for_means(Round step, EpochTime now) {
  const std::optional<EpochNode> from = choose_for_means(step);
  if (!from) {
    return;
  }
  if (asked_from_ != from) {
    forget_requests();  // what another was asked for does not come
  }
  asked_from_ = from;
  if (asked_to_ <= step) {
    wait_.begin(now);
  }
  asked_to_ = std::max(asked_to_, step);
  const Round most =
      std::clamp<Round>(kMeanBytesAsked / (sizeof(float) * setup_.parameters.size() + 1),
                        kFewestMeansAsked, kMostMeansAsked);
  while (asked_to_ < std::min(fetch_.donors().at(*from).step, step + most)) {
    post_.send(*from, WantMessage{++asked_to_, kAllParts});
  }
}

void EpochJoiner::look_for_progress(Round step, std::size_t parts, EpochTime now) {
  if (asked_to_ <= step) {
    wait_.begin(now);  // nothing is under way
  }
  if (wait_.ran_out({step, parts}, now)) {
    avoided_ = asked_from_;
    forget_requests();
  }
}

void EpochJoiner::forget_requests() {
  asked_to_ = 0;
  asked_from_.reset();
}

}  // namespace sotto::sites
