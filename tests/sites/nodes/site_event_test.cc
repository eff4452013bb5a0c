// The kinds of a site's events: each has a name of its own, and a row that says what to do.
#include <cstdio>
#include <set>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/sites/nodes/report/print_events.h>
#include <sotto/sites/nodes/report/site_event.h>

#include "support/text_of_file.h"

namespace sotto::test::site_event_test {

TEST_CASE("site events: every kind has a name of its own, and is in the page of operations") {
  const std::string page = text_of_file(SOTTO_DOCS "/operations.md");
  std::set<std::string_view> names;
  for (const SiteEvent::Kind kind : site_event_kinds()) {
    CHECK(names.insert(name_of(kind)).second);
    CHECK_MESSAGE(page.find(fmt::format("`{}`", name_of(kind))) != std::string::npos,
                  "docs/operations.md has no ", name_of(kind));
  }
  CHECK(names.size() > 40);
}

TEST_CASE("site events: a program prints them as lines, from a level on") {
  std::FILE* const file = std::tmpfile();
  REQUIRE(file != nullptr);
  const SiteListener listener = print_events(file, SiteEvent::Level::warning);
  listener({.level = SiteEvent::Level::info, .text = "not told"});
  listener({.level = SiteEvent::Level::warning,
            .kind = SiteEvent::Kind::peer_refused,
            .text = "the sites differ",
            .peer = "bank"});
  listener({.level = SiteEvent::Level::error, .kind = SiteEvent::Kind::failed, .text = "no disk"});
  std::rewind(file);
  std::string all(1000, '\0');
  all.resize(std::fread(all.data(), 1, all.size(), file));
  std::fclose(file);
  const std::size_t end = all.find('\n');
  REQUIRE(end != std::string::npos);
  CHECK(all.substr(0, end).ends_with("Z warning peer-refused bank: the sites differ"));
  CHECK(all.ends_with("Z error failed: no disk\n"));
}

}  // namespace sotto::test::site_event_test
