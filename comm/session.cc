#include <sotto/comm/session.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/comm/run_keys.h>

#include "internal/backoff.h"
#include "internal/fault_text.h"
#include "internal/meeting/rank_claim.h"
#include "internal/meeting/session_leftovers.h"
#include "internal/meeting/start_number.h"

namespace sotto {
namespace {

/// Under the mark: all have come.
constexpr const char* kGo = "go";
/// How long a look at a key that is not there yet may wait for it: longer each time, lest many
/// nodes that wait ask for more than the store can answer.
constexpr std::chrono::milliseconds kShortestLook{20};
constexpr std::chrono::milliseconds kLongestLook{320};
/// Pause between two rounds of looks, which need not wait where an old value stands.
constexpr std::chrono::milliseconds kPause{2};

std::string shown_by(Rank rank) { return node_key("shown", rank); }

std::vector<std::byte> pack(std::uint64_t number) {
  ByteBuffer out;
  out.write(number);
  return std::move(out).take();
}

class StoreSession final : public Session {
 public:
  StoreSession(std::shared_ptr<Store> store, Rank rank, int nodes,
               std::chrono::milliseconds patience, StopRequest stop)
      : store_(std::move(store)),
        rank_(rank),
        nodes_(nodes),
        patience_(patience),
        stop_(std::move(stop)),
        claim_(*store_, rank),
        leftovers_(*store_, rank) {}

  Status enter() override;
  Status set(std::string_view key, std::span<const std::byte> value) override;
  Result<std::vector<std::byte>> get(std::string_view key, Deadline deadline) override;
  Status remove(std::string_view key) override;

 private:
  using Number = std::optional<std::uint64_t>;

  /// How far another node than node 0 has come to it.
  struct Meeting {
    /// How long the next look at a key that is not there yet may wait for it.
    std::chrono::milliseconds next_patience();

    std::uint64_t number = 0;  ///< number that this node shows
    Deadline deadline;
    std::chrono::milliseconds longest = kShortestLook;
    bool known = false;  ///< node 0 has echoed the number under the present mark
    /// Node 0 has echoed it under any mark: a node 0 that starts repeatedly gets no more time.
    bool received = false;
  };

  std::string here(std::string_view key) const { return key_in_session(mark_, key); }
  /// The number that a node shows node 0 …
  std::string shown(Rank rank) const { return here(shown_by(rank)); }
  /// … and its echo.
  std::string seen(Rank rank) const { return here(node_key("seen", rank)); }

  Status receive_all();
  Status await_vacancy(const Deadline& deadline);
  std::vector<Rank> absent(const std::map<Rank, std::uint64_t>& numbers) const;
  Status echo_numbers(std::map<Rank, std::uint64_t>& numbers);
  Status join();
  Status meet_node_0(std::uint64_t number);
  /// Looks at each key once, and goes as far as they let this node: true, it is let in.
  Result<bool> come_nearer(Meeting& meeting);
  Status see_echo(Meeting& meeting, std::chrono::milliseconds patience);
  /// Node 0 draws another mark: this node shows its number under that.
  Status follow(std::uint64_t mark, Meeting& meeting);
  Status show(std::uint64_t mark, std::uint64_t number);
  Result<bool> let_in(std::chrono::milliseconds patience);
  /// The fault of a wait for these nodes that `deadline` has ended.
  Status not_there(std::span<const Rank> ranks, const Deadline& deadline) const;
  Result<Number> look(std::string_view key, std::chrono::milliseconds patience);
  Result<bool> there(const std::string& key, std::chrono::milliseconds patience);
  bool may_clear(const Status& met) const;

