#include <sotto/sites/core/neighbours.h>

#include <algorithm>
#include <string>
#include <utility>

#include <sotto/sites/core/places.h>

namespace sotto::sites {
namespace {

/// Rounds in which nothing may have come of one that is quiet.
constexpr Round kQuietRounds = 2;

}  // namespace

std::size_t Neighbours::place_of(const std::vector<Neighbour>& peers, std::string_view name) {
  const auto at = std::ranges::find(
      peers, name, [](const Neighbour& peer) -> std::string_view { return peer.entry.name; });
  return static_cast<std::size_t>(at - peers.begin());
}

std::vector<std::size_t> Neighbours::changed_by(const std::vector<SitePeer>& list) const {
  std::vector<std::size_t> changed;
  for (const SitePeer& entry : list) {
    const std::size_t at = place_of(listed_, entry.name);
    if (at < listed_.size() &&
        (listed_[at].entry.hears != entry.hears || listed_[at].entry.tells != entry.tells)) {
      changed.push_back(at);
    }
  }
  return changed;
}

std::vector<std::size_t> Neighbours::missing_from(const std::vector<SitePeer>& list) const {
  std::vector<std::size_t> missing;
  for (std::size_t k = 0; k < listed_.size(); ++k) {
    if (std::ranges::find(list, listed_[k].entry.name, &SitePeer::name) == list.end()) {
      missing.push_back(k);
    }
  }
  return missing;
}

Neighbours::Moves Neighbours::update(const std::vector<SitePeer>& list) {
  Moves moves = {.from = std::vector<std::size_t>(list.size(), kNobody),
                 .to = std::vector<std::size_t>(listed_.size(), kNobody)};
  std::vector<Neighbour> next(list.size());
  for (std::size_t k = 0; k < list.size(); ++k) {
    const std::size_t old = place_of(listed_, list[k].name);
    const std::size_t once = place_of(former_, list[k].name);
    if (old < listed_.size()) {
      next[k] = std::move(listed_[old]);
      moves.from[k] = old;
      moves.to[old] = k;
    } else if (once < former_.size()) {
      next[k] = std::move(former_[once]);
      former_.erase(former_.begin() + static_cast<std::ptrdiff_t>(once));
    }
    next[k].entry = list[k];
  }
  for (std::size_t k = 0; k < listed_.size(); ++k) {
    if (moves.to[k] == kNobody) {
      former_.push_back(std::move(listed_[k]));
    }
  }
  if (former_.size() > kMostFormer) {
    former_.erase(former_.begin(), former_.end() - static_cast<std::ptrdiff_t>(kMostFormer));
  }
  listed_ = std::move(next);
  return moves;
}

std::size_t Neighbours::tells() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      listed_, [](const Neighbour& peer) { return peer.entry.tells && !peer.observer; }));
}

bool Neighbours::has_second_opinion() const {
  const auto may_say = [](const Neighbour& peer) { return peer.entry.hears && !peer.up(); };
  return rounds_but_of({}).size() > 1 || std::ranges::none_of(listed_, may_say);
}

std::vector<Round> Neighbours::rounds_but_of(std::optional<std::size_t> peer) const {
  std::vector<Round> rounds;
  for (std::size_t k = 0; k < listed_.size(); ++k) {
    if (peer != k && listed_[k].heard() && listed_[k].known.round > 0) {
      rounds.push_back(listed_[k].known.round);
    }
  }
  return rounds;
}

void Neighbours::set_draining(const std::vector<DrainingPeer>& peers) {
  for (Neighbour& peer : listed_) {
    const auto found = std::ranges::find(peers, peer.entry.name, &DrainingPeer::name);
    peer.draining = found != peers.end();
    peer.leaves = peer.draining && found->leaves;
  }
}

bool Neighbours::quiet() const {
  return std::ranges::all_of(listed_, [](const Neighbour& peer) {
    return !peer.heard() ||
           (peer.in.pending().empty() && peer.habits.silent_rounds() >= kQuietRounds);
  });
}

void Neighbours::begin_anew() {
  for (std::vector<Neighbour>* all : {&listed_, &former_}) {
    for (Neighbour& peer : *all) {
      peer.begin_anew();
    }
  }
}

void Neighbours::save_former(ByteBuffer& out) const {
  out.write(static_cast<std::uint32_t>(former_.size()));
  for (const Neighbour& peer : former_) {
    out.write_string(peer.entry.name);
    peer.save(out);
  }
}

void Neighbours::clear() {
  listed_.clear();
  former_.clear();
}

Status Neighbours::load_next(ByteReader& in, std::size_t window, std::size_t max_payload) {
  return load_into(listed_, in, window, max_payload);
}

Status Neighbours::load_former(ByteReader& in, std::size_t window, std::size_t max_payload) {
  const auto count = in.read<std::uint32_t>();
  if (in.failed() || count > kMostFormer) {
    return {Fault::malformed, "checkpoint has too many former peers"};
  }
  for (std::uint32_t k = 0; k < count; ++k) {
    if (Status status = load_into(former_, in, window, max_payload); !status.ok()) {
      return status;
    }
  }
  return {};
}

Status Neighbours::load_into(std::vector<Neighbour>& peers, ByteReader& in, std::size_t window,
                             std::size_t max_payload) {
  const std::string name = in.read_string(kMostName);
  if (in.failed() || name.empty() || place_of(listed_, name) < listed_.size() ||
      place_of(former_, name) < former_.size()) {
    return {Fault::malformed, "checkpoint has a peer without a name, or twice"};
  }
  peers.emplace_back().entry.name = name;
  return peers.back().load(in, window, max_payload).with_context(name);
}

}  // namespace sotto::sites
