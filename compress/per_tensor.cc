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
#include <sotto/base/text.h>
#include <sotto/compress/registry.h>

#include "internal/contracts.h"
#include "internal/family.h"
#include "internal/payload.h"
#include "internal/tensor_rule.h"

namespace sotto {
namespace {

using internal::TensorRule;
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
  std::vector<Part> parts_;  ///< empty where there is nothing to tell apart
  std::size_t saturated_ = 0;
  mutable std::vector<float> before_;  ///< y as it was
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
    if (!status) {
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
  if (!status) {
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

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> pieces;
  for (std::size_t end = text.find(';'); end != std::string_view::npos; end = text.find(';')) {
    pieces.push_back(trimmed(text.substr(0, end)));
    text.remove_prefix(end + 1);
  }
  pieces.push_back(trimmed(text));
  return pieces;
}

std::string names_of(const ParameterLayout& layout) {
  constexpr std::size_t kMost = 12;
  std::string names;
  for (std::size_t i = 0; i < std::min(layout.size(), kMost); ++i) {
    names += (i == 0 ? "" : ", ") + layout[i].name;
  }
  return names + (layout.size() > kMost ? ", …" : "");
}

void require_some(const TensorRule& rule, const ParameterLayout& layout) {
  const auto fits = [&](const ParameterBlock& tensor) { return rule.fits(tensor); };
  if (rule.by_name() && std::ranges::none_of(layout, fits)) {
    refuse("compressor", rule.selector(),
           fmt::format("it fits none of the tensors {}; * stands for any characters, ? for one",
                       names_of(layout)));
  }
}

/// The first rule that fits a tensor counts: one by name for which others by name leave none says
/// nothing. Rules by rank or size may leave some in another model.
void require_some_left(const TensorRule& rule, std::span<const TensorRule> earlier,
                       const ParameterLayout& layout) {
  std::string before;
  for (const ParameterBlock& tensor : layout) {
    if (!rule.by_name() || !rule.fits(tensor)) {
      continue;
    }
    const auto first = std::ranges::find_if(earlier, [&](const TensorRule& candidate) {
      return candidate.by_name() && candidate.fits(tensor);
    });
    if (first == earlier.end()) {
      return;
    }
    const std::string quoted = fmt::format("'{}'", first->selector());
    if (before.find(quoted) == std::string::npos) {
      before += (before.empty() ? "" : ", ") + quoted;
    }
  }
  if (!before.empty()) {
    refuse("compressor", rule.selector(),
           fmt::format("the first rule that fits a tensor counts, and those before it fit all of "
                       "this one's: {}; put this one in front, or leave it out",
                       before));
  }
}

}  // namespace

std::unique_ptr<Compressor> make_per_tensor(std::string_view spec, ContractKind need,
                                            const Ops& ops, const ParameterLayout& layout) {
  const auto pieces = split(spec);
  auto otherwise = make_compressor(pieces.front(), need, ops);
  std::string canonical = otherwise->spec();
  std::vector<TensorRule> rules;
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    rules.emplace_back(pieces[i]);
    canonical += fmt::format("; {}={}", rules.back().selector(),
                             make_compressor(rules.back().spec(), need, ops)->spec());
  }
  std::vector<Part> parts;
  if (layout.size() > 1) {
    for (const TensorRule& rule : rules) {
      require_some(rule, layout);
      require_some_left(
          rule, std::span(rules).first(static_cast<std::size_t>(&rule - rules.data())), layout);
    }
    for (const ParameterBlock& tensor : layout) {
      const auto rule = std::ranges::find_if(
          rules, [&](const TensorRule& candidate) { return candidate.fits(tensor); });
      ParameterLayout alone = {tensor};
      alone.front().offset = 0;
      parts.push_back({tensor, make_compressor(rule == rules.end() ? pieces.front() : rule->spec(),
                                               need, ops, alone)});
    }
  }
  return std::make_unique<PerTensorCompressor>(std::move(canonical), std::move(otherwise),
                                               std::move(parts));
}

constinit const CompressorInfo internal::kPerTensorInfo = {
    "per_tensor",
    "SPEC; SELECTOR=SPEC[; …]",
    "a compressor for every tensor; SELECTOR is a name with * and ?, 1d, or under:ELEMENTS",
    "the worst of its parts",
    "quant:4; 1d=none",
    kPerTensorWireId};

}  // namespace sotto
