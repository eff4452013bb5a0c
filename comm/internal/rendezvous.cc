#include "rendezvous.h"

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/bytes.h>

#include "start_number.h"

namespace sotto::internal {
namespace {

/// How long a look at a key that is not there yet may wait for it before the next is looked at.
constexpr std::chrono::milliseconds kLook{20};
/// Between two rounds of looks.
constexpr std::chrono::milliseconds kPause{1};

/// What one node tells another.
struct Card {
  std::uint64_t number = 0;  ///< of the writer's start
  std::uint64_t named = 0;   ///< of the reader's start, as the writer saw it; 0 before it did
  std::vector<std::byte> address;
};

std::vector<std::byte> pack(const Card& card) {
  ByteBuffer out;
  out.write(card.number);
  out.write(card.named);
  out.append(card.address);
  return std::move(out).take();
}

std::optional<Card> unpack(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  Card card;
  card.number = in.read<std::uint64_t>();
  card.named = in.read<std::uint64_t>();
  const auto address = in.take(in.remaining());
  card.address.assign(address.begin(), address.end());
  return in.failed() ? std::nullopt : std::optional(std::move(card));
}

class Meeting {
 public:
  Meeting(const TransportOptions& options, std::string_view kind, const Addresses& mine)
      : options_(options), kind_(kind), number_(draw_start_number(options.rank)) {
    for (const auto& [peer, address] : mine) {
      cards_[peer] = {number_, 0, address};
      awaited_.insert(peer);
    }
  }

  Status publish_all() {
    for (const Rank peer : awaited_) {
      if (auto published = publish(peer); !published) {
        return published;
      }
    }
    return {};
  }
  /// Looks at the cards of all who have not come yet.
  Status look() {
    const auto peers = awaited_;
    for (const Rank peer : peers) {
      if (auto looked = look_at(peer); !looked) {
        return looked;
      }
    }
    return {};
  }
  const std::set<Rank>& awaited() const { return awaited_; }
  Addresses take() && { return std::move(theirs_); }

 private:
  std::string key(Rank from, Rank to) const {
    return fmt::format("{:016x}/{}/{}-{}", options_.run_id, kind_, from, to);
  }
  Status publish(Rank peer) {
    return options_.store->set(key(options_.rank, peer), pack(cards_[peer]));
  }
  Status look_at(Rank peer);

  const TransportOptions& options_;
  const std::string kind_;
  const std::uint64_t number_;
  std::map<Rank, Card> cards_;  ///< what we tell
  std::set<Rank> awaited_;
  Addresses theirs_;
};

Status Meeting::look_at(Rank peer) {
  Store& store = *options_.store;
  const auto value = store.get(key(peer, options_.rank), Deadline::after(kLook));
  if (!value) {
    return value.status().fault() == Fault::deadline ? Status() : value.status();
  }
  auto card = unpack(*value);
  if (!card) {
    return {};  // not one of ours; its writer may still come
  }
  if (cards_[peer].named != card->number) {
    cards_[peer].named = card->number;
    if (auto named = publish(peer); !named) {
      return named;
    }
  }
  if (card->named != number_) {
    return {};
  }
  // The peer has named us, so this card is the last that it writes, and nobody else reads it.
  awaited_.erase(peer);
  theirs_[peer] = std::move(card->address);
  return store.remove(key(peer, options_.rank));
}

}  // namespace

Result<Addresses> meet(const TransportOptions& options, std::string_view kind,
                       const Addresses& mine, Deadline deadline) {
  Meeting meeting(options, kind, mine);
  auto status = meeting.publish_all();
  while (status.ok() && !meeting.awaited().empty()) {
    if (deadline.expired()) {
      return Status(Fault::deadline, fmt::format("rank {} did not come in time",
                                                 fmt::join(meeting.awaited(), ", ")));
    }
    status = meeting.look();
    std::this_thread::sleep_for(kPause);
  }
  if (!status) {
    return status.with_context("meeting the neighbours");
  }
  return std::move(meeting).take();
}

}  // namespace sotto::internal
