#include <sotto/compress/per_tensor.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/base/tensor_selector.h>
#include <sotto/compress/registry.h>

#include "internal/contracts.h"
#include "internal/family.h"
#include "internal/payload.h"

namespace sotto {
namespace {

using Length = std::uint32_t;

/// One tensor and what compresses it.
struct Part {
  ParameterBlock tensor;
  std::unique_ptr<Compressor> compressor;
};

/// The key of one tensor: elements count from 0 in each, so the stream must be another one.
RandomKey key_of(const RandomKey& key, std::size_t tensor) {
  RandomKey parent = key;
  parent.purpose = Purpose::select;
  const PhiloxCounter words = parent.block(static_cast<std::uint32_t>(tensor));
  RandomKey own = key;
  own.seed = words[0] | (std::uint64_t{words[1]} << 32);
  return own;
}

class PerTensorCompressor final : public Compressor {
 public:
  PerTensorCompressor(std::string spec, std::unique_ptr<Compressor> otherwise,
                      std::vector<Part> parts)
      : spec_(std::move(spec)), otherwise_(std::move(otherwise)), parts_(std::move(parts)) {}

  std::string spec() const override { return spec_; }
  std::uint16_t wire_id() const override { return kPerTensorWireId; }
  std::size_t max_bytes(std::size_t elements) const override;
  Contract contract(std::size_t elements) const override;
  bool divisible() const override { return false; }
  std::unique_ptr<Compressor> clone() const override;
  std::size_t encode(std::span<const float> x, const RandomKey& key,
                     std::span<std::byte> out) override {
    return encode_parts(x, key, out, [](Compressor& c, auto v, const RandomKey& k, auto to) {
      return c.encode(v, k, to);
    });
  }
  /// All of v is prepared first: what compressors remember must not change in vain.
  std::optional<std::size_t> encode_prepared(const Prepare& prepare, std::span<float> v,
                                             const RandomKey& key,
                                             std::span<std::byte> out) override {
    if (!by_parts(v.size())) {
      const auto used = otherwise_->encode_prepared(prepare, v, key, out);
      saturated_ = otherwise_->saturated();
      return used;
    }
    if (!prepare.make(0, v)) {
      return std::nullopt;
    }
    const std::size_t used =
        encode_parts(v, key, out, [](Compressor& c, auto part, const RandomKey& k, auto to) {
          return c.encode_residual(part, k, to);
        });
    return finish_prepared(prepare, out.first(used));
  }
  Status decode_add(std::span<const std::byte> bytes, float scale,
                    std::span<float> y) const override;
  void set_workers(std::shared_ptr<Workers> workers) override {
    otherwise_->set_workers(workers);
    for (Part& part : parts_) {
      part.compressor->set_workers(workers);
    }
    Compressor::set_workers(std::move(workers));
  }
  std::size_t saturated() const override { return saturated_; }
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

 private:
  bool by_parts(std::size_t elements) const {
    return !parts_.empty() && elements == parts_.back().tensor.offset + parts_.back().tensor.size;
  }
  template <typename T, typename Encode>
  std::size_t encode_parts(std::span<T> x, const RandomKey& key, std::span<std::byte> out,
                           Encode&& encode_one);
  Status decode_parts(std::span<const std::byte> bytes, float scale, std::span<float> y) const;

