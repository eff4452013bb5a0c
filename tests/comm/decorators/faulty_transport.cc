#include "faulty_transport.h"

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/philox.h>

#include "timed_sends.h"

namespace sotto::test {
namespace {

using Clock = Deadline::Clock;
using Frame = std::vector<std::byte>;

class FaultyTransport final : public Transport {
 public:
  FaultyTransport(std::unique_ptr<Transport> inner, Rank rank, const FrameFaults& plan)
      : name_(fmt::format("faulty {}", inner->name())),
        rank_(rank),
        plan_(plan),
        dispatcher_(std::in_place, std::move(inner)) {}

  std::string_view name() const override { return name_; }
  Status post(const Exchange& exchange) override;
  Result<TransportEvent> poll(Deadline deadline) override;
  void interrupt() override;

 private:
  RandomStream fate_of(const ExchangeTag& tag, Rank peer) const {
    // Peer and phase pick streams of their own.
    const auto stream = static_cast<std::uint64_t>(peer) | std::uint64_t{tag.phase} << 32;
    return RandomStream({.seed = plan_.seed + stream * 0x9E3779B97F4A7C15,
                         .rank = rank_,
                         .round = tag.round,
                         .purpose = Purpose::test,
                         .bucket = tag.bucket});
  }
  std::span<const std::byte> damaged(const ExchangeTag& tag, std::span<const std::byte> frame,
                                     RandomStream& fate);
  static Status dead() { return {Fault::io, "this node is dead by its fault plan"}; }

  const std::string name_;
  const Rank rank_;
  const FrameFaults plan_;
  /// Damaged copies, until their exchange is done.
  std::multimap<ExchangeTag, Frame> copies_;
  std::mutex dying_;                      ///< is not to happen during an interruption
  std::optional<TimedSends> dispatcher_;  ///< empty once dead
};

void FaultyTransport::interrupt() {
  const std::lock_guard lock(dying_);
  if (dispatcher_) {
    dispatcher_->interrupt();
  }
}

Status FaultyTransport::post(const Exchange& exchange) {
  if (plan_.die_at && exchange.tag.round >= *plan_.die_at) {
    const std::lock_guard lock(dying_);
    dispatcher_.reset();
  }
  if (!dispatcher_) {
    return dead();
  }
  const auto now = Clock::now();
  std::vector<TimedSend> sends;
  for (const Send& send : exchange.sends) {
    auto fate = fate_of(exchange.tag, send.to);
    // All are drawn, so that one fault's probability does not change where the others strike.
    const bool drop = fate.uniform() < plan_.drop;
    const bool damage = fate.uniform() < plan_.damage;
    const bool late = fate.uniform() < plan_.delay;
    const auto delay =
        std::chrono::duration_cast<Clock::duration>(fate.uniform() * plan_.delay_max);
    if (drop) {
      continue;
    }
    const auto frame = damage ? damaged(exchange.tag, send.frame, fate) : send.frame;
    sends.push_back({{send.to, frame}, late ? now + delay : now});
  }
  return dispatcher_->post(exchange.tag, exchange.receives, std::move(sends));
}

std::span<const std::byte> FaultyTransport::damaged(const ExchangeTag& tag,
                                                    std::span<const std::byte> frame,
                                                    RandomStream& fate) {
  Frame& copy = copies_.emplace(tag, Frame(frame.begin(), frame.end()))->second;
  // Behind the length: the frame stays whole for transports that cut by it, and wrong for parsers.
  constexpr std::size_t kChecksum = 56;
  const auto bit = 8 * kChecksum + fate.below(8 * (copy.size() - kChecksum));
  copy[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
  return copy;
}

Result<TransportEvent> FaultyTransport::poll(Deadline deadline) {
  if (!dispatcher_) {
    return dead();
  }
  auto event = dispatcher_->poll(deadline);
  if (event.ok() && event->kind == TransportEvent::Kind::exchange_done) {
    copies_.erase(event->tag);
  }
  return event;
}

void check_probability(std::string_view field, double value) {
  if (!(value >= 0 && value <= 1)) {
    refuse(field, fmt::to_string(value), "a probability lies between 0 and 1");
  }
}

}  // namespace

std::unique_ptr<Transport> make_faulty_transport(std::unique_ptr<Transport> inner, Rank rank,
                                                 const FrameFaults& plan) {
  check_probability("drop", plan.drop);
  check_probability("damage", plan.damage);
  check_probability("delay", plan.delay);
  if (plan.delay_max < Clock::duration::zero()) {
    refuse("delay_max", "a negative time", "frames do not arrive before they are sent");
  }
  return std::make_unique<FaultyTransport>(std::move(inner), rank, plan);
}

}  // namespace sotto::test
