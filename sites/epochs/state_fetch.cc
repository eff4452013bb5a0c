#include <sotto/sites/epochs/state_fetch.h>

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include <sotto/base/xxh3.h>

namespace sotto::sites {

void StateFetch::want(Round step, EpochTime now) {
  wanted_ = step;
  begun_ = chosen_ = now;
  took_ = EpochTime(0);
  givers_.clear();
  forget_pieces();
  for (auto& [node, donor] : donors_) {
    donor.holds = donor.copy == step;
    donor.differs = false;
  }
}

void StateFetch::hear(const EpochNode& node, const DonorMessage& message, EpochTime now) {
  Donor& donor = donors_[node];
  donor.step = message.step;
  donor.oldest = message.oldest;
  donor.heard = now;
  donor.copy = message.copy;
  if (message.copy) {  // one that is not offered any more may be held on
    donor.holds = message.copy == wanted_ && !donor.differs;
  }
  if (message.copy && !donor.holds) {
    drop_requests([&](const EpochNode& asked, EpochTime) { return asked == node; });
  }
}

void StateFetch::choose(EpochTime now, EpochTime patience) {
  Round step = 0;
  std::optional<Round> offered;
  bool served = false;
  for (const auto& [node, donor] : donors_) {
    step = std::max(step, donor.step);
    offered = is_asked(node) ? std::max(offered, donor.copy) : offered;
    served |= wanted_ && is_asked(node) && !donor.differs && (donor.holds || donor.copy == wanted_);
  }
  const std::optional<Round> before =
      std::exchange(seen_, donors_.empty() ? std::nullopt : std::optional(step));
  if (offered && offered != wanted_ && !done_ && pieces_.empty() && !served) {
    want(*offered, now);
    return;
  }
  const EpochTime longest = served ? std::max(patience, 2 * silence()) : patience;
  if (!before || !seen_ || done_ || (wanted_ && now - chosen_ < longest)) {
    return;
  }
  // All donors can copy a step that none has reached when it hears of it; but where the run pauses
  // none will come.
  const Round pace = step - std::min(step, *before);
  ahead_ = wanted_ ? !ahead_ : pace > 0;
  want(step + (ahead_ ? 1 + 2 * pace : 0), now);
}

bool StateFetch::take(const EpochNode& from, const PieceMessage& piece, EpochTime now) {
  if (piece.step != wanted_ || done_) {
    return false;
  }
  if (!donors_.contains(from) && !asked_nodes_.contains(from)) {
    return false;
  }
  // A donor that was given up and forgotten may have been slow: what it sends is as good.
  const auto donor = donors_.try_emplace(from, Donor{.step = piece.step}).first;
  donor->second.heard = now;
  if (count_ > 0 && (piece.root != root_ || piece.count != count_)) {
    donor->second.differs = true;
    donor->second.holds = false;
    drop_requests([&](const EpochNode& asked, EpochTime) { return asked == from; });
    return false;
  }
  if (!joins(from)) {
    return false;
  }
  if (piece.bytes.size() > most_bytes_ - bytes_) {
    restart();  // no state is that long
    return false;
  }
  count_ = piece.count;
  root_ = piece.root;
  if (pieces_.try_emplace(piece.index, piece.bytes.begin(), piece.bytes.end()).second) {
    bytes_ += piece.bytes.size();
    givers_.insert(from);
    chosen_ = donor->second.gave = now;
    donor->second.holds = true;
    note_time(from, piece.index, now);
  }
  return pieces_.size() == count_;
}

void StateFetch::note_time(const EpochNode& from, std::uint32_t index, EpochTime now) {
  const auto request = under_way_.find(index);
  if (request == under_way_.end() || request->second.donor != from) {
    took_ = silence();  // it was taken for lost, and was under way
  } else {
    took_ = now - request->second.first;
    if (took_ <= kQuick) {
      window_ = std::min(window_ + 1, kMostWindow);
    } else if (took_ > kSlow) {
      window_ = std::max<std::size_t>(window_ - 1, 1);
    }
  }
  under_way_.erase(index);
  again_.erase(index);
}

void StateFetch::drop_late(EpochTime now) {
  const EpochTime longest = silence();
  bool late = false;
  drop_requests([&](const EpochNode& node, EpochTime asked) {
    Donor& donor = donors_[node];
    if (now - std::max(asked, donor.gave) < longest) {
      return false;
    }
    donor.holds = false;  // until it says or shows it again
    late = true;
    return true;
  });
  if (late) {
    took_ = std::max(took_, longest);  // it may be slow, and not lost: the next one has more time
  }
}

bool StateFetch::is_asked(const EpochNode& donor) const {
  return !wrong_.contains(donor) || std::ranges::all_of(donors_, [&](const auto& item) {
    return wrong_.contains(item.first);
  });
}

std::optional<EpochNode> StateFetch::next_donor(bool any_holds) {
  std::map<EpochNode, std::size_t> asked;
  for (const auto& [index, request] : under_way_) {
    ++asked[request.donor];
  }
  std::vector<EpochNode> fewest;
  std::size_t least = kMostWindow;
  for (const auto& [node, donor] : donors_) {
    const auto found = asked.find(node);
    const std::size_t has = found == asked.end() ? 0 : found->second;
    if (donor.differs || !is_asked(node) || !joins(node) || (any_holds && !donor.holds) ||
        has > least) {
      continue;
    }
    if (has < least) {
      fewest.clear();
      least = has;
    }
    fewest.push_back(node);
  }
  return fewest.empty() ? std::nullopt : std::optional(fewest[turn_++ % fewest.size()]);
}

std::vector<StateFetch::Request> StateFetch::ask(EpochTime now) {
  std::vector<Request> requests;
  if (!wanted_ || done_) {
    return requests;
  }
  drop_late(now);
  const bool any_holds = std::ranges::any_of(donors_, [&](const auto& item) {
    return item.second.holds && is_asked(item.first) && joins(item.first);
  });
  if (!any_holds && now - begun_ < ProgressWait::kLeast) {
    return requests;
  }
  const std::size_t most = any_holds ? window_ : 1;
  requests.reserve(most);
  while (under_way_.size() < most && (!again_.empty() || asked_ < std::max(count_, 1U))) {
    const auto donor = next_donor(any_holds);
    if (!donor) {
      break;
    }
    std::uint32_t index = asked_;
    EpochTime first = now;
    if (again_.empty()) {
      ++asked_;
    } else {
      std::tie(index, first) = *again_.begin();
      again_.erase(index);
    }
    if (!pieces_.contains(index)) {
      under_way_[index] = {*donor, now, first};
      asked_nodes_.insert(*donor);
      requests.push_back({*donor, index});
    }
  }
  return requests;
}

std::optional<std::vector<std::byte>> StateFetch::finish() {
  std::vector<std::byte> whole;
  for (const auto& [index, bytes] : pieces_) {
    whole.insert(whole.end(), bytes.begin(), bytes.end());
  }
  const auto digested = std::span(whole).first(std::min(whole.size(), digested_bytes_));
  if (xxh3_128(digested) != root_) {
    if (givers_.size() == 1) {
      wrong_.insert(*givers_.begin());
    }
    alone_ = true;
    restart();
    return std::nullopt;
  }
  forget_pieces();
  done_ = true;
  alone_ = false;
  wrong_.clear();
  return whole;
}

}  // namespace sotto::sites
