// Nodes that are told to stop at different times end after the same round.
#include <sotto/trainers/internal/stop_agreement.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "trainers/nodes.h"

using namespace sotto;
using namespace sotto::test;
using internal::StopAgreement;
using namespace std::chrono_literals;
using Verdict = StopAgreement::Verdict;

namespace {

constexpr int kNodes = 4;

/// Rounds in which every node needs all others, as it does to exchange models.
class Together {
 public:
  /// Returns once all have come to the round; false: somebody never came.
  bool at(Round round) {
    std::unique_lock lock(mutex_);
    if (there_.size() <= round) {
      there_.resize(round + 1);
    }
    ++there_[round];
    changed_.notify_all();
    return changed_.wait_for(lock, 60s, [&] { return there_[round] == kNodes; });
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

/// Begins rounds until the agreement says that it is over.
Verdict go_on(StopAgreement& agreement, Round& done) {
  Verdict verdict = agreement.begin(done);
  while (verdict == Verdict::go_on) {
    verdict = agreement.begin(++done);
  }
  return verdict;
}

}  // namespace

TEST_CASE("nodes that need each other end after the same round, whenever each is told") {
  for (const auto apart : {0ms, 20ms, 120ms}) {
    CAPTURE(apart.count());
    const auto store = make_memory_store();
    Together together;
    std::array<std::atomic<bool>, kNodes> told{};
    std::array<Round, kNodes> ended{};
    std::thread teller([&] {
      for (auto node = told.rbegin(); node != told.rend(); ++node) {
        (void)store->get("nothing", Deadline::after(apart));
        *node = true;
      }
    });
    const auto statuses = play(kNodes, [&](Rank rank) -> Status {
      const auto own = static_cast<std::size_t>(rank);
      StopAgreement agreement(*store, rank, kNodes, told[own], 60s);
      Verdict verdict = agreement.begin(0);
      for (; verdict == Verdict::go_on; verdict = agreement.begin(ended[own])) {
        if (!together.at(ended[own])) {
          return {Fault::deadline, "a node ended before another needed it"};
        }
        ++ended[own];
      }
      return verdict == Verdict::end ? Status() : Status(Fault::unexpected, "they disagree");
    });
    teller.join();
    for (const Status& status : statuses) {
      CHECK_MESSAGE(status.ok(), status.message());
    }
    CHECK(std::count(ended.begin(), ended.end(), ended[0]) == kNodes);
  }
}

TEST_CASE("nodes that do not need each other catch up with the one that is furthest") {
  const auto store = make_memory_store();
  std::atomic<bool> stop{false};
  std::array<Round, kNodes> ended{};
  std::atomic<int> started{0};
  const auto statuses = play(kNodes, [&](Rank rank) -> Status {
    const auto own = static_cast<std::size_t>(rank);
    StopAgreement agreement(*store, rank, kNodes, stop);
    for (; ended[own] < 100 * own; ++ended[own]) {
      if (agreement.begin(ended[own]) != Verdict::go_on) {
        return {Fault::unexpected, "nobody was told to stop"};
      }
    }
    if (++started == kNodes) {
      stop = true;
    }
    return go_on(agreement, ended[own]) == Verdict::end ? Status()
                                                        : Status(Fault::unexpected, "disagree");
  });
  for (const Status& status : statuses) {
    CHECK_MESSAGE(status.ok(), status.message());
  }
  CHECK(std::count(ended.begin(), ended.end(), ended[0]) == kNodes);
  CHECK(ended[0] >= 300);
}

TEST_CASE("where one node is not told, the others end at once, and it goes on") {
  const auto store = make_memory_store();
  const std::atomic<bool> told{true};
  const std::atomic<bool> untold{false};
  const auto statuses = play(kNodes, [&](Rank rank) -> Status {
    StopAgreement agreement(*store, rank, kNodes, rank == 2 ? untold : told, 100ms);
    Round done = 0;
    if (rank == 2) {
      return agreement.begin(done) == Verdict::go_on ? Status()
                                                     : Status(Fault::unexpected, "ended");
    }
    return go_on(agreement, done) == Verdict::disagree ? Status()
                                                       : Status(Fault::unexpected, "agreed");
  });
  for (const Status& status : statuses) {
    CHECK_MESSAGE(status.ok(), status.message());
  }
}

TEST_CASE("without a store nodes end at once") {
  LostStore store;
  const std::atomic<bool> told{true};
  for (const Rank rank : {0, 1}) {
    StopAgreement agreement(store, rank, kNodes, told);
    Round done = 0;
    CHECK(go_on(agreement, done) == Verdict::disagree);
  }
}

TEST_CASE("a node that ends for another reason waits for nobody's agreement") {
  const auto store = make_memory_store();
  const std::atomic<bool> told{true};
  // Should it wait, CTest's time limit would find it.
  const StopAgreement agreement(*store, 0, kNodes, told, 1h);
}
