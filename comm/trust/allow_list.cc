#include <sotto/comm/trust/allow_list.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>

namespace sotto {
namespace {

void sort_and_check(std::vector<TrustedPeer>& peers) {
  std::sort(peers.begin(), peers.end(),
            [](const TrustedPeer& a, const TrustedPeer& b) { return a.rank < b.rank; });
  for (auto peer = peers.begin(); peer != peers.end(); ++peer) {
    if (peer->rank < 0) {
      refuse("peers", fmt::to_string(peer->rank), "ranks count from 0");
    }
    if (peer != peers.begin() && std::prev(peer)->rank == peer->rank) {
      refuse("peers", fmt::to_string(peer->rank), "this rank stands twice");
    }
    for (const PeerKey& one : peer->keys()) {
      if (!one.key.sound()) {
        refuse("peers", one.key.text(), "anybody can pose as this key; use `sotto keygen`");
      }
      for (auto other = peers.begin(); other != peer; ++other) {
        if (other->holds(one.key)) {
          refuse("peers", one.key.text(),
                 fmt::format("ranks {} and {} have the same key; each node has its own",
                             other->rank, peer->rank));
        }
      }
    }
  }
}

}  // namespace

std::vector<PeerKey> TrustedPeer::keys() const {
  std::vector<PeerKey> all = {{key, until}};
  all.insert(all.end(), more_keys.begin(), more_keys.end());
  return all;
}

bool TrustedPeer::holds(const PublicKey& one) const {
  return key == one || std::ranges::find(more_keys, one, &PeerKey::key) != more_keys.end();
}

bool drop_expired(std::vector<TrustedPeer>& peers, std::int64_t now) {
  bool any = false;
  const auto over = [&](const std::optional<std::int64_t>& until) {
    const bool ends = until && *until <= now;
    any = any || ends;
    return ends;
  };
  std::erase_if(peers, [&](TrustedPeer& peer) {
    std::erase_if(peer.more_keys, [&](const PeerKey& one) { return over(one.until); });
    const bool gone = over(peer.until);
    if (gone && !peer.more_keys.empty()) {
      peer.key = peer.more_keys.front().key;
      peer.until = peer.more_keys.front().until;
      peer.more_keys.erase(peer.more_keys.begin());
      return false;
    }
    return gone;
  });
  return any;
}

AllowList::AllowList(std::vector<TrustedPeer> peers) : peers_(std::move(peers)) {
  sort_and_check(peers_);
}

void AllowList::update_allow_list(std::vector<TrustedPeer> peers) {
  sort_and_check(peers);
  const std::lock_guard lock(mutex_);
  peers_ = std::move(peers);
  ++version_;
}

bool AllowList::drop_expired(std::int64_t now) {
  const std::lock_guard lock(mutex_);
  const bool any = sotto::drop_expired(peers_, now);
  version_ += any ? 1U : 0U;
  return any;
}

void AllowList::set_trouble(std::string trouble) {
  const std::lock_guard lock(mutex_);
  trouble_ = std::move(trouble);
}

std::string AllowList::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

std::vector<TrustedPeer> AllowList::peers() const {
  const std::lock_guard lock(mutex_);
  return peers_;
}

std::optional<TrustedPeer> AllowList::find(Rank rank) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(peers_.begin(), peers_.end(),
                                  [&](const TrustedPeer& peer) { return peer.rank == rank; });
  return found == peers_.end() ? std::nullopt : std::optional(*found);
}

std::optional<TrustedPeer> AllowList::admitted(std::string_view key) const {
  const auto parsed = PublicKey::parse(key);
  if (!parsed) {
    return std::nullopt;
  }
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(peers_.begin(), peers_.end(), [&](const TrustedPeer& peer) {
    return peer.holds(*parsed) && (peer.may_send || peer.send_to);
  });
  return found == peers_.end() ? std::nullopt : std::optional(*found);
}

}  // namespace sotto
