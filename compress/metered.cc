#include <sotto/compress/metered.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include <sotto/base/check.h>
#include <sotto/base/float_vector.h>
#include <sotto/kernels/norm.h>

namespace sotto {
namespace {

class MeteredCompressor final : public Compressor {
 public:
  MeteredCompressor(std::unique_ptr<Compressor> inner, std::shared_ptr<CompressionMeter> meter,
                    const Ops& ops)
      : inner_(std::move(inner)), meter_(std::move(meter)), ops_(ops) {}

  std::string spec() const override { return inner_->spec(); }
  std::uint16_t wire_id() const override { return inner_->wire_id(); }
  std::size_t max_bytes(std::size_t elements) const override { return inner_->max_bytes(elements); }
  Contract contract(std::size_t elements) const override { return inner_->contract(elements); }
  std::unique_ptr<Compressor> clone() const override {
    return make_metered(inner_->clone(), meter_, ops_);
  }
  bool divisible() const override { return inner_->divisible(); }
  const Compressor& undecorated() const override { return inner_->undecorated(); }
  void set_workers(std::shared_ptr<Workers> workers) override {
    Compressor::set_workers(workers);
    inner_->set_workers(std::move(workers));
  }

  std::size_t encode(std::span<const float> x, const RandomKey& key,
                     std::span<std::byte> out) override {
    const std::size_t bytes = inner_->encode(x, key, out);
    if (meter_->wants(key.round)) {
      residual_.assign(x.begin(), x.end());
      take(squared_norm(x, ops_), out.first(bytes), residual_);
    }
    return bytes;
  }
  Status decode_add(std::span<const std::byte> bytes, float scale,
                    std::span<float> y) const override {
    return inner_->decode_add(bytes, scale, y);
  }
  Status decode_sum(std::span<const Term> terms, std::span<float> scratch, const Visitor& visit,
                    std::size_t& refused) const override {
    return inner_->decode_sum(terms, scratch, visit, refused);
  }
  std::optional<std::size_t> encode_prepared(const Prepare& prepare, std::span<float> v,
                                             const RandomKey& key,
                                             std::span<std::byte> out) override {
    if (!meter_->wants(key.round)) {
      return inner_->encode_prepared(prepare, v, key, out);
    }
    if (!prepare.make(0, v)) {
      return std::nullopt;
    }
    const double signal = squared_norm(v, ops_);
    const std::size_t bytes = inner_->encode(v, key, out);
    take(signal, out.first(bytes), v);
    return finish_prepared(prepare, out.first(bytes));
  }
  std::size_t saturated() const override { return inner_->saturated(); }
  void save(ByteBuffer& out) const override { inner_->save(out); }
  Status load(ByteReader& in) override { return inner_->load(in); }

 private:
  /// v ← v − C(v)
  void take(double signal, std::span<const std::byte> encoding, std::span<float> v) {
    check(inner_->decode_add(encoding, -1, v).ok(), "an own encoding decodes");
    meter_->add({.signal = signal,
                 .error = squared_norm(v, ops_),
                 .bound = contract_bound(inner_->contract(v.size()), signal, v.size())});
  }

  std::unique_ptr<Compressor> inner_;
  std::shared_ptr<CompressionMeter> meter_;
  const Ops& ops_;
  FloatVector residual_;
};

}  // namespace

double contract_bound(const Contract& contract, double squared_norm, std::size_t elements) {
  const auto d = static_cast<double>(elements);
  double bound = std::numeric_limits<double>::infinity();
  if (contract.alpha < bound) {
    bound = contract.alpha * contract.alpha * squared_norm;
  }
  if (contract.absolute_per_element < std::numeric_limits<double>::infinity()) {
    bound = std::min(bound, d * contract.absolute_per_element * contract.absolute_per_element);
  }
  if (contract.delta > 0) {
    bound = std::min(bound, (1 - contract.delta) * squared_norm);
  }
  return bound + d * contract.floor_per_element * contract.floor_per_element;
}

bool CompressionMeter::take(Round round) {
  if (!taking_) {
    taking_ = true;
    round_ = round;
    last_ = CompressionSample();
  }
  if (round == round_) {
    return true;
  }
  from_ = kNever;
  return taking_ = false;
}

void CompressionMeter::add(const CompressionSample& sample) {
  last_->signal += sample.signal;
  last_->error += sample.error;
  last_->bound += sample.bound;
}

std::unique_ptr<Compressor> make_metered(std::unique_ptr<Compressor> inner,
                                         std::shared_ptr<CompressionMeter> meter, const Ops& ops) {
  return std::make_unique<MeteredCompressor>(std::move(inner), std::move(meter), ops);
}

}  // namespace sotto
