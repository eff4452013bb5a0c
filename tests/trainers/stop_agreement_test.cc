// Nodes end after the same round, whichever of them are told to stop, and whenever.
#include <sotto/trainers/internal/agreement/stop_agreement.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/bytes.h>

#include "support/seed.h"
#include "trainers/nodes.h"

namespace sotto::test::stop_agreement_test {

using internal::EndReason;
using internal::RunNews;
using internal::StopAgreement;
using namespace std::chrono_literals;

namespace {

constexpr int kNodes = 4;

/// What one node needs to agree.
struct Party {
  Party(Store& store, Rank rank, std::chrono::milliseconds timeout = 60s)
      : news(store),
        collectives(store, rank, kNodes, timeout),
        agreement(store, news, collectives, rank, kNodes, &stop) {
    collectives.look_with([this](Rank) -> Status {
      agreement.listen();
      return {};
    });
  }

  std::atomic<bool> stop{false};
  RunNews news;
  StoreCollectives collectives;
  StopAgreement agreement;
};

/// Rounds in which every node needs all others, as it does to exchange models; who waits looks.
class Together {
 public:
  /// Returns once all have come to the round; false: some node never came.
  bool at(Round round, StopAgreement& agreement) {
    std::unique_lock lock(mutex_);
    if (there_.size() <= round) {
      there_.resize(round + 1);
    }
    ++there_[round];
    changed_.notify_all();
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (!changed_.wait_for(lock, 1ms, [&] { return there_[round] == kNodes; })) {
      if (std::chrono::steady_clock::now() > until) {
        return false;
      }
      lock.unlock();
      agreement.listen();
      lock.lock();
    }
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> there_;
};

/// A store that is gone.
class LostStore final : public Store {
 public:
  Status set(std::string_view, std::span<const std::byte>) override { return lost(); }
  Result<std::vector<std::byte>> get(std::string_view, Deadline) override { return lost(); }
  Status remove(std::string_view) override { return lost(); }

