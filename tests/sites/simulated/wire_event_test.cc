#include <sotto/sites/simulated/world/wire_event.h>

#include <cstddef>

#include <doctest/doctest.h>

namespace sotto::test::wire_event_test {

using namespace sotto::sites;

TEST_CASE("An event of the wires says what it is about as it was written") {
  const Event dial = make_event(WireEvent::dial, 7, Dialing{.process = 12, .peer = 3});
  CHECK(dial.time == 7);
  CHECK(wire_event(dial) == WireEvent::dial);
  CHECK(dialing_of(dial).process == 12);
  CHECK(dialing_of(dial).peer == 3);
  for (const std::size_t which : {0U, 1U}) {
    const WireEnd end = {.connection = 41, .which = which};
    const Event arrive = make_event(WireEvent::arrive, 8, end);
    CHECK(wire_event(arrive) == WireEvent::arrive);
    CHECK(end_of(arrive).connection == 41);
    CHECK(end_of(arrive).which == which);
    const Event silence = make_silence(9, {.end = end, .version = 5});
    CHECK(wire_event(silence) == WireEvent::silence);
    CHECK(silence_of(silence).end.connection == 41);
    CHECK(silence_of(silence).end.which == which);
    CHECK(silence_of(silence).version == 5);
  }
  const Event snap = make_snap(10, 41);
  CHECK(wire_event(snap) == WireEvent::snap);
  CHECK(snapping_of(snap) == 41);
}

}  // namespace sotto::test::wire_event_test
