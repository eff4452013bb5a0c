// What a node and the thread of its store of seeds tell each other.
#include <sotto/sites/nodes/stores/seed_store_board.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace sotto::test::seed_store_board_test {
using namespace std::chrono_literals;

namespace {

using Kind = SiteEvent::Kind;

/// A board whose store was opened.
struct Opened {
  explicit Opened(std::chrono::milliseconds hangs = 1h)
      : board({.url = "the store", .look = 1ms, .hangs = hangs}) {
    board.set_opened(nullptr);
  }
  /// A whole look; whether it had to be at all leases.
  bool look() {
    const bool at_leases = board.begin_look();
    board.await_next_look();
    return at_leases;
  }
  SeedStoreBoard board;
};

std::vector<Kind> kinds(SeedStoreBoard& board) {
  std::vector<Kind> all;
  for (const SiteEvent& event : board.news()) {
    all.push_back(event.kind);
  }
  return all;
}

StoredRun run_of(const std::string& name) {
  return {.number = 1, .id = {1, 1}, .name = name, .address = "10.0.0.1:9000"};
}

}  // namespace

TEST_CASE("seed store boards: leases are looked at while others are looked for, and when asked") {
  Opened opened;
  CHECK(opened.look());
  opened.board.hurry(false);
  CHECK_FALSE(opened.look());
  opened.board.leave();
  CHECK(opened.board.leaves());
  CHECK(opened.look());
  CHECK_FALSE(opened.look());
  opened.board.note({Fault::deadline, "no answer"}, {});
  CHECK(opened.look());
}

TEST_CASE("seed store boards: silence is told once, and so is its end") {
  Opened opened;
  const Status gone(Fault::deadline, "no answer");
  opened.board.note(gone, {"an entry"});
  opened.board.note(gone, {});
  CHECK(kinds(opened.board) == std::vector{Kind::store_refused, Kind::store_silent});
  opened.board.note({}, {});
  opened.board.note({}, {});
  CHECK(kinds(opened.board) == std::vector{Kind::store_answers});

  Opened hanging(0ms);
  CHECK(hanging.board.begin_look());
  CHECK(kinds(hanging.board) == std::vector{Kind::store_silent});
  CHECK(kinds(hanging.board).empty());
}

TEST_CASE("seed store boards: a wish or an end that came meanwhile is not taken for done") {
  SeedStoreBoard board({});
  board.want(run_of("a"));
  const auto wish = board.wish();
  REQUIRE(wish.wanted == run_of("a"));
  board.want(run_of("b"));
  board.set_runs({.known = true}, wish.wanted);
  CHECK(board.runs().known);
  CHECK(board.wish().wanted == run_of("b"));
  board.set_runs({.known = true}, run_of("b"));
  CHECK_FALSE(board.wish().wanted);

  board.note_end({1, 1}, {.steps = 3});
  const auto end = board.untold_end();
  REQUIRE(end.has_value());
  board.note_end({1, 1}, {.steps = 3, .all_left = true});
  board.told_end(end.value_or(SeedStoreBoard::End{}));
  CHECK(board.untold_end().has_value());
  board.told_end({{1, 1}, {.steps = 3, .all_left = true}});
  CHECK_FALSE(board.untold_end());
}

TEST_CASE("seed store boards: what is cut short by the end is not told") {
  SeedStoreBoard board({.waits = 1ms});
  CHECK_FALSE(board.over());
  CHECK_FALSE(board.end());  // the thread has not ended
  CHECK(board.over());
  board.note({Fault::stopped, "cut short"}, {"an entry"});
  CHECK(kinds(board).empty());
  board.set_done();
  CHECK(board.end());
}

}  // namespace sotto::test::seed_store_board_test