 private:
  static Status lost() { return {Fault::peer_lost, "the store is gone"}; }
};

struct Ended {
  Status status;
  Round rounds = 0;
};

/// Trains in lock step with the others, from the round that each is told in (none: never).
std::vector<Ended> lock_step(const std::array<std::optional<Round>, kNodes>& told) {
  const auto store = make_memory_store();
  Together together;
  std::vector<Ended> ends(kNodes);
  (void)play(kNodes, [&](Rank rank) -> Status {
    const auto own = static_cast<std::size_t>(rank);
    Ended& end = ends[own];
    Party party(*store, rank);
    while (end.status.ok()) {
      if (told[own] == end.rounds) {
        party.stop = true;
      }
      end.status = party.agreement.begin(end.rounds);
      if (end.status.ok() && !together.at(end.rounds, party.agreement)) {
        end.status = {Fault::deadline, "a node ended before another needed it"};
      }
      end.rounds += end.status.ok() ? 1U : 0U;
    }
    return {};
  });
  return ends;
}

}  // namespace

TEST_CASE("nodes that need each other end after the same round, whichever are told, and when") {
  const std::uint64_t seed = test::drawn_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 12; ++round) {
    std::array<std::optional<Round>, kNodes> told;
    told[random() % kNodes] = random() % 9;
    if (round % 2 == 1) {
      told[random() % kNodes] = random() % 9;
    }
    Round first = 100;
    for (const auto& one : told) {
      first = std::min(first, one.value_or(first));
    }
    for (const Ended& end : lock_step(told)) {
      CAPTURE(end.status.message());
      CHECK(end.status.fault() == Fault::ended);
      CHECK(end.status.message().find("told to stop") != std::string::npos);
      CHECK(end.rounds >= first);
      CHECK(end.rounds <= first + 2);
    }
  }
}

TEST_CASE("all say which nodes were told, and no others") {
  for (const auto& end : lock_step({std::nullopt, std::nullopt, Round{3}, std::nullopt})) {
    CHECK(end.status.message() ==
          fmt::format("node 2 was told to stop; all nodes end with round {}", end.rounds));
  }
  for (const auto& end : lock_step({Round{0}, Round{0}, Round{0}, Round{0}})) {
    CHECK(end.rounds == 0);
    CHECK(end.status.message() == "nodes 0, 1, 2, 3 were told to stop; all nodes end with round 0");
  }
}

TEST_CASE("nodes that do not need each other catch up with the one that is furthest") {
  const auto store = make_memory_store();
  std::array<Round, kNodes> ended{};
  std::atomic<int> there{0};
  const auto statuses = play(kNodes, [&](Rank rank) -> Status {
    const auto own = static_cast<std::size_t>(rank);
    Party party(*store, rank);
    Round& done = ended[own];
    for (; done < 100 * own; ++done) {
      if (Status status = party.agreement.begin(done); !status.ok()) {
        return {Fault::unexpected, "no node was told to stop"};
      }
    }
    // The last to come is the one that is told.
    party.stop = ++there == kNodes;
    Status status;
    for (; status.ok(); done += status.ok() ? 1U : 0U) {
      party.agreement.listen();
      status = party.agreement.begin(done);
    }
    return status.fault() == Fault::ended ? Status() : status;
  });
  for (const Status& status : statuses) {
    CHECK_MESSAGE(status.ok(), status.message());
  }
  CHECK(std::count(ended.begin(), ended.end(), ended[0]) == kNodes);
  CHECK(ended[0] >= 300);
}

TEST_CASE("without a store a node that is told ends with the store's fault") {
  LostStore store;
  for (const Rank rank : {0, 1}) {
    Party party(store, rank, 100ms);
    CHECK(party.agreement.begin(0).ok());
    party.stop = true;
    CHECK(party.agreement.begin(1).fault() == Fault::peer_lost);
  }
}

TEST_CASE("where others never answer, the wait ends with the timeout and names one of them") {
  const auto store = make_memory_store();
  for (const Rank rank : {0, 3}) {
    Party party(*store, rank, 50ms);
    party.stop = true;
    const Status status = party.agreement.begin(0);
    CHECK(status.fault() == Fault::deadline);
    CHECK(status.message().find("waiting for node") != std::string::npos);
  }
}

TEST_CASE("a node that claims to be further than any can be ends the agreement, and is named") {
  for (const Round claimed : {Round{1} << 62, ~Round{0}, Round{200'000}}) {
    CAPTURE(claimed);
    const auto store = make_memory_store();
    ByteBuffer answer;
    answer.write(claimed);
    answer.write(std::uint8_t{0});
    (void)store->set("stop/1", answer.bytes());
    Party node_0(*store, 0, 50ms);
    node_0.stop = true;
    const Status status = node_0.agreement.begin(21);
    CHECK(status.fault() == Fault::malformed);
    CHECK(status.message().find("node 1") != std::string::npos);
    ByteBuffer decision;
    decision.write(claimed);
    decision.write_string("node 0 was told to stop");
    (void)store->set("stop-after", decision.bytes());
    Party node_2(*store, 2, 50ms);
    node_2.stop = true;
    CHECK(node_2.agreement.begin(21).fault() == Fault::malformed);
  }
}

TEST_CASE("what another node says of its end is read with care") {
  for (const std::size_t length : {0U, 1U, 8U, 10U}) {
    CAPTURE(length);
    const auto store = make_memory_store();
    const std::vector<std::byte> bytes(length, std::byte{0xAB});
    (void)store->set("stop/1", bytes);
    (void)store->set("stop-after", bytes);
    for (const Rank rank : {0, 2}) {
      Party party(*store, rank, 50ms);
      party.stop = true;
      CHECK(party.agreement.begin(0).fault() == Fault::malformed);
    }
  }
}

}  // namespace sotto::test::stop_agreement_test
