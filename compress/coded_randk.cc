#include <sotto/compress/coded_randk.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/check.h>

#include "internal/chunks.h"
#include "internal/coded_values.h"
#include "internal/contracts.h"
#include "internal/family.h"
#include "internal/feedback.h"
#include "internal/keep.h"
#include "internal/payload.h"
#include "internal/random_choice.h"
#include "internal/shares.h"

namespace sotto {
namespace {

constexpr std::size_t kChoiceBytes = sizeof(std::uint32_t) + sizeof(std::uint64_t);

class CodedRandkCompressor final : public Compressor {
 public:
  CodedRandkCompressor(const CodedRandkOptions& options, const Ops& ops)
      : options_(options), ops_(ops), within_(make_coded_topk(options.within, ops)) {}

  std::string spec() const override {
    return all_chosen()
               ? fmt::format("randk:{},values={}", options_.keep_ratio, options_.within.value_bits)
               : fmt::format("randk:{}/{}", options_.keep_ratio, within_->spec());
  }
  std::uint16_t wire_id() const override { return kCodedRandkWireId; }
  std::size_t max_bytes(std::size_t elements) const override {
    return kChoiceBytes + within_->max_bytes(chosen(elements));
  }
  Contract contract(std::size_t elements) const override;
  std::unique_ptr<Compressor> clone() const override { return make_coded_randk(options_, ops_); }
  void set_workers(std::shared_ptr<Workers> workers) override {
    within_->set_workers(workers);
    Compressor::set_workers(std::move(workers));
  }

  std::size_t encode(std::span<const float> x, const RandomKey& key,
                     std::span<std::byte> out) override {
    return *encode_chosen(x, {}, key, out);
  }
  std::optional<std::size_t> encode_prepared(const Prepare& prepare, std::span<float> v,
                                             const RandomKey& key,
                                             std::span<std::byte> out) override {
    const auto used = encode_chosen(v, {&prepare, v}, key, out);
    return used ? finish_prepared(prepare, out.first(*used)) : std::nullopt;
  }
  Status decode_add(std::span<const std::byte> bytes, float scale,
                    std::span<float> y) const override;

 private:
  bool all_chosen() const { return options_.within.keep_ratio == 1 && options_.within.chunk == 0; }
  std::size_t chosen(std::size_t elements) const {
    return internal::kept_elements(options_.keep_ratio, elements);
  }

  std::optional<std::size_t> encode_chosen(std::span<const float> x, const internal::Origin& origin,
                                           const RandomKey& key, std::span<std::byte> out);
  /// The chosen of the blocks begin … end − 1 into values_. False: called off.
  bool gather(std::span<const float> x, const internal::Origin& origin, std::size_t begin,
              std::size_t end) const;

