#include <sotto/optim/exchange/chunk_mean.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include <sotto/compress/none.h>
#include <sotto/optim/exchange/neighbours.h>
#include <sotto/optim/frozen_adam/zero_where_zero.h>
#include <sotto/optim/state_io.h>

namespace sotto {
namespace {

constexpr std::string_view kMean = "mean over all nodes";

std::size_t longest_payload(const LocalNode& node, const Compressor& exact,
                            const Compressor* gather) {
  const std::size_t elements = longest_chunk(node.dimension(), node.nodes());
  const std::size_t encoded = std::max(node.compressor().max_bytes(elements),
                                       gather == nullptr ? 0 : gather->max_bytes(elements));
  return std::max(encoded + max_exact_part_bytes(elements), exact.max_bytes(elements));
}

}  // namespace

ChunkMean::ChunkMean(LocalNode& node, std::unique_ptr<Compressor> gather)
    : node_(node),
      exact_(make_none(node_.ops())),
      gather_(std::move(gather)),
      others_(all_others(node_)),
      elements_(others_.size()),
      parcels_(others_.size()),
      mail_(node_, others_.size(), longest_payload(node_, *exact_, gather_.get()),
            std::max<std::size_t>(1, others_.size())),
      own_chunk_(mail_.outgoing().size()),
      error_(node_.dimension()),
      chunk_error_(chunk(node_.rank()).size),
      average_(chunk_error_.size()) {
  for (std::size_t i = 0; i < others_.size(); ++i) {
    elements_[i] = chunk(others_[i].peer).size;
  }
}

Peers ChunkMean::peers() const { return peers_along(others_, mail_); }

std::size_t ChunkMean::edge(Rank peer) const {
  return static_cast<std::size_t>(peer < node_.rank() ? peer : peer - 1);
}

ExchangePlan ChunkMean::plan(std::uint16_t phase) const {
  ExchangePlan plan{.tag = {.round = node_.round(), .phase = phase, .bucket = node_.bucket()},
                    .compressor = codec(phase).wire_id(),
                    .to = others_,
                    .from = others_,
                    .elements_out = average_.size(),
                    .elements_in = average_.size()};
  if (phase == kGather) {
    plan.elements_by_sender = elements_;
  }
  return plan;
}

Compressor& ChunkMean::codec(std::uint16_t phase) const {
  if (!pass_.compressed) {
    return *exact_;
  }
  return phase == kGather && gather_ ? *gather_ : node_.compressor();
}

std::span<const std::byte> ChunkMean::encode(std::uint16_t phase, Rank owner, std::span<float> v,
                                             std::span<std::byte> out, std::uint32_t bucket) {
  if (!pass_.compressed) {
    return out.first(exact_->encode(v, {}, out));
  }
  const auto encoding = node_.encoder().encode_residual(codec(phase), v, out, bucket);
  const ExactElements exact = pass_.exact.in(chunk(owner));
  return exact.empty() ? encoding
                       : out.first(append_exact_part(exact.values, out, encoding.size()));
}

void ChunkMean::Pass::leave_out(std::size_t first, std::span<float> values) const {
  if (!mask.empty()) {
    zero_where_zero(mask.subspan(first, values.size()), values);
  }
}

void ChunkMean::begin_exact(std::span<float> v) {
  pass_ = {};
  scatter(v);
}

Status ChunkMean::begin_compressed(std::vector<float>& v, std::span<const float> mask,
                                   const ExactElements& exact) {
  if (Status status = node_.require_finite(exact.values, "late gradient"); !status.ok()) {
    return status;
  }
  check(!clip_ || exact.empty(), "elements in full precision have no part in lengths");
  pass_ = {.compressed = true, .mask = mask, .exact = exact};
  node_.ops().axpy(error_decay_, error_, v);
  pass_.leave_out(0, v);
  if (Status status = node_.require_finite(v, "compensated vector"); !status.ok()) {
    return status;
  }
  scatter(v);
  std::swap(error_, v);
  return {};
}

void ChunkMean::scatter(std::span<float> v) {
  for (Rank owner = 0; owner < node_.nodes(); ++owner) {
    const auto part = chunk(owner).of(v);
    const auto bucket = static_cast<std::uint32_t>(owner);
    if (owner == node_.rank()) {
      own_payload_ = encode(kScatter, owner, part, own_chunk_, bucket);
    } else {
      const auto payload = encode(kScatter, owner, part, mail_.outgoing(edge(owner)), bucket);
      parcels_[edge(owner)] = {.elements = part.size(), .payload_bytes = payload.size()};
    }
  }
  mail_.post_each(plan(kScatter), parcels_);
}

Result<std::span<const std::byte>> ChunkMean::encoding_in(std::span<const std::byte> payload,
                                                          Rank owner) {
  const ExactElements exact = pass_.exact.in(chunk(owner));
  return exact.empty() ? payload : add_exact_part(payload, exact.values);
}

Status ChunkMean::decode(std::uint16_t phase, Rank from, Rank owner, float scale,
                         std::span<float> y) {
  const bool own = from == node_.rank();
  const auto encoding = encoding_in(own ? own_payload_ : mail_.payload(edge(from)), owner);
  const Status decoded =
      encoding.ok() ? codec(phase).decode_add(*encoding, scale, y) : encoding.status();
  if (decoded) {
    return {};
  }
  return own ? node_.fault(decoded.fault(), "own encoding: " + decoded.message())
             : mail_.refuse(edge(from), decoded);
}

Status ChunkMean::measure_lengths() {
  for (Rank from = 0; from < node_.nodes(); ++from) {
    node_.ops().fill(0, average_);
    if (Status status = decode(kScatter, from, node_.rank(), 1, average_); !status.ok()) {
      return status;
    }
    clip_->measure(from, average_);
  }
  clip_->settle();
  return {};
}

Status ChunkMean::average() {
  const Ops& ops = node_.ops();
  if (Status status = clip_ ? measure_lengths() : Status(); !status.ok()) {
    return status;
  }
  // The values of this node are encoded, and make room for the sums.
  const auto exact = pass_.exact.in(chunk(node_.rank())).values;
  ops.fill(0, average_);
  ops.fill(0, exact);
  for (Rank from = 0; from < node_.nodes(); ++from) {
    const float scale = clip_ ? clip_->factor(from) : 1;
    if (Status status = decode(kScatter, from, node_.rank(), scale, average_); !status.ok()) {
      return status;
    }
  }
  mail_.close();
  const float share = 1.0F / static_cast<float>(node_.nodes());
  ops.scale(share, average_);
  ops.scale(share, exact);
  const bool makes = pass_.compressed && at_owner_;
  if (makes) {
    if (Status status = node_.require_finite(average_, kMean); !status.ok()) {
      return status;
    }
    if (Status status = at_owner_(average_); !status.ok()) {
      return status;
    }
  }
  if (pass_.compressed) {
    ops.axpy(1, chunk_error_, average_);
    pass_.leave_out(chunk(node_.rank()).offset, average_);
  }
  for (const std::span<const float> means : {std::span<const float>(average_), {exact}}) {
    if (Status status = node_.require_finite(means, makes ? "update" : kMean); !status.ok()) {
      return status;
    }
  }
  const auto bucket = static_cast<std::uint32_t>(node_.nodes());
  own_payload_ = encode(kGather, node_.rank(), average_, mail_.outgoing(), bucket);
  if (pass_.compressed) {
    std::swap(chunk_error_, average_);
  }
  mail_.post(plan(kGather), own_payload_.size());
  return {};
}

Status ChunkMean::complete(const Exchange& exchange, std::span<float> mean) {
  if (Status status = mail_.accept(exchange); !status.ok()) {
    return status;
  }
  if (mail_.phase() == kScatter) {
    return average();
  }
  node_.ops().fill(0, mean);
  node_.ops().fill(0, pass_.exact.values);
  for (Rank owner = 0; owner < node_.nodes(); ++owner) {
    if (Status status = decode(kGather, owner, owner, 1, chunk(owner).of(mean)); !status.ok()) {
      return status;
    }
  }
  if (pass_.compressed) {
    pass_.leave_out(0, mean);
  }
  mail_.close();
  return {};
}

void ChunkMean::clear_errors() {
  node_.ops().fill(0, error_);
  node_.ops().fill(0, chunk_error_);
}

void ChunkMean::save(ByteBuffer& out) const {
  write_floats(error_, out);
  write_floats(chunk_error_, out);
  if (gather_) {
    gather_->save(out);
  }
}

Status ChunkMean::load(ByteReader& in) {
  if (Status status = read_floats(in, "error", error_); !status.ok()) {
    return status;
  }
  const Status status = read_floats(in, "error of the chunk", chunk_error_);
  return status.ok() && gather_ ? gather_->load(in) : status;
}

}  // namespace sotto
