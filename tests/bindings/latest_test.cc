// What the library keeps for a caller that looks now and then.
#include <latest.h>

#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace sotto::test::latest_test {

TEST_CASE("the latest are kept, and all are counted") {
  c::Latest<std::string, 3> latest;
  CHECK(latest.all().empty());
  for (const char* text : {"a", "b", "c", "d", "e"}) {
    latest.add(text);
  }
  const std::vector<std::string> kept = {"c", "d", "e"};
  CHECK(latest.all() == kept);
  CHECK(latest.added() == 5);
  CHECK(latest.take() == kept);
  CHECK(latest.take().empty());
  latest.add("f");
  CHECK(latest.all() == std::vector<std::string>{"f"});
  CHECK(latest.added() == 6);
}

}  // namespace sotto::test::latest_test
