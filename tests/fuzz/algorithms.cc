#include "algorithms.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>

#include <sotto/base/bytes.h>
#include <sotto/base/check.h>
#include <sotto/base/frame.h>
#include <sotto/optim/wrappers/forwarding_algorithm.h>

#include "optim/cluster.h"
#include "optim/other_frames.h"

namespace sotto_fuzz {
namespace {

using sotto::ByteReader;
using sotto::check;
using sotto::Fault;
using Bytes = std::vector<std::byte>;

constexpr std::size_t kNodes = 4;
constexpr std::size_t kDimension = 24;
constexpr std::uint8_t kWhole = 0x80;

Bytes copy(std::span<const std::byte> view) { return {view.begin(), view.end()}; }

/// The next change of a payload.
void change_payload(FrameChange change, ByteReader& in, Bytes& payload) {
  const std::size_t size = payload.size();
  if (change == FrameChange::overwrite) {
    const std::size_t at = size == 0 ? 0 : in.read<std::uint16_t>() % size;
    const std::size_t length = in.read<std::uint8_t>();
    const auto bytes = in.take(std::min({length, size - at, in.remaining()}));
    std::ranges::copy(bytes, payload.begin() + static_cast<std::ptrdiff_t>(at));
  } else if (change == FrameChange::cut) {
    payload.resize(size - std::min<std::size_t>(size, in.read<std::uint16_t>()));
  } else if (change == FrameChange::extend) {
    const std::size_t more = in.read<std::uint8_t>();
    payload.resize(size + more, static_cast<std::byte>(in.read<std::uint8_t>()));
  } else if (change == FrameChange::replace) {
    const std::size_t length = in.read<std::uint16_t>();
    payload = copy(in.take(std::min(length, in.remaining())));
  }
}

void change_header(ByteReader& in, sotto::FrameHeader& header) {
  const auto field = in.read<std::uint8_t>();
  const auto bits = in.read<std::uint64_t>();
  const auto turn = [bits](auto& value) {
    value = static_cast<std::decay_t<decltype(value)>>(static_cast<std::uint64_t>(value) ^ bits);
  };
  switch (field % 8) {
    case 0:
      return turn(header.run_id);
    case 1:
      return turn(header.algorithm);
    case 2:
      return turn(header.compressor);
    case 3:
      return turn(header.round);
    case 4:
      return turn(header.settings);
    case 5:
      return turn(header.phase);
    case 6:
      return turn(header.bucket);
    default:
      return turn(header.elements);
  }
}

/// What the sender, or the network, makes of a right frame.
Bytes changed(std::span<const std::byte> right, ByteReader& in) {
  const auto change = static_cast<FrameChange>(in.read<std::uint8_t>() % 7);
  Bytes frame = copy(right);
  if (change == FrameChange::none) {
    return frame;
  }
  if (change == FrameChange::raw) {
    const std::size_t at = in.read<std::uint16_t>() % frame.size();
    frame[at] ^= static_cast<std::byte>(in.read<std::uint8_t>());
    return frame;
  }
  const auto view = sotto::parse_frame(right);
  check(view.ok(), "frames between honest nodes parse");
  sotto::FrameHeader header = view->header;
  Bytes payload = copy(view->payload);
  if (change == FrameChange::header) {
    change_header(in, header);
  }
  change_payload(change, in, payload);
  header.payload_bytes = payload.size();
  frame.resize(sotto::kFrameHeaderBytes + payload.size());
  std::ranges::copy(payload, frame.begin() + sotto::kFrameHeaderBytes);
  sotto::seal_frame(header, frame);
  return frame;
}

/// Hears frames that were changed on their way, and the right ones wherever it refuses those.
class Disturbed final : public sotto::ForwardingAlgorithm {
 public:
  Disturbed(std::unique_ptr<sotto::Algorithm> inner, ByteReader& in)
      : ForwardingAlgorithm(std::move(inner)), in_(in) {}

  sotto::Status complete(const sotto::Exchange& exchange) override {
    sotto::test::OtherFrames frames(exchange);
    std::vector<bool> bad(frames.count(), true);
    for (std::size_t edge = 0; edge < frames.count(); ++edge) {
      frames.show(edge, changed(frames.right(edge), in_));
    }
    while (true) {
      const auto before = counters().bad_frames;
      sotto::Status status = inner().complete(frames.exchange());
      if (status.ok()) {
        return status;
      }
      check_fault(status);
      std::size_t culprit = 0;
      while (culprit < frames.count() && !(bad[culprit] && names(status, frames.from(culprit)))) {
        ++culprit;
      }
      if (culprit == frames.count()) {
        return status;  // its own: the sum overflows
      }
      check(frames.shown(culprit).empty() || counters().bad_frames == before + 1,
            "a frame that is refused is counted");
      // The right frame is still due.
      bad[culprit] = false;
      frames.show_right(culprit);
    }
  }

 private:
  static bool names(const sotto::Status& status, sotto::Rank from) {
    const std::string rank = std::to_string(from);
    return status.message().find("frame from node " + rank + " ") != std::string::npos ||
           status.message().find("without frames from " + rank) != std::string::npos;
  }
  static void check_fault(const sotto::Status& status) {
    check(status.fault() == Fault::malformed || status.fault() == Fault::unexpected ||
              status.fault() == Fault::non_finite,
          "a bad frame is malformed, unexpected or not finite");
  }

