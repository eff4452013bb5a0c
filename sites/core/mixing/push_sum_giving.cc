#include <sotto/sites/core/mixing/push_sum_giving.h>

#include <array>
#include <functional>
#include <utility>

#include <sotto/compress/none.h>
#include <sotto/optim/state_io.h>
#include <sotto/sites/core/mixing/local_steps.h>
#include <sotto/sites/core/pieces.h>

namespace sotto::sites {

PushSumGiving::PushSumGiving(PushSumModel& model, Compressor& compressor)
    : model_(model),
      compressor_(compressor),
      exact_(compressor.wire_id() == kNoneWireId),
      error_(model.size()) {}

void PushSumGiving::clear() { model_.ops().fill(0, error_); }

Result<Payload> PushSumGiving::make(const RandomKey& key, const ShareHeader& header, double gives) {
  auto payload = exact_ ? as_is(header, gives) : encoded(key, header, gives);
  if (!payload.ok()) {
    return payload.status();
  }
  return pool_.share(*std::move(payload));
}

Result<std::vector<std::byte>> PushSumGiving::as_is(const ShareHeader& header, double gives) {
  const Ops& ops = model_.ops();
  const std::span<float> pull = model_.pull();
  const std::size_t floats = model_.size() * sizeof(float);
  std::vector<std::byte> payload =
      pool_.take(ShareHeader::kBytes + std::max(compressor_.max_bytes(model_.size()), floats));
  payload.resize(ShareHeader::kBytes);
  ByteWriter out(payload);
  header.write(out);
  const auto high = static_cast<float>(gives);
  const auto low = static_cast<float>(gives - static_cast<double>(high));
  const bool finite = by_piece(ops, pull.size(), [&](std::size_t first, std::size_t count) {
    const auto x = model_.x().subspan(first, count);
    const auto bytes = std::as_bytes(x);
    payload.insert(payload.end(), bytes.begin(), bytes.end());
    return ops.combine({{-high, x}, {-low, x}}, pull.subspan(first, count));
  });
  if (!finite) {
    return require_finite(ops, pull, "share given away");
  }
  return payload;
}

Result<std::vector<std::byte>> PushSumGiving::encoded(const RandomKey& key,
                                                      const ShareHeader& header, double gives) {
  const std::size_t most = ShareHeader::kBytes + compressor_.max_bytes(model_.size());
  std::vector<std::byte> payload = pool_.take(most);
  payload.resize(most);
  ByteWriter out(payload);
  header.write(out);
  const auto encoding = encode(key, std::span(payload).subspan(ShareHeader::kBytes));
  if (!encoding.ok()) {
    return encoding.status();
  }
  if (Status status = give(*encoding, gives); !status.ok()) {
    return status;
  }
  payload.resize(ShareHeader::kBytes + encoding->size());
  std::swap(error_, model_.values());
  return payload;
}

Result<std::span<const std::byte>> PushSumGiving::encode(const RandomKey& key,
                                                         std::span<std::byte> out) {
  const Ops& ops = model_.ops();
  const std::span<const float> x = model_.x();
  const std::span<float> v = model_.values();
  const auto make = [&](std::size_t first, std::span<float> piece) {
    return ops.combine(
        {{1, x.subspan(first, piece.size())}, {1, std::span(error_).subspan(first, piece.size())}},
        piece);
  };
  const auto bytes =
      compressor_.encode_prepared({.make = std::cref(make), .reads = {x, error_}}, v, key, out);
  if (bytes) {
    return std::span<const std::byte>(out.first(*bytes));
  }
  make(0, v);
  Status status = require_finite(ops, v, "compensated model x + δ");
  return status.ok() ? Status(Fault::unexpected, "the compensated model x + δ was not encoded")
                     : status;
}

/// What is given away need not be a float32 value: its two halves make the own loss what the others
/// gain.
Status PushSumGiving::give(std::span<const std::byte> encoding, double gives) {
  const auto high = static_cast<float>(gives);
  const auto low = static_cast<float>(gives - static_cast<double>(high));
  const std::array<Compressor::Term, 2> terms = {
      {{.bytes = encoding, .scale = -high}, {.bytes = encoding, .scale = -low}}};
  const std::span<float> pull = model_.pull();
  const auto finite =
      decode_by_piece(compressor_, std::span(terms).first(low == 0 ? 1 : 2), model_.room(),
                      [&](std::size_t first, std::span<const float> sum) {
                        return model_.ops().combine({{1, sum}}, pull.subspan(first, sum.size()));
                      });
  if (!finite.ok()) {
    return finite.status().with_context("own encoding");
  }
  return *finite ? Status() : require_finite(model_.ops(), pull, "share given away");
}

void PushSumGiving::save(ByteBuffer& out) const { write_floats(error_, out); }

Status PushSumGiving::load(ByteReader& in) { return read_floats(in, "error", error_); }

}  // namespace sotto::sites
