#include "rendezvous.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/comm/run_keys.h>

#include "../fault_text.h"
#include "../ledger.h"
#include "start_number.h"

namespace sotto::internal {
namespace {

/// How long a wait for one peer may keep us from looking at the next: longer each time round, as a
/// peer that is late will not be there at once.
constexpr std::chrono::milliseconds kShortestLook{20};
constexpr std::chrono::milliseconds kLongestLook{500};

/// A node's entry in the store for another one.
struct Card {
  std::uint64_t number = 0;  ///< number of the writer's start
  std::vector<std::byte> address;
};

std::vector<std::byte> pack(const Card& card) {
  ByteBuffer out;
  out.write(card.number);
  out.append(card.address);
  return std::move(out).take();
}

std::optional<Card> unpack(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  Card card;
  card.number = in.read<std::uint64_t>();
  const auto address = in.take(in.remaining());
  card.address.assign(address.begin(), address.end());
  return in.failed() ? std::nullopt : std::optional(std::move(card));
}

class Meeting {
 public:
  Meeting(const TransportOptions& options, std::string_view kind, const Addresses& mine)
      : options_(options), kind_(kind), number_(draw_start_number(options.rank)) {
    for (const auto& [peer, address] : mine) {
      awaited_[peer] = 0;
    }
  }

  Status publish_all(const Addresses& mine) {
    for (const auto& [peer, address] : mine) {
      if (auto set = store().set(card_key(options_.rank, peer), pack({number_, address})); !set) {
        return set;
      }
    }
    return {};
  }
  /// Looks for the peers that have not come yet. The first to be looked at is waited for.
  Status look(Deadline deadline);
  std::vector<Rank> awaited() const;
  bool done() const { return awaited_.empty(); }
  Addresses take() && { return std::move(theirs_); }

 private:
  Store& store() const { return *options_.store; }
  std::string card_key(Rank from, Rank to) const {
    return node_key_for(fmt::format("{:016x}/{}", options_.run_id, kind_), from, to);
  }
  std::string echo_key(std::uint64_t number, Rank from, Rank to) const {
    return node_key_for(fmt::format("{:016x}/{}/{:016x}", options_.run_id, kind_, number), from,
                        to);
  }
  /// The peer's card, once it is there, with its number echoed.
  Result<std::optional<Card>> read_card(Rank peer, Deadline deadline);
  /// True when the peer has echoed our number.
  Result<bool> echoed_by(Rank peer, Deadline deadline);

  const TransportOptions& options_;
  const std::string kind_;
  const std::uint64_t number_;
  /// Peers that have not come, and the number of theirs that we echoed; 0: none.
  std::map<Rank, std::uint64_t> awaited_;
  std::chrono::milliseconds look_ = kShortestLook;
  Addresses theirs_;
};

Result<std::optional<Card>> Meeting::read_card(Rank peer, Deadline deadline) {
  const auto value = store().get(card_key(peer, options_.rank), deadline);
  if (!value) {
    return value.status().fault() == Fault::deadline ? Result<std::optional<Card>>(std::nullopt)
                                                     : value.status();
  }
  auto card = unpack(*value);
  std::uint64_t& echoed = awaited_[peer];
  if (!card || card->number == echoed) {
    return card;  // without one it is not ours; its writer may still come
  }
  if (echoed != 0) {
    // This echo is of an earlier start, which will not look for it.
    if (auto removed = store().remove(echo_key(echoed, options_.rank, peer)); !removed) {
      return removed;
    }
  }
  echoed = card->number;
  if (auto set = store().set(echo_key(echoed, options_.rank, peer), {}); !set) {
    return set;
  }
  return card;
}

Result<bool> Meeting::echoed_by(Rank peer, Deadline deadline) {
  const auto echo = store().get(echo_key(number_, peer, options_.rank), deadline);
  return echo.ok() || echo.status().fault() == Fault::deadline ? Result<bool>(echo.ok())
                                                               : echo.status();
}

Status Meeting::look(Deadline deadline) {
  bool waited = false;
  const auto patience = [&] {
    return deadline.or_after(waited ? Deadline::Clock::duration::zero() : look_);
  };
  // All cards first: then no neighbour waits for our echo while we wait for another.
  for (const Rank peer : awaited()) {
    const auto card = read_card(peer, patience());
    if (!card) {
      return card.status();
    }
    waited = waited || !*card;
  }
  for (const Rank peer : awaited()) {
    const auto echoed = echoed_by(peer, patience());
    if (!echoed) {
      return echoed.status();
    }
    waited = waited || !*echoed;
    if (!*echoed) {
      continue;
    }
    // The card that is there now is the last that this peer writes, and nobody else reads it.
    auto card = read_card(peer, Deadline::after({}));
    if (!card) {
      return card.status();
    }
    if (!*card) {
      continue;
    }
    theirs_[peer] = std::move((*card)->address);
    awaited_.erase(peer);
    for (const std::string& key :
         {card_key(peer, options_.rank), echo_key(number_, peer, options_.rank)}) {
      if (auto removed = store().remove(key); !removed) {
        return removed;
      }
    }
  }
  look_ = waited ? std::min(2 * look_, kLongestLook) : look_;
  return {};
}

std::vector<Rank> Meeting::awaited() const {
  std::vector<Rank> peers;
  peers.reserve(awaited_.size());
  for (const auto& [peer, echoed] : awaited_) {
    peers.push_back(peer);
  }
  return peers;
}

}  // namespace

Result<Addresses> meet(const TransportOptions& options, std::string_view kind,
                       const Addresses& mine, Deadline deadline) {
  Meeting meeting(options, kind, mine);
  auto status = meeting.publish_all(mine);
  while (status.ok() && !meeting.done()) {
    if (deadline.expired()) {
      return not_come(meeting.awaited(), deadline);
    }
    status = meeting.look(deadline);
  }
  if (!status.ok()) {
    return status.with_context("meeting the neighbours");
  }
  return std::move(meeting).take();
}

}  // namespace sotto::internal