  ByteReader& in_;
};

std::shared_ptr<const sotto::Topology> graph_for(const sotto::AlgorithmInfo& info,
                                                 const sotto::test::ClusterOptions& options) {
  static std::map<std::string_view, std::shared_ptr<const sotto::Topology>> graphs;
  auto& graph = graphs[info.name];
  if (!graph) {
    graph = cluster_topology(options);
  }
  return graph;
}

sotto::ParameterLayout tensors() {
  sotto::ParameterLayout layout;
  append_block(layout, "w", {4, 5});
  append_block(layout, "b", {4});
  return layout;
}

/// A few nodes of the algorithm of this choice.
class Job {
 public:
  explicit Job(std::uint8_t choice) : x_(kNodes, std::vector<float>(kDimension, 0.25F)) {
    const auto& info = sotto::algorithms()[choice % sotto::algorithms().size()];
    options_ = {.algorithm = std::string(info.name), .nodes = kNodes, .dimension = kDimension};
    if (info.graph == sotto::GraphNeed::column_stochastic) {
      options_.topology = "exponential";
    }
    if (info.has("eta")) {
      options_.algorithm += ":eta=0.25";  // else measured, which takes long
    }
    topology_ = graph_for(info, options_);
  }

  void add(std::size_t rank, ByteReader* in) {
    auto setup = node_setup(options_, rank, x_[rank], topology_);
    setup.layout = tensors();
    auto algorithm = make_algorithm(spec_of(options_), std::move(setup));
    if (in != nullptr) {
      algorithm = std::make_unique<Disturbed>(std::move(algorithm), *in);
    }
    driver_.add(std::move(algorithm));
  }

  sotto::Status run(sotto::Round rounds) {
    return driver_.run(rounds, [](sotto::Rank rank, sotto::Round round, std::span<const float> x,
                                  std::span<float> g) {
      for (std::size_t k = 0; k < x.size(); ++k) {
        g[k] = 0.01F * static_cast<float>(rank) - 0.1F * static_cast<float>((round + k) % 3);
      }
    });
  }

  sotto::Algorithm& node() { return driver_.node(0); }
  std::span<const float> model() const { return x_[0]; }

 private:
  sotto::test::ClusterOptions options_;
  std::shared_ptr<const sotto::Topology> topology_;
  sotto::LockstepDriver driver_;
  std::vector<std::vector<float>> x_;
};

Bytes saved_state(std::uint8_t choice) {
  Job job(choice);
  for (std::size_t rank = 0; rank < kNodes; ++rank) {
    job.add(rank, nullptr);
  }
  check(job.run(2).ok(), "an honest job runs");
  sotto::ByteBuffer out;
  job.node().save(out);
  return std::move(out).take();
}

/// One's own state is the same in every run.
const Bytes& known_state(std::uint8_t choice) {
  static std::map<std::size_t, Bytes> states;
  auto& state = states[choice % sotto::algorithms().size()];
  if (state.empty()) {
    state = saved_state(choice);
  }
  return state;
}

}  // namespace

void disturb_algorithm(std::string_view /*name*/, std::span<const std::byte> input) {
  ByteReader in(input);
  Job job(in.read<std::uint8_t>());
  for (std::size_t rank = 0; rank < kNodes; ++rank) {
    job.add(rank, rank == 0 ? &in : nullptr);
  }
  if (job.run(3).ok()) {
    check(std::ranges::all_of(job.model(), [](float value) { return std::isfinite(value); }),
          "what neighbours say leaves a model finite, or is a fault");
  }
}

void load_algorithm(std::string_view /*name*/, std::span<const std::byte> input) {
  ByteReader in(input);
  const auto choice = in.read<std::uint8_t>();
  Bytes state;
  if ((choice & kWhole) != 0) {
    state = copy(in.take(in.remaining()));
  } else {
    state = known_state(choice);
  }
  while ((choice & kWhole) == 0 && in.remaining() > 2) {
    const std::size_t at = in.read<std::uint16_t>() % state.size();
    const std::size_t length = in.read<std::uint8_t>();
    const auto bytes = in.take(std::min({length, state.size() - at, in.remaining()}));
    std::ranges::copy(bytes, state.begin() + static_cast<std::ptrdiff_t>(at));
  }
  Job job(choice & static_cast<std::uint8_t>(~kWhole));
  for (std::size_t rank = 0; rank < kNodes; ++rank) {
    job.add(rank, nullptr);
  }
  ByteReader reader(state);
  const sotto::Status status = job.node().load(reader);
  if (!status.ok()) {
    check(status.fault() == Fault::malformed || status.fault() == Fault::non_finite,
          "a state is refused as malformed or not finite");
    return;
  }
  sotto::ByteBuffer again;
  job.node().save(again);
  check(std::ranges::equal(again.bytes(), std::span(state).first(reader.position())),
        "a state that loads is the one that is saved");
}

std::size_t algorithm_choices() { return sotto::algorithms().size(); }

std::vector<std::byte> example_algorithm_state(std::uint8_t choice) {
  sotto::ByteBuffer out;
  out.write(static_cast<std::uint8_t>(choice | kWhole));
  out.append(saved_state(choice));
  return std::move(out).take();
}

}  // namespace sotto_fuzz
