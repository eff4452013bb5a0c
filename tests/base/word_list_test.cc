#include <sotto/base/word_list.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using namespace sotto;

namespace {

struct Entry {
  std::string_view name;
  bool fits;
};

}  // namespace

TEST_CASE("a list of words reads as a person writes it") {
  CHECK(word_list({}).empty());
  CHECK(word_list({"a"}) == "a");
  CHECK(word_list({"a", "b"}) == "a or b");
  CHECK(word_list({"a", "b", "c"}, "and") == "a, b and c");
}

TEST_CASE("the names with a fact keep the registry's order") {
  constexpr std::array<Entry, 3> kAll = {{{"z", true}, {"b", false}, {"a", true}}};
  CHECK(names_with(kAll, &Entry::fits) == std::vector<std::string>{"z", "a"});
  CHECK(names_with(kAll, [](const Entry& one) { return !one.fits; }) ==
        std::vector<std::string>{"b"});
}
