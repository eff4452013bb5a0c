#include <sotto/optim/all_reduce.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include <sotto/optim/chunks.h>

namespace sotto {

AllReduceSgd::AllReduceSgd(AlgorithmSetup setup)
    : node_(AlgorithmId::allreduce, "allreduce", std::move(setup)),
      next_{(node_.rank() + 1) % node_.nodes(), 1},
      previous_{(node_.rank() + node_.nodes() - 1) % node_.nodes(), 1},
      mail_(node_, 1,
            node_.compressor().max_bytes(longest_chunk(node_.dimension(), node_.nodes()))),
      sum_(node_.dimension()),
      direction_(node_.dimension()) {}

Peers AllReduceSgd::peers() const {
  Peers peers{.to = {}, .from = {}, .max_frame_bytes = mail_.max_frame_bytes()};
  if (node_.nodes() > 1) {
    peers.to = {next_.peer};
    peers.from = {previous_.peer};
  }
  return peers;
}

std::span<float> AllReduceSgd::chunk(int back) {
  const int n = node_.nodes();
  const Chunk part = chunk_of(sum_.size(), n, ((node_.rank() - back) % n + n) % n);
  return part.of(std::span(sum_));
}

bool AllReduceSgd::begin_round(Exchange& /*out*/) {
  node_.begin_round();
  return false;
}

Status AllReduceSgd::gradient_ready(std::span<const float> gradient, Exchange& out, bool* post) {
  check(accepts_gradient(), "all-reduce takes one gradient a round");
  *post = false;
  if (Status status = node_.require_finite(gradient, "gradient"); !status) {
    return status;
  }
  node_.ops().copy(gradient, sum_);
  if (phases() == 0) {
    return step();
  }
  if (Status status = post_phase(0, out); !status) {
    return status;
  }
  *post = true;
  return {};
}

Status AllReduceSgd::frame_arrived(Rank from, std::span<const std::byte> frame) {
  return mail_.accept(from, frame).status();
}

Result<bool> AllReduceSgd::exchange_done(Exchange& out) {
  if (Status status = mail_.require_complete(); !status) {
    return status;
  }
  if (Status status = take_chunk(); !status) {
    return status;
  }
  mail_.close();
  const int next_phase = mail_.phase() + 1;
  const bool more = next_phase < phases();
  if (Status status = more ? post_phase(next_phase, out) : step(); !status) {
    return status;
  }
  return more;
}

Status AllReduceSgd::take_chunk() {
  const int phase = mail_.phase();
  const auto taken = chunk(phase + 1);
  if (gathering(phase)) {
    node_.ops().fill(0, taken);  // a mean replaces the partial sum
  }
  const Status decoded = node_.compressor().decode_add(mail_.payload(0), 1, taken);
  return decoded.ok() ? decoded : mail_.refuse(0, decoded);
}

Status AllReduceSgd::post_phase(int phase, Exchange& out) {
  const auto sent = chunk(phase);
  std::size_t payload_bytes = 0;
  if (phase > node_.nodes() - 1) {
    // Means go on as they came, byte for byte.
    const auto payload = mail_.payload(0);
    std::copy(payload.begin(), payload.end(), mail_.outgoing().begin());
    payload_bytes = payload.size();
  } else {
    const bool summed = gathering(phase);
    if (summed) {
      node_.ops().scale(1.0F / static_cast<float>(node_.nodes()), sent);
    }
    if (Status status = node_.require_finite(sent, "sum of the gradients"); !status) {
      return status;
    }
    const auto payload = node_.encode(sent, mail_.outgoing(), static_cast<std::uint32_t>(phase));
    payload_bytes = payload.size();
    if (summed) {
      // The owner of a mean takes what it sends, so that all nodes hold the same bits.
      node_.ops().fill(0, sent);
      if (Status status = node_.decode_own(payload, 1, sent); !status) {
        return status;
      }
    }
  }
  mail_.post({.tag = {.round = node_.round(), .phase = static_cast<std::uint16_t>(phase)},
              .compressor = node_.compressor().wire_id(),
              .to = {&next_, 1},
              .from = {&previous_, 1},
              .elements_out = sent.size(),
              .elements_in = chunk(phase + 1).size()},
             payload_bytes, out);
  return {};
}

Status AllReduceSgd::step() {
  if (Status status = node_.direction(sum_, direction_); !status) {
    return status;
  }
  node_.ops().subtract(node_.x(), direction_, direction_);
  if (Status status = node_.require_finite(direction_, "updated model"); !status) {
    return status;
  }
  node_.ops().copy(direction_, node_.x());
  node_.finish_round();
  return {};
}

AlgorithmCounters AllReduceSgd::counters() const {
  return {.saturated = node_.saturated(), .bad_frames = mail_.bad_frames()};
}

}  // namespace sotto
