// Frames whose checksums are right and which lie, and the other way round: whatever the algorithm,
// the fault is typed, the frame counted, and the models come out as if nothing had been sent.
#include <array>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/frame.h>
#include <sotto/optim/wrappers/forwarding_algorithm.h>

#include "optim/cluster.h"
#include "optim/other_frames.h"

namespace sotto::test::bad_inputs_test {

namespace {

/// What is heard before each right frame, and how it must be called.
struct Lie {
  Fault fault;
  Bytes (*tell)(const FrameHeader& header, std::span<const std::byte> payload);
};

Bytes sealed(const FrameHeader& header, std::span<const std::byte> payload) {
  Bytes frame(kFrameHeaderBytes + payload.size());
  std::copy(payload.begin(), payload.end(), frame.begin() + kFrameHeaderBytes);
  seal_frame(header, frame);
  return frame;
}

class LiedTo final : public ForwardingAlgorithm {
 public:
  LiedTo(std::unique_ptr<Algorithm> inner, Lie lie)
      : ForwardingAlgorithm(std::move(inner)), lie_(lie) {}

  Status complete(const Exchange& exchange) override {
    OtherFrames frames(exchange);
    for (std::size_t edge = 0; edge < frames.count(); ++edge) {
      const auto view = parse_frame(frames.right(edge));
      REQUIRE(view.ok());
      const auto before = counters().bad_frames;
      frames.show(edge, lie_.tell(view->header, view->payload));
      const Status status = inner().complete(frames.exchange());
      CHECK_MESSAGE(status.fault() == lie_.fault, status.message());
      CHECK(counters().bad_frames == before + 1);
      frames.show_right(edge);
    }
    return inner().complete(frames.exchange());
  }

 private:
  Lie lie_;
};

void check_harmless(const Lie& lie) {
  for (const char* algorithm : {"dpsgd", "dcd", "choco", "pushsum", "allreduce", "powersgd"}) {
    CAPTURE(algorithm);
    const ClusterOptions options{.algorithm = algorithm, .nodes = 4, .dimension = 20};
    Cluster clean(options);
    Cluster lied_to(options, [&](auto inner) {
      return std::unique_ptr<Algorithm>(std::make_unique<LiedTo>(std::move(inner), lie));
    });
    const Quadratic task(4, 20, 3);
    REQUIRE(clean.driver.run(3, task).ok());
    REQUIRE(lied_to.driver.run(3, task).ok());
    CHECK(clean.x == lied_to.x);
  }
}

/// A lie about the header, well sealed.
template <typename Field>
Lie header_lie(Field field) {
  static const Field change = field;
  return {Fault::unexpected, [](const FrameHeader& header, std::span<const std::byte> payload) {
            FrameHeader forged = header;
            change(forged);
            return sealed(forged, payload);
          }};
}

}  // namespace

TEST_CASE("bad input: checksum right and run id wrong") {
  check_harmless(header_lie([](FrameHeader& header) { header.run_id += 1; }));
}

TEST_CASE("bad input: checksum wrong and content valid") {
  check_harmless(
      {Fault::malformed, [](const FrameHeader& header, std::span<const std::byte> payload) {
         Bytes frame = sealed(header, payload);
         frame[kFrameHeaderBytes - 1] ^= std::byte{0x80};
         return frame;
       }});
}

TEST_CASE("bad input: replay: run id, settings and sequence of a frame must be due") {
  check_harmless(header_lie([](FrameHeader& header) { header.settings = 1; }));
  check_harmless(header_lie([](FrameHeader& header) { header.settings = 0xFFFFFFFF; }));
  check_harmless(header_lie([](FrameHeader& header) { header.phase += 1; }));
}

TEST_CASE("bad input: old and far-future rounds, and round numbers that wrap, in frames") {
  check_harmless(header_lie([](FrameHeader& header) { header.round -= 1; }));
  check_harmless(header_lie([](FrameHeader& header) { header.round += Round{1} << 40U; }));
  check_harmless(
      header_lie([](FrameHeader& header) { header.round = std::numeric_limits<Round>::max(); }));
}

TEST_CASE("bad input: sender id of a frame is not the peer that it came from, and unknown ids") {
  check_harmless(header_lie([](FrameHeader& header) { header.sender ^= 1; }));
  check_harmless(header_lie([](FrameHeader& header) { header.algorithm = 0xFFFF; }));
  check_harmless(header_lie([](FrameHeader& header) { header.compressor = 0xFFFF; }));
}

TEST_CASE("bad input: element counts of 0xFFFFFFFF and 2^64-1 in a frame's header") {
  check_harmless(header_lie([](FrameHeader& header) { header.elements = 0xFFFFFFFF; }));
  check_harmless(header_lie([](FrameHeader& header) { header.elements = ~std::uint64_t{0}; }));
}

TEST_CASE("bad input: positive weights whose sum overflows are a fault, and never a model") {
  /// The largest mass that a message may claim, behind values whose sum no float holds.
  class Huge final : public ForwardingAlgorithm {
   public:
    using ForwardingAlgorithm::ForwardingAlgorithm;
    Status complete(const Exchange& exchange) override {
      ByteBuffer payload;
      payload.write(1.0);
      payload.write(4.0);
      payload.write_span(std::span<const float>(
          std::array<float, 8>{3e38F, 3e38F, 3e38F, 3e38F, 3e38F, 3e38F, 3e38F, 3e38F}));
      OtherFrames frames(exchange);
      for (std::size_t edge = 0; edge < frames.count(); ++edge) {
        frames.show(edge, sealed(parse_frame(frames.right(edge))->header, payload.bytes()));
      }
      return inner().complete(frames.exchange());
    }
  };
  const ClusterOptions options{.algorithm = "pushsum",
                               .compressor = "none",
                               .topology = "complete",
                               .nodes = 4,
                               .dimension = 8};
  Cluster cluster(options, [](auto inner) {
    return std::unique_ptr<Algorithm>(std::make_unique<Huge>(std::move(inner)));
  });
  const auto start = cluster.x;
  const Status status = cluster.driver.run(3, Quadratic(4, 8, 3));
  CHECK_MESSAGE((status.fault() == Fault::malformed || status.fault() == Fault::non_finite),
                status.message());
  for (const float value : cluster.driver.node(0).parameters()) {
    CHECK(std::isfinite(value));
  }
}

}  // namespace sotto::test::bad_inputs_test
