#include <sotto/optim/exchange/ring_mean.h>

#include <algorithm>

#include <sotto/optim/exchange/chunks.h>

namespace sotto {

RingMean::RingMean(LocalNode& node, std::size_t longest, RingCodec codec)
    : node_(node),
      exact_(codec == RingCodec::full ? node.make_exact() : nullptr),
      next_{(node.rank() + 1) % node.nodes(), 1},
      previous_{(node.rank() + node.nodes() - 1) % node.nodes(), 1},
      mail_(node, 1, this->codec().max_bytes(longest_chunk(longest, node.nodes()))) {}

Peers RingMean::peers() const {
  Peers peers{.to = {}, .from = {}, .max_frame_bytes = mail_.max_frame_bytes()};
  if (node_.nodes() > 1) {
    peers.to = {next_.peer};
    peers.from = {previous_.peer};
  }
  return peers;
}

std::span<float> RingMean::chunk(int back) const {
  const int n = node_.nodes();
  return chunk_of(v_.size(), n, ((node_.rank() - back) % n + n) % n).of(v_);
}

std::span<const std::byte> RingMean::encode(std::span<const float> x, int phase) {
  const auto out = mail_.outgoing();
  return exact_ ? std::span<const std::byte>(out.first(exact_->encode(x, {}, out)))
                : node_.encode(x, out, static_cast<std::uint32_t>(phase));
}

Result<bool> RingMean::begin(std::span<float> v, int first, std::string_view what, Exchange& out) {
  v_ = v;
  first_ = first;
  what_ = what;
  if (phases() == 0) {
    return false;
  }
  if (Status status = post_phase(0, out); !status) {
    return status;
  }
  return true;
}

Result<bool> RingMean::exchange_done(Exchange& out) {
  if (Status status = mail_.require_complete(); !status) {
    return status;
  }
  const int phase = mail_.phase() - first_;
  if (Status status = take_chunk(phase); !status) {
    return status;
  }
  mail_.close();
  const bool more = phase + 1 < phases();
  if (Status status = more ? post_phase(phase + 1, out) : Status(); !status) {
    return status;
  }
  return more;
}

Status RingMean::take_chunk(int phase) {
  const auto taken = chunk(phase + 1);
  if (gathering(phase)) {
    node_.ops().fill(0, taken);  // a mean replaces the partial sum
  }
  const Status decoded = codec().decode_add(mail_.payload(0), 1, taken);
  return decoded.ok() ? decoded : mail_.refuse(0, decoded);
}

Status RingMean::post_phase(int phase, Exchange& out) {
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
    if (Status status = node_.require_finite(sent, what_); !status) {
      return status;
    }
    const auto payload = encode(sent, phase);
    payload_bytes = payload.size();
    if (summed && !exact_) {
      // The owner of a mean takes what it sends, so that all nodes hold the same bits.
      node_.ops().fill(0, sent);
      if (Status status = node_.decode_own(payload, 1, sent); !status) {
        return status;
      }
    }
  }
  mail_.post({.tag = {.round = node_.round(), .phase = static_cast<std::uint16_t>(first_ + phase)},
              .compressor = codec().wire_id(),
              .to = {&next_, 1},
              .from = {&previous_, 1},
              .elements_out = sent.size(),
              .elements_in = chunk(phase + 1).size()},
             payload_bytes, out);
  return {};
}

}  // namespace sotto
