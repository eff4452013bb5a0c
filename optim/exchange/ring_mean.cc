#include <sotto/optim/exchange/ring_mean.h>

#include <algorithm>

#include <sotto/optim/exchange/chunks.h>

namespace sotto {
namespace {

/// Elements that are scaled, looked through and encoded one after the other, in the cache.
constexpr std::size_t kPiece = 16384;

}  // namespace

RingMean::RingMean(LocalNode& node, std::size_t longest, RingCodec codec, std::uint32_t bucket)
    : node_(node),
      exact_(codec == RingCodec::full ? node.make_exact() : nullptr),
      next_{(node.rank() + 1) % node.nodes(), 1},
      previous_{(node.rank() + node.nodes() - 1) % node.nodes(), 1},
      mail_(node, 1, this->codec().max_bytes(longest_chunk(longest, node.nodes()))),
      bucket_(bucket) {}

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

Result<std::size_t> RingMean::encode(std::span<float> x) {
  const bool summed = gathering(phase_);
  const float factor = summed ? 1.0F / static_cast<float>(node_.nodes()) : 1;
  if (exact()) {
    return encode_exactly(x, factor);
  }
  if (summed) {
    node_.ops().scale(factor, x);
  }
  if (Status status = node_.require_finite(x, what_); !status.ok()) {
    return status;
  }
  // The first n phases encode; means go on as they are.
  const auto part =
      bucket_ * static_cast<std::uint32_t>(node_.nodes()) + static_cast<std::uint32_t>(phase_);
  const auto payload = node_.encoder().encode(x, mail_.outgoing(), part);
  if (summed) {
    // The owner of a mean takes what it sends, so that all nodes hold the same bits.
    node_.ops().fill(0, x);
    if (Status status = node_.encoder().decode_own(payload, 1, x); !status.ok()) {
      return status;
    }
  }
  return payload.size();
}

Result<std::size_t> RingMean::encode_exactly(std::span<float> x, float factor) {
  const Ops& ops = node_.ops();
  const std::size_t length = ops.on_host() ? kPiece : x.size();
  std::size_t bytes = 0;
  for (std::size_t first = 0; first < x.size(); first += length) {
    const auto piece = x.subspan(first, std::min(length, x.size() - first));
    const bool finite = factor == 1 ? ops.count_non_finite(piece).count == 0
                                    : ops.combine({{factor, piece}}, piece);
    if (!finite) {
      return node_.require_finite(x, what_);
    }
    const auto out = mail_.outgoing().subspan(bytes);
    bytes += exact_ ? exact_->encode(piece, {}, out) : node_.encoder().encode(piece, out).size();
  }
  return bytes;
}

void RingMean::begin(std::span<float> v, int first, std::string_view what) {
  v_ = v;
  first_ = first;
  what_ = what;
  phase_ = 0;
}

Result<bool> RingMean::next_exchange(Exchange& out) {
  if (open() || !more()) {
    return false;
  }
  if (Status status = post(); !status.ok()) {
    return status;
  }
  return mail_.next_exchange(out);
}

Status RingMean::post() {
  const auto sent = chunk(phase_);
  std::size_t payload_bytes = 0;
  if (phase_ > node_.nodes() - 1) {
    // Means go on as they came, byte for byte.
    const auto payload = mail_.payload(0);
    std::copy(payload.begin(), payload.end(), mail_.outgoing().begin());
    payload_bytes = payload.size();
  } else {
    const auto encoded = encode(sent);
    if (!encoded) {
      return encoded.status();
    }
    payload_bytes = *encoded;
  }
  mail_.post({.tag = {.round = node_.round(),
                      .phase = static_cast<std::uint16_t>(first_ + phase_),
                      .bucket = bucket_},
              .compressor = codec().wire_id(),
              .to = {&next_, 1},
              .from = {&previous_, 1},
              .elements_out = sent.size(),
              .elements_in = chunk(phase_ + 1).size()},
             payload_bytes);
  ++phase_;
  return {};
}

Status RingMean::complete(const Exchange& exchange) {
  if (Status status = mail_.accept(exchange); !status.ok()) {
    return status;
  }
  const auto taken = chunk(phase_);
  const bool mean = gathering(phase_ - 1);  // which replaces the partial sum
  const auto payload = mail_.payload(0);
  Status decoded;
  if (mean && exact()) {
    decoded = decode_none(payload, taken, node_.ops());
  } else {
    if (mean) {
      node_.ops().fill(0, taken);
    }
    decoded = codec().decode_add(payload, 1, taken);
  }
  if (!decoded.ok()) {
    return mail_.refuse(0, decoded);
  }
  mail_.close();
  return {};
}

}  // namespace sotto