  const std::shared_ptr<Store> store_;
  const Rank rank_;
  const int nodes_;
  const std::chrono::milliseconds patience_;
  const StopRequest stop_;
  internal::RankClaim claim_;
  std::mutex entering_;
  std::optional<Status> entered_;  ///< result of entering, once that was tried
  std::uint64_t mark_ = 0;
  internal::SessionLeftovers leftovers_;
};

Status StoreSession::enter() {
  const std::scoped_lock lock(entering_);
  if (!entered_) {
    const Status met = rank_ == 0 ? receive_all() : join();
    entered_ = met.ok() ? met : met.with_context(fmt::format("node {}", rank_));
    leftovers_.publish();
    if (claim_.taken()) {
      leftovers_.settle(may_clear(met));
    }
  }
  return *entered_;
}

/// Whether what this node left in the last session is nobody's. A node that is not let in may have
/// a living namesake, and so may a node 0 before which somebody elsewhere was it, until the others
/// have come to it.
bool StoreSession::may_clear(const Status& met) const {
  const bool sure = claim_.silent_predecessor().empty();
  return met.ok() ? sure || nodes_ > 1 : sure && rank_ == 0 && met.fault() != Fault::unexpected;
}

Status StoreSession::set(std::string_view key, std::span<const std::byte> value) {
  Status entered = enter();
  if (!entered.ok() && (rank_ != 0 || mark_ == 0 || !claim_.taken())) {
    return entered;
  }
  const std::string full = here(key);
  leftovers_.add(full);
  return store_->set(full, value);
}

Result<std::vector<std::byte>> StoreSession::get(std::string_view key, Deadline deadline) {
  Status entered = enter();
  if (!entered.ok()) {
    return entered;
  }
  // A look that does not wait has nothing to be stopped, and says why others have ended.
  const bool waits = deadline.stop() == nullptr && !deadline.expired();
  return store_->get(here(key), waits ? Deadline(deadline.at(), &stop_) : deadline);
}

Status StoreSession::remove(std::string_view key) {
  Status entered = enter();
  if (!entered.ok()) {
    return entered;
  }
  const std::string full = here(key);
  Status removed = store_->remove(full);
  leftovers_.remove(full);
  return removed;
}

/// The number under a key, if there is one.
Result<StoreSession::Number> StoreSession::look(std::string_view key,
                                                std::chrono::milliseconds patience) {
  const auto value = store_->get(key, Deadline::after(patience));
  if (!value.ok()) {
    return value.status().fault() == Fault::deadline ? Result<Number>(std::nullopt)
                                                     : value.status();
  }
  return session_mark(*value);
}

Result<bool> StoreSession::there(const std::string& key, std::chrono::milliseconds patience) {
  const auto value = store_->get(key, Deadline::after(patience));
  if (!value.ok() && value.status().fault() != Fault::deadline) {
    return value.status();
  }
  return value.ok();
}

/// Node 0: draws the mark, and names back to each node the number that it shows, to one that
/// started again its new one, until all are there.
Status StoreSession::receive_all() {
  const auto deadline = Deadline::after(patience_, &stop_);
  if (Status status = claim_.take(deadline); !status.ok()) {
    return status;
  }
  if (Status status = await_vacancy(deadline); !status.ok()) {
    return status;
  }
  mark_ = internal::draw_start_number(rank_);
  if (Status status = store_->set(kSessionKey, pack(mark_)); !status.ok()) {
    return status;
  }
  std::map<Rank, std::uint64_t> numbers;
  internal::Backoff pause(deadline);
  while (true) {
    const std::size_t there = numbers.size();
    Status status = claim_.hold();
    if (status.ok()) {
      status = echo_numbers(numbers);
    }
    if (!status.ok()) {
      return status.fault() == Fault::stopped ? not_there(absent(numbers), deadline) : status;
    }
    if (numbers.size() + 1 == static_cast<std::size_t>(nodes_)) {
      const std::string go = here(kGo);
      leftovers_.add(go);
      return store_->set(go, {});
    }
    if (deadline.expired()) {
      break;
    }
    const bool news = numbers.size() > there;
    pause = news ? internal::Backoff(deadline) : pause;
    (void)pause.wait();
  }
  return not_there(absent(numbers), deadline);
}

/// Where nobody can say whether the last node 0 lives, the store's session stays that one's until
/// another node waits in it: a node 0 that still receives nodes would beat, and once all have come
/// no node waits.
Status StoreSession::await_vacancy(const Deadline& deadline) {
  internal::Backoff pause(deadline);
  while (!claim_.silent_predecessor().empty() && nodes_ > 1) {
    Status status = claim_.hold();
    if (!status.ok()) {
      return status;
    }
    const auto mark = look(kSessionKey, kLongestLook);
    if (!mark.ok() || !*mark) {
      return mark.status();
    }
    for (Rank peer = 1; peer < nodes_; ++peer) {
      const auto waits = look(key_in_session(**mark, shown_by(peer)), {});
      if (!waits.ok() || *waits) {
        return waits.status();
      }
    }
    if (deadline.expired()) {
      return not_there(absent({}), deadline);
    }
    (void)pause.wait();
  }
  return {};
}

std::vector<Rank> StoreSession::absent(const std::map<Rank, std::uint64_t>& numbers) const {
  std::vector<Rank> absent;
  for (Rank peer = 1; peer < nodes_; ++peer) {
    if (!numbers.contains(peer)) {
      absent.push_back(peer);
    }
  }
  return absent;
}

Status StoreSession::not_there(std::span<const Rank> ranks, const Deadline& deadline) const {
  const std::string whom = internal::list_ranks(ranks);
  if (deadline.stopped()) {
    return {Fault::stopped, fmt::format("stopped while waiting for node {}", whom)};
  }
  const std::string& before = claim_.silent_predecessor();
  return {Fault::deadline,
          fmt::format("waiting for node {}: not there in time{}", whom,
                      before.empty() ? ""
                                     : fmt::format("; another process ({}) was node {} before: if "
                                                   "it still trains, give this one another rank",
                                                   before, rank_))};
}

Status StoreSession::echo_numbers(std::map<Rank, std::uint64_t>& numbers) {
  const auto mark = look(kSessionKey, {});
  if (!mark.ok()) {
    return mark.status();
  }
  // Where the store is late, as on a host whose cores are taken, the next look will tell.
  if (*mark && **mark != mark_) {
    return {Fault::unexpected, "another run meets in this store; give each its own"};
  }
  for (Rank peer = 1; peer < nodes_; ++peer) {
    const auto number = look(shown(peer), {});
    if (!number.ok()) {
      return number.status();
    }
    const auto known = numbers.find(peer);
    if (*number && (known == numbers.end() || known->second != **number)) {
      if (Status status = store_->set(seen(peer), pack(**number)); !status.ok()) {
        return status;
      }
      numbers[peer] = **number;
    }
  }
  return {};
}

/// The other nodes: the mark is of now once node 0 names our number back under it. Should node 0
/// start again, it draws another.
Status StoreSession::join() {
  Status met = meet_node_0(internal::draw_start_number(rank_));
  if (mark_ != 0 && claim_.taken()) {
    (void)store_->remove(shown(rank_));  // this node waits no more
    (void)store_->remove(seen(rank_));
  }
  return met;
}

std::chrono::milliseconds StoreSession::Meeting::next_patience() {
  const auto patience =
      std::min(longest, std::chrono::ceil<std::chrono::milliseconds>(deadline.left()));
  longest = std::min(2 * longest, kLongestLook);
  return patience;
}

Status StoreSession::meet_node_0(std::uint64_t number) {
  constexpr std::array<Rank, 1> kNode0 = {0};
  Meeting meeting{.number = number, .deadline = Deadline::after(patience_, &stop_)};
  do {
    const auto in = come_nearer(meeting);
    if (!in.ok() && in.status().fault() == Fault::stopped) {
      return not_there(kNode0, meeting.deadline);
    }
    if (!in.ok() || *in) {
      return in.status();
    }
    std::this_thread::sleep_for(kPause);
  } while (!meeting.deadline.expired());
  return not_there(kNode0, meeting.deadline);
}

Result<bool> StoreSession::come_nearer(Meeting& meeting) {
  const auto patience = meeting.next_patience();
  const auto mark = look(kSessionKey, patience);
  if (!mark.ok()) {
    return mark.status();
  }
  const bool news = *mark && **mark != mark_;
  if (Status status = see_echo(meeting, news ? std::chrono::milliseconds{} : patience);
      !status.ok()) {
    return status;
  }
  if (meeting.known) {
    // A node that drew another mark meanwhile may have come after all had met under this one.
    auto in = news ? there(here(kGo), {}) : let_in(patience);
    if (!in.ok() || *in) {
      return in;
    }
  }
  Status status = news ? follow(**mark, meeting) : Status();
  if (status.ok()) {
    status = claim_.hold();
  }
  return status.ok() ? Result<bool>(false) : status;
}

/// Looks whether node 0 has named this node's number back; the rest then has its time.
Status StoreSession::see_echo(Meeting& meeting, std::chrono::milliseconds patience) {
  if (mark_ == 0 || meeting.known) {
    return {};
  }
  const auto echo = look(seen(rank_), patience);
  if (!echo.ok()) {
    return echo.status();
  }
  meeting.known = *echo == meeting.number;
  if (meeting.known && !meeting.received) {
    meeting.received = true;
    meeting.deadline = Deadline::after(2 * patience_, &stop_);
    meeting.longest = kShortestLook;
  }
  return {};
}

Status StoreSession::follow(std::uint64_t mark, Meeting& meeting) {
  meeting.known = false;
  Status taken = claim_.take(meeting.deadline);
  return taken.ok() ? show(mark, meeting.number) : taken;
}

/// Whether all have come, or node 0 has given up and said why.
Result<bool> StoreSession::let_in(std::chrono::milliseconds patience) {
  auto go = there(here(kGo), patience);
  return go.ok() && !*go ? there(here(given_up_key()), {}) : go;
}

Status StoreSession::show(std::uint64_t mark, std::uint64_t number) {
  if (mark_ != 0) {
    (void)store_->remove(shown(rank_));  // nobody reads it any more
  }
  mark_ = mark;
  return store_->set(shown(rank_), pack(number));
}

}  // namespace

std::shared_ptr<Session> make_session(std::shared_ptr<Store> store, Rank rank, int nodes,
                                      std::chrono::milliseconds patience, StopRequest stop) {
  return std::make_shared<StoreSession>(std::move(store), rank, nodes, patience, std::move(stop));
}

}  // namespace sotto
