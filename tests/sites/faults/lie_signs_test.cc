// The words by which a lie is told: each kind has some, and sites do say them.
#include <sotto/sites/faults/lie_signs.h>

#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include <sotto/sites/nodes/report/peer_standing.h>
#include <sotto/sites/nodes/report/site_event.h>

namespace sotto::test::lie_signs_test {

TEST_CASE("each kind of lie is told by a word, and each word is one of an event or a concern") {
  for (const LieKindInfo& kind : lie_kinds()) {
    CAPTURE(kind.name);
    CHECK(std::ranges::any_of(
        lie_signs(), [&](const LieSign& sign) { return sign.lie == kind.kind && sign.usual; }));
  }
  for (const LieSign& sign : lie_signs()) {
    CAPTURE(sign.word);
    const bool event = std::ranges::any_of(site_event_kinds(), [&](SiteEvent::Kind kind) {
      return name_of(kind) == "peer-" + std::string(sign.word);
    });
    CHECK((event || sign.word == name_of(PeerConcern::broke_rule)));
  }
}

}  // namespace sotto::test::lie_signs_test