  CodedRandkOptions options_;
  const Ops& ops_;
  std::unique_ptr<Compressor> within_;
  mutable internal::RandomChoice choice_;
  /// Values of the chosen elements, in the order of the selection.
  mutable std::vector<float> values_;
};

Contract CodedRandkCompressor::contract(std::size_t elements) const {
  if (elements == 0) {
    return internal::exact_contract();
  }
  const std::size_t r = chosen(elements);
  const Contract within = within_->contract(r);
  const double share = static_cast<double>(r) / static_cast<double>(elements);
  Contract contract = internal::contraction_contract(share * within.delta);
  contract.floor_per_element = within.floor_per_element;
  return contract;
}

std::optional<std::size_t> CodedRandkCompressor::encode_chosen(std::span<const float> x,
                                                               const internal::Origin& origin,
                                                               const RandomKey& key,
                                                               std::span<std::byte> out) {
  check(x.size() <= std::numeric_limits<std::uint32_t>::max(),
        "randk: more than 2^32 − 1 elements");
  const std::uint64_t selection = internal::selection_key(key);
  values_.resize(chosen(x.size()));
  ByteWriter writer(out);
  writer.write(static_cast<std::uint32_t>(values_.size()));
  writer.write(selection);
  choice_.choose(selection, x.size(), values_.size());
  const internal::Shares shares(workers(), choice_.blocks(), x.size());
  if (!shares.all(
          [&](std::size_t begin, std::size_t end) { return gather(x, origin, begin, end); })) {
    return std::nullopt;
  }
  const auto rest = out.subspan(writer.position());
  if (origin.prepare == nullptr || !origin.prepare->residual) {
    return writer.position() + within_->encode(values_, key, rest);
  }
  const std::size_t used = within_->encode_residual(values_, key, rest);
  shares.each([&](std::size_t /*share*/, std::size_t begin, std::size_t end) {
    choice_.each(origin.v.data(), begin, end, [&](const internal::RandomChoice::Entry& entry) {
      origin.v[entry.place] = values_[entry.order];
    });
  });
  return writer.position() + used;
}

bool CodedRandkCompressor::gather(std::span<const float> x, const internal::Origin& origin,
                                  std::size_t begin, std::size_t end) const {
  const internal::Chunks blocks(x.size(), internal::RandomChoice::kBlock, 1);
  auto feedback = origin.feedback(blocks.end(begin), blocks.end(end));
  for (std::size_t block = begin; block < end; ++block) {
    const std::size_t first = blocks.first(block);
    const auto here = internal::chunk_of(x, feedback, first, blocks.size(block));
    if (!here) {
      return false;
    }
    for (const auto& [place, order] : choice_.in(block)) {
      values_[order] = (*here)[place - first];
    }
  }
  return true;
}

Status CodedRandkCompressor::decode_add(std::span<const std::byte> bytes, float scale,
                                        std::span<float> y) const {
  const std::size_t r = chosen(y.size());
  ByteReader reader(bytes);
  const auto stated = reader.read<std::uint32_t>();
  const auto selection = reader.read<std::uint64_t>();
  if (reader.failed() || stated != r) {
    return internal::malformed(fmt::format("randk: {} bytes with r = {} where {} of {} are due",
                                           bytes.size(), stated, r, y.size()));
  }
  values_.assign(r, 0.0F);
  if (Status status = within_->decode_add(reader.take(reader.remaining()), 1, values_);
      !status.ok()) {
    return status;
  }
  choice_.choose(selection, y.size(), r);
  internal::Shares(workers(), choice_.blocks(), y.size())
      .each([&](std::size_t /*share*/, std::size_t begin, std::size_t end) {
        choice_.each(y.data(), begin, end, [&](const internal::RandomChoice::Entry& entry) {
          y[entry.place] = y[entry.place] + scale * values_[entry.order];
        });
      });
  return {};
}

}  // namespace

std::unique_ptr<Compressor> make_coded_randk(const CodedRandkOptions& options, const Ops& ops) {
  internal::check_keep_ratio(options.keep_ratio);
  return std::make_unique<CodedRandkCompressor>(options, ops);
}

std::unique_ptr<Compressor> internal::build_coded_randk(SpecReader& spec, double keep_ratio,
                                                        const Wanted& wanted) {
  CodedRandkOptions options{.keep_ratio = keep_ratio};
  const auto bits = take_value_bits(spec);
  if (const auto inner = spec.take_inner()) {
    SpecReader within(*inner);
    double keep = 0;
    const auto largest = within.name() == "topk" && !bits ? take_coded_topk(within, keep)
                                                          : std::optional<CodedTopkOptions>();
    if (!largest) {
      spec.reject("after '/'", *inner,
                  "topk:KEEP,values=B[,chunk=N] would do, with no B before it");
    }
    within.finish();
    options.within = *largest;
  } else if (bits && *bits != kFloatBits) {
    options.within.value_bits = *bits;
  } else {
    return nullptr;
  }
  if (spec.choice("scale", {"none", "unbiased"}).value_or(0) != 0) {
    spec.reject("scale", "unbiased", "values of few bits have a bias: none would do");
  }
  return make_coded_randk(options, wanted.ops);
}

}  // namespace sotto
