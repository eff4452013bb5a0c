// Peers that promised a model to a site that is about to begin.
#include <sotto/sites/process/owed_models.h>

#include <doctest/doctest.h>

namespace sotto::test::owed_models_test {

namespace {

using std::chrono::seconds;

}  // namespace

TEST_CASE("a model that comes on is awaited for long, and one that does not for a patience") {
  OwedModels owed(seconds(30), seconds(6000));
  const OwedModels::Clock::time_point begin{};
  std::vector<OwedModel> owing = {{.peer = 3}, {.peer = 5}};
  for (int second = 0; second <= 6000; second += 20) {
    CAPTURE(second);
    owing[0].bytes += 320'000;
    const auto late = owed.overdue(owing, begin + seconds(second));
    CHECK(late == (second == 40 ? std::vector<Rank>{5} : std::vector<Rank>{}));
    if (!late.empty()) {
      owing.pop_back();
    }
  }
  CHECK(owed.overdue(owing, begin + seconds(6020)) == std::vector<Rank>{3});
}

TEST_CASE("a peer that comes back has its time anew") {
  OwedModels owed(seconds(30), seconds(6000));
  const OwedModels::Clock::time_point begin{};
  const std::vector<OwedModel> owing = {{.peer = 1, .bytes = 10}};
  CHECK(owed.overdue(owing, begin).empty());
  CHECK(owed.overdue({}, begin + seconds(29)).empty());
  CHECK(owed.overdue(owing, begin + seconds(58)).empty());
  CHECK(owed.overdue(owing, begin + seconds(88)).empty());
  CHECK(owed.overdue(owing, begin + seconds(89)) == std::vector<Rank>{1});
}

}  // namespace sotto::test::owed_models_test
