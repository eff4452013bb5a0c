// The kinds of a site's events: each has a name of its own, and a row that says what to do.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/sites/process/print_events.h>
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
