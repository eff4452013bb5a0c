#include <sotto/comm/session.h>

#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/bytes.h>

#include "internal/start_number.h"

namespace sotto {
namespace {

/// Holds node 0's mark.
constexpr const char* kSession = "session";
/// How long a look at a key that is not there yet may wait for it.
constexpr std::chrono::milliseconds kLook{20};
/// Between two rounds of looks.
constexpr std::chrono::milliseconds kPause{1};

std::vector<std::byte> pack(std::uint64_t number) {
  ByteBuffer out;
  out.write(number);
  return std::move(out).take();
}

class Session final : public Store {
 public:
  Session(std::shared_ptr<Store> store, Rank rank, int nodes, std::chrono::milliseconds patience)
      : store_(std::move(store)), rank_(rank), nodes_(nodes), patience_(patience) {}

  Status set(std::string_view key, std::span<const std::byte> value) override {
    const Status entered = enter();
    return entered.ok() ? store_->set(here(key), value) : entered;
  }
  Result<std::vector<std::byte>> get(std::string_view key, Deadline deadline) override {
    const Status entered = enter();
    if (!entered.ok()) {
      return entered;
    }
    return store_->get(here(key), deadline);
  }
  Status remove(std::string_view key) override {
    const Status entered = enter();
    return entered.ok() ? store_->remove(here(key)) : entered;
  }

 private:
  std::string here(std::string_view key) const { return fmt::format("{:016x}/{}", mark_, key); }
  /// The number that a node shows node 0 …
  std::string shown(Rank rank) const { return here(fmt::format("shown/{}", rank)); }
  /// … and its echo.
  std::string seen(Rank rank) const { return here(fmt::format("seen/{}", rank)); }

  Status enter();
  Status receive_all(Deadline deadline);
  Status join(Deadline deadline);
  Result<std::optional<std::uint64_t>> look(const std::string& key);

  const std::shared_ptr<Store> store_;
  const Rank rank_;
  const int nodes_;
  const std::chrono::milliseconds patience_;
  std::mutex entering_;
  std::optional<Status> entered_;  ///< once it has been tried
  std::uint64_t mark_ = 0;
};

Status Session::enter() {
  const std::scoped_lock lock(entering_);
  if (!entered_) {
    const auto deadline = Deadline::after(patience_);
    const Status met = rank_ == 0 ? receive_all(deadline) : join(deadline);
    entered_ = met.ok() ? met : met.with_context(fmt::format("node {}", rank_));
  }
  return *entered_;
}

/// The number under a key, if there is one.
Result<std::optional<std::uint64_t>> Session::look(const std::string& key) {
  const auto value = store_->get(key, Deadline::after(kLook));
  if (!value.ok()) {
    return value.status().fault() == Fault::deadline
               ? Result<std::optional<std::uint64_t>>(std::nullopt)
               : value.status();
  }
  ByteReader in(*value);
  const auto number = in.read<std::uint64_t>();
  return in.finished() ? std::optional(number) : std::nullopt;
}

/// Node 0: draws the mark and names back to each node the number that it shows.
Status Session::receive_all(Deadline deadline) {
  mark_ = internal::draw_start_number(rank_);
  if (Status status = store_->set(kSession, pack(mark_)); !status.ok()) {
    return status;
  }
  std::set<Rank> absent;
  for (Rank peer = 1; peer < nodes_; ++peer) {
    absent.insert(peer);
  }
  while (!absent.empty()) {
    const auto expected = absent;
    for (const Rank peer : expected) {
      const auto number = look(shown(peer));
      if (!number.ok()) {
        return number.status();
      }
      if (*number) {
        if (Status status = store_->set(seen(peer), pack(**number)); !status.ok()) {
          return status;
        }
        absent.erase(peer);
      }
    }
    if (!absent.empty() && deadline.expired()) {
      return {Fault::deadline,
              fmt::format("waiting for node {}: not there in time", fmt::join(absent, ", "))};
    }
    std::this_thread::sleep_for(kPause);
  }
  return {};
}

/// The other nodes: the mark is of now once node 0 names our number back under it.
Status Session::join(Deadline deadline) {
  const std::uint64_t number = internal::draw_start_number(rank_);
  while (!deadline.expired()) {
    const auto mark = look(kSession);
    if (!mark.ok()) {
      return mark.status();
    }
    if (*mark) {
      if (mark_ != **mark) {
        mark_ = **mark;
        if (Status status = store_->set(shown(rank_), pack(number)); !status.ok()) {
          return status;
        }
      }
      const auto echo = look(seen(rank_));
      if (!echo.ok()) {
        return echo.status();
      }
      if (*echo == number) {
        (void)store_->remove(shown(rank_));  // both have been read
        (void)store_->remove(seen(rank_));
        return {};
      }
    }
    std::this_thread::sleep_for(kPause);
  }
  return {Fault::deadline, "waiting for node 0: not there in time"};
}

}  // namespace

std::shared_ptr<Store> make_session(std::shared_ptr<Store> store, Rank rank, int nodes,
                                    std::chrono::milliseconds patience) {
  return std::make_shared<Session>(std::move(store), rank, nodes, patience);
}

}  // namespace sotto
