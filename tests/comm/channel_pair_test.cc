// What a channel that is up keeps of its peer, without a network: the silence that is allowed, and
// the bounds of what waits.
#ifdef SOTTO_HAVE_ZMQ
#include <vector>

#include <doctest/doctest.h>

#include "../../comm/zmq/channels/channel_pair.h"

namespace sotto::test::channel_pair_test {

using namespace sotto::internal;
using namespace std::chrono_literals;

namespace {

using Time = ChannelPair::Time;

ChannelOptions options_of(std::size_t max_queued_bytes) {
  return {.security = {.own = make_key_pair(), .peers = nullptr},
          .max_message_bytes = 100,
          .max_queued_bytes = max_queued_bytes,
          .timeout = 1s};
}

}  // namespace

TEST_CASE("a peer may be silent for the timeout since it was heard last") {
  const ChannelOptions options = options_of(1 << 20);
  BytePool pool;
  ChannelPair pair(options, pool, Time());
  CHECK_FALSE(pair.broken_silence(Time() + 1s));
  CHECK(pair.broken_silence(Time() + 1001ms) == ChannelPair::Clock::duration(1s));
  pair.hear(Time() + 900ms);
  CHECK(pair.heard() == Time() + 900ms);
  CHECK_FALSE(pair.broken_silence(Time() + 1900ms));
}

TEST_CASE("a channel's queue refuses what exceeds its bytes, or too many small messages") {
  const auto message = [](std::size_t bytes) {
    return ChannelMessage{.head = std::vector<std::byte>(bytes), .body = {}};
  };
  const ChannelOptions options = options_of(150);
  BytePool pool;
  ChannelPair pair(options, pool, Time());
  CHECK(pair.empty());
  CHECK(pair.add(3, message(100)).ok());
  const Status refused = pair.add(3, message(51));
  CHECK(refused.fault() == Fault::backlog);
  CHECK(refused.message().find("rank 3 takes nothing, and 1 messages of 100 bytes") !=
        std::string::npos);
  CHECK_FALSE(pair.empty());
  CHECK(pair.bytes_sent() == 0);
}

}  // namespace sotto::test::channel_pair_test
#endif
