// The kinds of a site's events: each has a name of its own, and a row that says what to do.
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/sites/process/site_event.h>

using namespace sotto;

TEST_CASE("site events: every kind has a name of its own, and is in the page of operations") {
  std::ifstream in(SOTTO_DOCS "/operations.md");
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  std::set<std::string_view> names;
  for (const SiteEvent::Kind kind : site_event_kinds()) {
    CHECK(names.insert(name_of(kind)).second);
    CHECK_MESSAGE(page.find(fmt::format("`{}`", name_of(kind))) != std::string::npos,
                  "docs/operations.md has no ", name_of(kind));
  }
  CHECK(names.size() > 40);
}