  std::string spec_;
  std::unique_ptr<Compressor> otherwise_;
  std::vector<Part> parts_;  ///< the layout's parts; empty where there is nothing to tell apart
  std::size_t saturated_ = 0;
  mutable std::vector<float> before_;  ///< y before a decoding, to be restored after a fault
};

std::size_t PerTensorCompressor::max_bytes(std::size_t elements) const {
  if (!by_parts(elements)) {
    return otherwise_->max_bytes(elements);
  }
  std::size_t bytes = 0;
  for (const Part& part : parts_) {
    bytes += sizeof(Length) + part.compressor->max_bytes(part.tensor.size);
  }
  return bytes;
}

Contract PerTensorCompressor::contract(std::size_t elements) const {
  if (!by_parts(elements)) {
    return otherwise_->contract(elements);
  }
  Contract worst = internal::exact_contract();
  for (const Part& part : parts_) {
    if (part.tensor.size == 0) {
      continue;
    }
    const Contract one = part.compressor->contract(part.tensor.size);
    worst.unbiased = worst.unbiased && one.unbiased;
    worst.alpha = std::max(worst.alpha, one.alpha);
    worst.absolute_per_element = std::max(worst.absolute_per_element, one.absolute_per_element);
    worst.delta = std::min(worst.delta, one.delta);
    worst.floor_per_element = std::max(worst.floor_per_element, one.floor_per_element);
  }
  return worst;
}

std::unique_ptr<Compressor> PerTensorCompressor::clone() const {
  std::vector<Part> parts;
  parts.reserve(parts_.size());
  for (const Part& part : parts_) {
    parts.push_back({part.tensor, part.compressor->clone()});
  }
  return std::make_unique<PerTensorCompressor>(spec_, otherwise_->clone(), std::move(parts));
}

template <typename T, typename Encode>
std::size_t PerTensorCompressor::encode_parts(std::span<T> x, const RandomKey& key,
                                              std::span<std::byte> out, Encode&& encode_one) {
  if (!by_parts(x.size())) {
    const std::size_t used = encode_one(*otherwise_, x, key, out);
    saturated_ = otherwise_->saturated();
    return used;
  }
  saturated_ = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    Compressor& compressor = *parts_[i].compressor;
    const std::size_t used = encode_one(compressor, parts_[i].tensor.of(x), key_of(key, i),
                                        out.subspan(at + sizeof(Length)));
    check(used <= std::numeric_limits<Length>::max(), "an encoding of less than 4 GiB");
    ByteWriter(out.subspan(at, sizeof(Length))).write(static_cast<Length>(used));
    saturated_ += compressor.saturated();
    at += sizeof(Length) + used;
  }
  return at;
}

Status PerTensorCompressor::decode_parts(std::span<const std::byte> bytes, float scale,
                                         std::span<float> y) const {
  ByteReader reader(bytes);
  for (const Part& part : parts_) {
    const auto length = reader.read<Length>();
    const auto encoding = reader.take(length);
    if (reader.failed()) {
      return internal::malformed(fmt::format("per_tensor: {} bytes end within tensor '{}'",
                                             bytes.size(), part.tensor.name));
    }
    const Status status = part.compressor->decode_add(encoding, scale, part.tensor.of(y));
    if (!status.ok()) {
      return status.with_context(fmt::format("tensor '{}'", part.tensor.name));
    }
  }
  return reader.finished() ? Status()
                           : internal::malformed("per_tensor: something follows the last tensor");
}

Status PerTensorCompressor::decode_add(std::span<const std::byte> bytes, float scale,
                                       std::span<float> y) const {
  if (!by_parts(y.size())) {
    return otherwise_->decode_add(bytes, scale, y);
  }
  before_.assign(y.begin(), y.end());
  Status status = decode_parts(bytes, scale, y);
  if (!status.ok()) {
    std::ranges::copy(before_, y.begin());
  }
  return status;
}

void PerTensorCompressor::save(ByteBuffer& out) const {
  otherwise_->save(out);
  for (const Part& part : parts_) {
    part.compressor->save(out);
  }
}

Status PerTensorCompressor::load(ByteReader& in) {
  Status status = otherwise_->load(in);
  for (const Part& part : parts_) {
    if (status.ok()) {
      status = part.compressor->load(in);
    }
  }
  return status;
}

}  // namespace

std::unique_ptr<Compressor> make_per_tensor(std::string_view spec, ContractKind need,
                                            const Ops& ops, const ParameterLayout& layout) {
  const SpecByTensor read = read_spec_by_tensor(spec, "compressor", "*.bias=none");
  auto otherwise = make_compressor(read.otherwise, need, ops);
  std::string canonical = otherwise->spec();
  for (const auto& [selector, of_rule] : read.rules) {
    canonical +=
        fmt::format("; {}={}", selector.text(), make_compressor(of_rule, need, ops)->spec());
  }
  std::vector<Part> parts;
  if (layout.size() > 1) {
    const auto numbers = rule_of_each(read.rules, layout, "compressor");
    parts.reserve(layout.size());
    for (std::size_t i = 0; i < layout.size(); ++i) {
      const std::size_t rule = numbers[i];
      ParameterLayout alone = {layout[i]};
      alone.front().offset = 0;
      parts.push_back({layout[i], make_compressor(rule == read.rules.size() ? read.otherwise
                                                                            : read.rules[rule].spec,
                                                  need, ops, alone)});
    }
  }
  return std::make_unique<PerTensorCompressor>(std::move(canonical), std::move(otherwise),
                                               std::move(parts));
}

constinit const CompressorInfo internal::kPerTensorInfo = {
    "per_tensor",
    "SPEC; SELECTOR=SPEC[; …]",
    "a compressor for every tensor; SELECTOR is a name with * and ?, 1d, ends, or under:ELEMENTS",
    "the worst of its parts",
    "quant:4; 1d=none",
    kPerTensorWireId};

}  // namespace sotto
