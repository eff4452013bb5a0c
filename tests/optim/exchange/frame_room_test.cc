// Mailboxes that share frames (optim/exchange/frame_room.h).
#include <sotto/optim/exchange/frame_room.h>

#include <cstddef>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "optim/cluster.h"

namespace sotto::test::frame_room_test {

TEST_CASE("mailboxes share the longest frame of a number and a way") {
  std::vector<float> x(4);
  AlgorithmSetup setup;
  setup.parameters = x;
  setup.step_rule = make_step_rule({});
  const LocalNode node(algorithm_info("allreduce"), std::move(setup));
  FrameRoom room;
  const auto first = room.frame(node, FrameRoom::Way::out, 0, 100);
  CHECK(room.frame(node, FrameRoom::Way::out, 0, 60) == first);
  CHECK(room.frame(node, FrameRoom::Way::in, 0, 100) != first);
  CHECK(room.bytes() == 200);
  const auto longer = room.frame(node, FrameRoom::Way::out, 0, 300);
  CHECK(longer != first);
  CHECK(first.use_count() == 1);  // a mailbox that has the shorter one keeps it
  CHECK(room.frame(node, FrameRoom::Way::out, 2, 10) != longer);
  CHECK(room.bytes() == 510);
}

}  // namespace sotto::test::frame_room_test
