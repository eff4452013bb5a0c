#include <sotto/compress/dct.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/float_vector.h>

#include "internal/contracts.h"
#include "internal/dct_blocks.h"
#include "internal/family.h"
#include "internal/payload.h"
#include "internal/shares.h"

namespace sotto {
namespace {

using internal::DctBlocks;

/// The number in frames of what is within.
using InnerId = std::uint16_t;

/// Bounds of the rounding of both transforms, relative to ‖x‖, and of elements that are as small as
/// float32's smallest: about 2^-148 in each, next to whatever the inner compressor leaves.
constexpr double kDctRounding = 0x1p-19;
constexpr double kDctFloor = 0x1p-136;

class DctCompressor final : public Compressor {
 public:
  DctCompressor(std::unique_ptr<Compressor> inner, DctBlocks blocks)
      : inner_(std::move(inner)), blocks_(std::move(blocks)) {}

  std::string spec() const override { return "dct/" + inner_->spec(); }
  std::uint16_t wire_id() const override { return kDctWireId; }
  std::size_t max_bytes(std::size_t elements) const override {
    return sizeof(InnerId) + inner_->max_bytes(elements);
  }
  Contract contract(std::size_t elements) const override;
  bool divisible() const override { return !blocks_.by_matrices() && inner_->divisible(); }
  std::unique_ptr<Compressor> clone() const override {
    return std::make_unique<DctCompressor>(inner_->clone(), blocks_);
  }
  void set_workers(std::shared_ptr<Workers> workers) override {
    inner_->set_workers(workers);
    Compressor::set_workers(std::move(workers));
  }
  std::size_t encode(std::span<const float> x, const RandomKey& key,
                     std::span<std::byte> out) override;
  Status decode_add(std::span<const std::byte> bytes, float scale,
                    std::span<float> y) const override;
  std::size_t saturated() const override { return saturated_; }
  void save(ByteBuffer& out) const override { inner_->save(out); }
  Status load(ByteReader& in) override { return inner_->load(in); }

 private:
  internal::Shares shares(std::size_t elements) const {
    return {workers(), blocks_.count(elements), elements};
  }

  std::unique_ptr<Compressor> inner_;
  DctBlocks blocks_;
  std::size_t saturated_ = 0;
  mutable FloatVector coefficients_;
};

Contract DctCompressor::contract(std::size_t elements) const {
  Contract contract = inner_->contract(elements);
  if (contract.meets(ContractKind::exact)) {
    contract = internal::unbiased_contract(kDctRounding * kDctRounding);
  }
  contract.floor_per_element += kDctFloor;
  return contract;
}

std::size_t DctCompressor::encode(std::span<const float> x, const RandomKey& key,
                                  std::span<std::byte> out) {
  coefficients_.resize(x.size());
  const auto transform = [&](std::size_t begin, std::size_t end) {
    std::size_t cut = 0;
    for (std::size_t i = begin; i < end; ++i) {
      cut += internal::transform(blocks_.block(i, x.size()), x, coefficients_);
    }
    return std::optional(cut);
  };
  const std::size_t cut = shares(x.size()).sum(transform).value_or(0);
  ByteWriter(out).write(InnerId{inner_->wire_id()});
  const std::size_t used = inner_->encode(coefficients_, key, out.subspan(sizeof(InnerId)));
  saturated_ = std::min(x.size(), cut + inner_->saturated());
  return sizeof(InnerId) + used;
}

Status DctCompressor::decode_add(std::span<const std::byte> bytes, float scale,
                                 std::span<float> y) const {
  ByteReader reader(bytes);
  const auto id = reader.read<InnerId>();
  if (reader.failed() || id != inner_->wire_id()) {
    return internal::malformed(fmt::format("dct: {} bytes of compressor {} where {} is due",
                                           bytes.size(), id, inner_->wire_id()));
  }
  coefficients_.assign(y.size(), 0.0F);
  if (Status status = inner_->decode_add(reader.take(reader.remaining()), 1, coefficients_);
      !status.ok()) {
    return status.with_context("dct");
  }
  shares(y.size()).each([&](std::size_t /*share*/, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      internal::add_inverse(blocks_.block(i, y.size()), coefficients_, scale, y);
    }
  });
  return {};
}

}  // namespace

std::unique_ptr<Compressor> make_dct(std::unique_ptr<Compressor> inner,
                                     const ParameterLayout& layout) {
  return std::make_unique<DctCompressor>(std::move(inner), DctBlocks(layout));
}

namespace {

std::unique_ptr<Compressor> build_dct(internal::SpecReader& spec, const internal::Wanted& wanted) {
  const auto inner = spec.take_inner();
  if (!inner || inner->empty()) {
    spec.reject("after '/'", "",
                "the compressor of the coefficients is missing; topk:0.03 would do");
  }
  if (internal::SpecReader(*inner).name() == spec.name()) {
    spec.reject("after '/'", *inner, "coefficients are not transformed again");
  }
  return make_dct(make_compressor(*inner, wanted.need, wanted.ops), wanted.layout);
}

}  // namespace

constinit const internal::Family internal::kDctFamily = {
    {"dct", "dct/SPEC", "another compressor, of the coefficients of cosine transforms in blocks",
     "SPEC's; elements from 2^-136 on", "dct/topk:0.03", kDctWireId},
    build_dct};

}  // namespace sotto
