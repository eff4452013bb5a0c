// The operations and codecs of the fake device: those of the host, put on a stream.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "accelerator/fake_stream.h"

#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/compress/cuda/codec.h>
#include <sotto/compress/registry.h>
#include <sotto/kernels/cuda/ops.h>

namespace sotto::cuda {
namespace {

using test::fake_cuda::put;
using test::fake_cuda::used;

const Ops& ops() { return reference_ops(); }

}  // namespace

void fill(float value, std::span<float> y, Stream stream) {
  put(stream, [value, y = used(y)] { ops().fill(value, y); });
}
void copy(std::span<const float> x, std::span<float> y, Stream stream) {
  put(stream, [x = used(x), y = used(y)] { ops().copy(x, y); });
}
void scale(float a, std::span<float> y, Stream stream) {
  put(stream, [a, y = used(y)] { ops().scale(a, y); });
}
void axpy(float a, std::span<const float> x, std::span<float> y, Stream stream) {
  put(stream, [a, x = used(x), y = used(y)] { ops().axpy(a, x, y); });
}
void combine(std::span<const Summand> summands, std::span<float> out, std::uint32_t* not_finite,
             Stream stream) {
  std::vector<Summand> here(summands.begin(), summands.end());
  for (Summand& summand : here) {
    summand.x = used(summand.x);
  }
  put(stream, [here = std::move(here), out = used(out), not_finite = used(not_finite)] {
    *not_finite = ops().combine(here, out) ? 0 : 1;
  });
}
void subtract(std::span<const float> x, std::span<const float> y, std::span<float> out,
              Stream stream) {
  put(stream, [x = used(x), y = used(y), out = used(out)] { ops().subtract(x, y, out); });
}
void adam(std::span<const float> g, float beta1, float beta2, float step, float root_scale,
          float epsilon, std::span<float> m, std::span<float> v, std::span<float> out,
          Stream stream) {
  put(stream, [=, g = used(g), m = used(m), v = used(v), out = used(out)] {
    ops().adam(g, beta1, beta2, step, root_scale, epsilon, m, v, out);
  });
}

namespace {

/// A reduction, with all of its workspace used, as a device may.
template <typename T, typename Reduce>
void reduce(std::span<std::byte> work, std::size_t count, T* result, Stream stream,
            const Reduce& reduce) {
  check(work.size() >= reduction_workspace(count), "the workspace is large enough");
  put(stream, [work = used(work), result = used(result), reduce] {
    std::ranges::fill(work, std::byte{0xA5});
    *result = reduce();
  });
}

}  // namespace

std::size_t reduction_workspace(std::size_t count) { return 16 + count / 256 * 16; }
void sum(std::span<const float> x, std::span<std::byte> work, double* result, Stream stream) {
  reduce(work, x.size(), result, stream, [x = used(x)] { return ops().sum(x); });
}
void sum_abs(std::span<const float> x, std::span<std::byte> work, double* result, Stream stream) {
  reduce(work, x.size(), result, stream, [x = used(x)] { return ops().sum_abs(x); });
}
void sum_squares(std::span<const float> x, std::span<std::byte> work, double* result,
                 Stream stream) {
  reduce(work, x.size(), result, stream, [x = used(x)] { return ops().sum_squares(x); });
}
void dot(std::span<const float> x, std::span<const float> y, std::span<std::byte> work,
         double* result, Stream stream) {
  reduce(work, x.size(), result, stream, [x = used(x), y = used(y)] { return ops().dot(x, y); });
}
void min_max(std::span<const float> x, std::span<std::byte> work, MinMax* result, Stream stream) {
  reduce(work, x.size(), result, stream, [x = used(x)] { return ops().min_max(x); });
}
void count_non_finite(std::span<const float> x, std::span<std::byte> work, NonFinite* result,
                      Stream stream) {
  reduce(work, x.size(), result, stream, [x = used(x)] { return ops().count_non_finite(x); });
}
void fp32_non_finite(std::span<const std::byte> bits, std::span<std::byte> work, NonFinite* result,
                     Stream stream) {
  reduce(work, bits.size() / 4, result, stream,
         [x = used(bits)] { return ops().fp32_non_finite(x); });
}
void fp16_non_finite(std::span<const std::byte> bits, std::span<std::byte> work, NonFinite* result,
                     Stream stream) {
  reduce(work, bits.size() / 2, result, stream,
         [x = used(bits)] { return ops().fp16_non_finite(x); });
}
void bf16_non_finite(std::span<const std::byte> bits, std::span<std::byte> work, NonFinite* result,
                     Stream stream) {
  reduce(work, bits.size() / 2, result, stream,
         [x = used(bits)] { return ops().bf16_non_finite(x); });
}

void to_fp16(std::span<const float> x, std::span<std::byte> out, std::uint64_t* saturated,
             Stream stream) {
  put(stream, [x = used(x), out = used(out), saturated = used(saturated)] {
    *saturated = ops().to_fp16(x, out);
  });
}
void to_bf16(std::span<const float> x, std::span<std::byte> out, std::uint64_t* saturated,
             Stream stream) {
  put(stream, [x = used(x), out = used(out), saturated = used(saturated)] {
    *saturated = ops().to_bf16(x, out);
  });
}
void fp16_residual(std::span<float> v, std::span<std::byte> out, std::uint64_t* saturated,
                   Stream stream) {
  put(stream, [v = used(v), out = used(out), saturated = used(saturated)] {
    *saturated = ops().fp16_residual(v, out, {});
  });
}
void bf16_residual(std::span<float> v, std::span<std::byte> out, std::uint64_t* saturated,
                   Stream stream) {
  put(stream, [v = used(v), out = used(out), saturated = used(saturated)] {
    *saturated = ops().bf16_residual(v, out, {});
  });
}
void fp32_axpy(float a, std::span<const std::byte> bits, std::span<float> y, Stream stream) {
  put(stream, [a, bits = used(bits), y = used(y)] { ops().fp32_axpy(a, bits, y); });
}
void fp16_axpy(float a, std::span<const std::byte> bits, std::span<float> y, Stream stream) {
  put(stream, [a, bits = used(bits), y = used(y)] { ops().fp16_axpy(a, bits, y); });
}
void bf16_axpy(float a, std::span<const std::byte> bits, std::span<float> y, Stream stream) {
  put(stream, [a, bits = used(bits), y = used(y)] { ops().bf16_axpy(a, bits, y); });
}

void quantize_pack(std::span<const float> x, const Grid& grid, Rounding rounding,
                   const RandomKey& key, std::size_t first, std::span<std::byte> out,
                   std::uint64_t* saturated, Stream stream) {
  put(stream, [=, x = used(x), out = used(out), saturated = used(saturated)] {
    *saturated = ops().quantize_pack(x, grid, rounding, key, first, out);
  });
}
void quantize_residual(std::span<float> v, const Grid& grid, Rounding rounding,
                       const RandomKey& key, std::size_t first, std::span<std::byte> out,
                       Stream stream) {
  put(stream, [=, v = used(v), out = used(out)] {
    ops().quantize_residual(v, grid, rounding, key, first, out, {});
  });
}
void unpack_axpy(float a, std::span<const std::byte> codes, const Grid& grid, std::span<float> y,
                 Stream stream) {
  put(stream, [=, codes = used(codes), y = used(y)] { ops().unpack_axpy(a, codes, grid, y); });
}
void sign_pack(std::span<const float> x, std::span<std::byte> out, Stream stream) {
  put(stream, [x = used(x), out = used(out)] { ops().sign_pack(x, out); });
}
void sign_residual(std::span<float> v, float magnitude, std::span<std::byte> out, Stream stream) {
  put(stream,
      [magnitude, v = used(v), out = used(out)] { ops().sign_residual(v, magnitude, out, {}); });
}
void sign_axpy(float magnitude, std::span<const std::byte> signs, std::span<float> y,
               Stream stream) {
  put(stream,
      [magnitude, signs = used(signs), y = used(y)] { ops().sign_axpy(magnitude, signs, y); });
}

std::size_t top_k_workspace(std::size_t count) { return 1024 + count / 16; }
void top_k(std::span<const float> x, std::size_t k, std::span<std::byte> work, TopK* result,
           Stream stream) {
  check(work.size() >= top_k_workspace(x.size()), "the workspace is large enough");
  put(stream, [k, work = used(work), x = used(x), result = used(result)] {
    std::ranges::fill(work, std::byte{0xA5});
    *result = ops().top_k(x, k);
  });
}
void top_k_gather(std::span<const float> x, const TopK* top, std::span<std::byte> work,
                  std::span<std::uint32_t> indices, std::span<float> values, Stream stream) {
  check(work.size() >= top_k_workspace(x.size()), "the workspace is large enough");
  put(stream, [work = used(work), x = used(x), top = used(top), indices = used(indices),
               values = used(values)] {
    std::ranges::fill(work, std::byte{0xA5});
    ops().top_k_gather(x, *top, indices, values);
  });
}
void gather_above(std::span<const float> x, std::uint32_t threshold, std::span<std::byte> /*work*/,
                  std::span<std::uint32_t> indices, std::span<float> values, std::uint64_t* found,
                  Stream stream) {
  put(stream,
      [threshold, x = used(x), indices = used(indices), values = used(values),
       found = used(found)] { *found = ops().gather_above(x, threshold, indices, values); });
}

void scatter_axpy(float a, std::span<const std::uint32_t> indices, std::span<const float> values,
                  std::span<float> y, Stream stream) {
  put(stream, [a, indices = used(indices), values = used(values), y = used(y)] {
    for (std::size_t k = 0; k < indices.size(); ++k) {
      check(indices[k] < y.size(), "an index is one of an element");
      y[indices[k]] = y[indices[k]] + a * values[k];
    }
  });
}

struct Codec::Form {
  std::shared_ptr<Compressor> host;
};

Status Outcome::status() const {
  return fault == kSound ? Status() : Status(static_cast<Fault>(fault & 0xFFU), "as the host says");
}

Codec::Codec(std::string_view spec, ContractKind need) {
  std::shared_ptr<Compressor> host = make_compressor(spec, need, reference_ops());
  if (!has_codec(spec.substr(0, spec.find_first_of(":,")))) {
    throw Error("compressor: '" + std::string(spec) + "' is one of the host's");
  }
  spec_ = host->spec();
  wire_id_ = host->wire_id();
  form_ = std::make_unique<const Form>(Form{std::move(host)});
}
Codec::~Codec() = default;
Codec::Codec(Codec&&) noexcept = default;
Codec& Codec::operator=(Codec&&) noexcept = default;

std::size_t Codec::bytes(std::size_t elements) const { return form_->host->max_bytes(elements); }
std::size_t Codec::workspace(std::size_t elements) const { return elements / 8; }

void Codec::encode_residual(std::span<const float> x, std::span<float> e, const RandomKey& key,
                            std::span<std::byte> out, std::span<std::byte> work, Outcome* outcome,
                            Stream stream) const {
  check(x.empty(), "nobody adds here");
  check(work.size() >= workspace(e.size()), "the workspace is large enough");
  put(stream, [host = form_->host, key, e = used(e), out = used(out), outcome = used(outcome)] {
    *outcome = {};
    host->encode_residual(e, key, out);
    outcome->saturated = host->saturated();
  });
}

void Codec::encode(std::span<const float> x, const RandomKey& key, std::span<std::byte> out,
                   std::span<std::byte> work, Outcome* outcome, Stream stream) const {
  check(work.size() >= workspace(x.size()), "the workspace is large enough");
  put(stream, [host = form_->host, key, x = used(x), out = used(out), outcome = used(outcome)] {
    *outcome = {};
    host->encode(x, key, out);
    outcome->saturated = host->saturated();
  });
}

Status Codec::decode_add(std::span<const std::byte> bytes, float scale, std::span<float> y,
                         Outcome* outcome, Stream stream) const {
  put(stream,
      [host = form_->host, scale, bytes = used(bytes), y = used(y), outcome = used(outcome)] {
        *outcome = {};
        if (const Status status = host->decode_add(bytes, scale, y); !status.ok()) {
          outcome->fault = static_cast<std::uint64_t>(status.fault());
        }
      });
  return {};
}

}  // namespace sotto::cuda
