#include <sotto/trainers/driver.h>

#include <deque>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "scripted_transport.h"
#include "support/scratch.h"

namespace sotto::test::driver_test {

namespace {

/// Sends two frames a round to one peer, one after the other, and adds up what comes back.
class TwoPhases final : public Algorithm {
 public:
  std::string_view name() const override { return "two-phases"; }
  Peers peers() const override { return {{kPeer}, {kPeer}, room_.size()}; }
  std::span<const float> parameters() const override { return {&x_, 1}; }
  Round round() const override { return round_; }
  bool parameters_ready() const override { return !busy_; }
  bool accepts_gradient() const override { return begun_ && !busy_; }
  bool idle() const override { return !begun_ && !busy_; }

  /// Post the first frame before the gradient.
  bool early = false;
  /// The update that a gradient makes overflows once it has been taken.
  bool overflows = false;
  /// The second frame of a round cannot be made.
  bool second_fails = false;

  void begin_round() override {
    begun_ = true;
    due_ = early;
  }
  Status take_gradient(std::span<const float> gradient) override {
    if (gradient[0] < 0) {
      return {Fault::non_finite, "no such gradient"};
    }
    phase_ = 0;
    busy_ = due_ = true;
    return {};
  }
  Result<bool> next_exchange(Exchange& out) override {
    if (due_ && phase_ == 1 && second_fails) {
      return Status(Fault::io, "no second frame");
    }
    if (due_) {
      due_ = false;
      fill(out);
      return true;
    }
    return overflows && busy_ ? Result<bool>(Status(Fault::non_finite, "overflow")) : false;
  }
  Status complete(const Exchange& exchange) override {
    for (const Receive& receive : exchange.receives) {
      if (receive.bytes == 1) {
        return {Fault::malformed, "too short"};
      }
      x_ += static_cast<float>(receive.bytes);
    }
    if (phase_ == 0) {
      phase_ = 1;
      due_ = true;
      return {};
    }
    ++round_;
    phase_ = 0;
    busy_ = begun_ = false;
    return {};
  }
  AlgorithmCounters counters() const override { return {}; }
  void save(ByteBuffer& /*out*/) const override {}
  Status load(ByteReader& /*in*/) override { return {}; }

 private:
  void fill(Exchange& out) {
    out.tag = {round_, phase_, 0};
    out.sends = {{kPeer, std::span(room_).first(10U + phase_)}};
    out.receives = {{kPeer, room_}};
  }

  std::vector<std::byte> room_ = std::vector<std::byte>(100);
  float x_ = 0;
  Round round_ = 0;
  std::uint16_t phase_ = 0;
  bool begun_ = false;
  bool due_ = false;
  bool busy_ = false;
};

struct Rig {
  Rig(std::deque<TransportEvent> events, bool overlap)
      : script(std::move(events)),
        driver(algorithm, script, {3, overlap, std::chrono::milliseconds(20)}) {}

  Status step(float gradient = 1) {
    if (Status status = driver.begin_round(); !status.ok()) {
      return status;
    }
    return driver.gradient_ready(std::span(&gradient, 1));
  }

  TwoPhases algorithm;
  ScriptedTransport script;
  Driver driver;
};

}  // namespace

TEST_CASE("a driver carries every phase and counts frames and bytes as sent") {
  for (const bool overlap : {false, true}) {
    CAPTURE(overlap);
    Rig rig({frame(5), done(), frame(6), done(), frame(5), done(), frame(6), done()}, overlap);
    REQUIRE(rig.step().ok());
    REQUIRE(rig.step().ok());
    REQUIRE(rig.driver.drain().ok());
    CHECK(rig.algorithm.parameters()[0] == 22);
    CHECK(rig.algorithm.round() == 2);
    const auto traffic = rig.driver.traffic();
    REQUIRE(traffic.size() == 1);
    CHECK(traffic[0].from == 3);
    CHECK(traffic[0].to == kPeer);
    CHECK(traffic[0].frames == 4);
    CHECK(traffic[0].bytes == 42);
    CHECK(rig.driver.times().wait_s >= 0);
  }
}

TEST_CASE("a lost peer, a silent one and a bad frame are faults that name the peer and stay") {
  struct Case {
    std::deque<TransportEvent> events;
    Fault fault;
    const char* names;
  };
  const Case cases[] = {
      {{lost(kPeer, true)}, Fault::peer_lost, "node 3, round 0: node 7 is lost: connection reset"},
      {{frame(5), done(), lost(kPeer, true)}, Fault::peer_lost, "node 7 is lost"},
      // It has told us its part, but will never take ours.
      {{frame(5), lost(kPeer, true)}, Fault::peer_lost, "node 7 is lost"},
      {{}, Fault::deadline, "node 3: round 0: rank 7 awaited (the timeout is 0.02 s)"},
      {{frame(1), done()}, Fault::malformed, "too short"},
  };
  for (const Case& one : cases) {
    for (const bool overlap : {false, true}) {
      CAPTURE(one.names);
      CAPTURE(overlap);
      Rig rig(one.events, overlap);
      const Status status = rig.step();
      CHECK(status.fault() == one.fault);
      CHECK(contains(status.message(), one.names));
      CHECK(rig.step().message() == status.message());
      CHECK(rig.driver.drain().fault() == one.fault);
    }
  }
}

TEST_CASE("a fault of the exchange that follows one is known before nothing is under way") {
  for (int attempt = 0; attempt < 500; ++attempt) {
    Rig rig({frame(5), done()}, attempt % 2 == 0);
    rig.algorithm.second_fails = true;
    const Status status = rig.step();
    REQUIRE(status.fault() == Fault::io);
    REQUIRE(contains(status.message(), "no second frame"));
    REQUIRE(rig.driver.drain().fault() == Fault::io);
  }
}

TEST_CASE("a peer that leaves after its part, or that is not needed, harms nobody") {
  Rig rig({frame(5), lost(kPeer, false), done(), lost(2, false), frame(6), done()}, false);
  CHECK(rig.step().ok());
}

TEST_CASE("a refused gradient leaves the round open for another") {
  for (const bool overlap : {false, true}) {
    Rig rig({frame(5), done(), frame(6), done()}, overlap);
    CHECK(rig.step(-1).fault() == Fault::non_finite);
    const float gradient = 1;
    CHECK(rig.driver.gradient_ready(std::span(&gradient, 1)).ok());
    CHECK(rig.algorithm.round() == 1);
  }
}

TEST_CASE("after a fault of the caller's thread the algorithm hears of nothing that arrives") {
  TwoPhases algorithm;
  algorithm.early = algorithm.overflows = true;
  ScriptedTransport script({frame(5), done()});
  script.hold(true);
  {
    Driver driver(algorithm, script, {3, true, std::chrono::hours(1)});
    REQUIRE(driver.begin_round().ok());
    const float gradient = 1;
    CHECK(driver.gradient_ready(std::span(&gradient, 1)).fault() == Fault::non_finite);
    script.hold(false);  // of what the algorithm might do with a gradient that is gone by now
    while (!script.played_out()) {
      std::this_thread::yield();
    }
    CHECK(driver.drain().fault() == Fault::non_finite);
  }
  CHECK(algorithm.parameters()[0] == 0);
}

TEST_CASE("a driver can be dropped in the middle of an exchange") {
  TwoPhases algorithm;
  algorithm.early = true;
  ScriptedTransport script({});
  Driver driver(algorithm, script, {3, true, std::chrono::hours(1)});
  REQUIRE(driver.begin_round().ok());
  // Nobody will answer for an hour; the destructor must not wait for it.
}

}  // namespace sotto::test::driver_test
