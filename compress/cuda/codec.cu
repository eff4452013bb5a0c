#include <sotto/compress/cuda/codec.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include <sotto/base/check.h>
#include <sotto/compress/cuda/forms.h>
#include <sotto/compress/cuda/passes.h>
#include <sotto/compress/registry.h>
#include <sotto/kernels/cuda/launch.h>

namespace sotto::cuda {
namespace {

static_assert(kMostRoom == kMostBlockMemory);

template <typename Format>
__device__ void write_prefix(const Layout<Format>& layout, std::byte* out) {
  SOTTO_UNROLL
  for (std::uint32_t k = 0; k < kMostPrefix; ++k) {
    if (blockIdx.x == 0 && threadIdx.x == 0 && k < layout.prefix_size) {
      out[k] = layout.prefix[k];
    }
  }
}

template <typename Format>
__global__ void __launch_bounds__(kMostThreads)
    encode_kernel(Format format, Layout<Format> layout, EncodeTask task,
                  const typename Format::Scale* given) {
  write_prefix(layout, task.out);
  if (blockIdx.x < layout.tiles()) {
    encode_tile(DeviceBlock(), format, layout, task, given, blockIdx.x, block_memory());
  }
}

template <typename Format>
__global__ void __launch_bounds__(kMostThreads)
    measure_kernel(Format format, Layout<Format> layout, EncodeTask task,
                   typename Format::Part* parts) {
  measure_tile(DeviceBlock(), format, layout, task, parts, blockIdx.x, block_memory());
}

template <typename Format>
__global__ void settle_kernel(Format format, Layout<Format> layout, EncodeTask task,
                              const typename Format::Part* parts, typename Format::Scale* scales) {
  settle_chunk(format, layout, task, parts, scales, blockIdx.x);
}

template <typename Format>
__global__ void __launch_bounds__(kMostThreads)
    judge_chunks_kernel(Format format, Layout<Format> layout, const std::byte* bytes,
                        Outcome* outcome) {
  const std::size_t chunk = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  judge_chunk(format, layout, bytes, chunk, outcome);
}

template <typename Format>
__global__ void __launch_bounds__(kMostThreads)
    judge_tiles_kernel(Format format, Layout<Format> layout, const std::byte* bytes,
                       Outcome* outcome) {
  judge_tile(DeviceBlock(), format, layout, bytes, blockIdx.x, outcome, block_memory());
}

template <typename Format>
__global__ void __launch_bounds__(kMostThreads)
    decode_kernel(Format format, Layout<Format> layout, const std::byte* bytes, float scale,
                  float* y, const Outcome* outcome) {
  if (outcome->fault == Outcome::kSound) {
    decode_tile(DeviceBlock(), format, layout, bytes, scale, y, blockIdx.x, block_memory());
  }
}

/// Threads for tiles of `tile` elements: eight elements each, which one Philox block serves, and
/// two warps for two reduction blocks.
unsigned threads_for(std::uint32_t tile) {
  return std::clamp((tile / 8 + kWarp - 1) / kWarp * kWarp, 2 * kWarp, kMostThreads);
}

template <typename Format>
std::size_t scale_bytes(const Layout<Format>& layout) {
  return pieces_of(layout.chunks.count() * sizeof(typename Format::Scale), kVector) * kVector;
}

void begin(Outcome* outcome, Stream stream) {
  set_bytes(&outcome->fault, 0xFF, sizeof(outcome->fault), stream);
  set_bytes(&outcome->saturated, 0, sizeof(outcome->saturated), stream);
}

template <typename Format>
void encode_form(const Format& format, const Layout<Format>& layout, EncodeTask task,
                 std::span<std::byte> work, Stream stream) {
  const std::uint32_t room = encode_room(format, layout.tile);
  const unsigned tiles = launch_blocks(std::max<std::size_t>(layout.tiles(), 1));
  typename Format::Scale* scales = nullptr;
  if constexpr (Format::kMeasured) {
    if (!layout.whole()) {
      scales = reinterpret_cast<typename Format::Scale*>(work.data());
      auto* parts = reinterpret_cast<typename Format::Part*>(work.data() + scale_bytes(layout));
      measure_kernel<<<tiles, threads_for(layout.tile), room, stream>>>(format, layout, task,
                                                                        parts);
      if (task.residual != nullptr) {
        task.from = task.residual;
        task.more = nullptr;
      }
      settle_kernel<<<launch_blocks(layout.chunks.count()), 1, 0, stream>>>(format, layout, task,
                                                                            parts, scales);
    }
  }
  encode_kernel<<<tiles, threads_for(layout.tile), room, stream>>>(format, layout, task, scales);
}

template <typename Format>
void decode_form(const Format& format, const Layout<Format>& layout, const std::byte* bytes,
                 float scale, float* y, Outcome* outcome, Stream stream) {
  const auto coder = format.coder(typename Format::Scale{});
  const std::uint32_t room = tile_room_bytes(coder, layout.tile, false);
  const unsigned threads = threads_for(layout.tile);
  const unsigned tiles = launch_blocks(std::max<std::size_t>(layout.tiles(), 1));
  if constexpr (requires { coder.finite(0U); }) {
    if (layout.tiles() > 0) {
      judge_tiles_kernel<<<tiles, threads, room, stream>>>(format, layout, bytes, outcome);
    }
  } else {
    const std::size_t chunks = std::max<std::size_t>(layout.chunks.count(), 1);
    judge_chunks_kernel<<<launch_blocks(pieces_of(chunks, kMostThreads)), kMostThreads, 0,
                          stream>>>(format, layout, bytes, outcome);
  }
  if (layout.tiles() > 0) {
    decode_kernel<<<tiles, threads, room, stream>>>(format, layout, bytes, scale, y, outcome);
  }
}

}  // namespace

struct Codec::Form {
  ChosenForm chosen;

  void encode(const EncodeTask& task, std::size_t elements, std::span<std::byte> work,
              Stream stream) const {
    begin(task.outcome, stream);
    std::visit(
        [&](const auto& format) {
          encode_form(format, layout_of(chosen, format, elements), task, work, stream);
        },
        chosen.format);
  }
};

Status Outcome::status() const {
  if (fault == kSound) {
    return {};
  }
  const auto kind = static_cast<Fault>(fault & 0xFFU);
  const std::string place = std::to_string(fault >> 8U);
  return {kind, kind == Fault::non_finite
                    ? "a value is not finite, first in element or chunk " + place
                    : "the encoding breaks its format, first in chunk " + place};
}

Codec::Codec(std::string_view spec, ContractKind need) {
  const auto host = make_compressor(spec, need);
  spec_ = host->spec();
  wire_id_ = host->wire_id();
  form_ = std::make_unique<const Form>(Form{choose_form(spec_)});
}

Codec::~Codec() = default;
Codec::Codec(Codec&&) noexcept = default;
Codec& Codec::operator=(Codec&&) noexcept = default;

std::size_t Codec::bytes(std::size_t elements) const {
  return std::visit(
      [&](const auto& format) {
        const auto layout = layout_of(form_->chosen, format, elements);
        using Coder = typename std::decay_t<decltype(format)>::Coder;
        const std::size_t codes = layout.scale_at(layout.chunks.count());
        return codes +
               (Coder::kBytes == 1 ? layout.chunks.total_code_bytes() : elements * Coder::kBytes);
      },
      form_->chosen.format);
}

std::size_t Codec::workspace(std::size_t elements) const {
  return std::visit(
      [&](const auto& format) -> std::size_t {
        using Format = std::decay_t<decltype(format)>;
        const auto layout = layout_of(form_->chosen, format, elements);
        if (!Format::kMeasured || layout.whole()) {
          return 0;
        }
        return scale_bytes(layout) + layout.tiles() * sizeof(typename Format::Part);
      },
      form_->chosen.format);
}

void Codec::encode_residual(std::span<const float> x, std::span<float> e, const RandomKey& key,
                            std::span<std::byte> out, std::span<std::byte> work, Outcome* outcome,
                            Stream stream) const {
  check(x.empty() || x.size() == e.size(), "encode_residual: lengths differ");
  check(out.size() == bytes(e.size()), "encode_residual: wrong output length");
  check(work.size() >= workspace(e.size()), "encode_residual: the workspace is too small");
  const float* more = x.empty() ? nullptr : x.data();
  form_->encode({e.data(), more, e.data(), key, out.data(), outcome}, e.size(), work, stream);
}

void Codec::encode(std::span<const float> x, const RandomKey& key, std::span<std::byte> out,
                   std::span<std::byte> work, Outcome* outcome, Stream stream) const {
  check(out.size() == bytes(x.size()), "encode: wrong output length");
  check(work.size() >= workspace(x.size()), "encode: the workspace is too small");
  form_->encode({x.data(), nullptr, nullptr, key, out.data(), outcome}, x.size(), work, stream);
}

Status Codec::decode_add(std::span<const std::byte> bytes, float scale, std::span<float> y,
                         Outcome* outcome, Stream stream) const {
  if (bytes.size() != this->bytes(y.size())) {
    return {Fault::malformed, spec_ + ": an encoding of " + std::to_string(bytes.size()) +
                                  " bytes where " + std::to_string(this->bytes(y.size())) +
                                  " are due"};
  }
  begin(outcome, stream);
  std::visit(
      [&](const auto& format) {
        decode_form(format, layout_of(form_->chosen, format, y.size()), bytes.data(), scale,
                    y.data(), outcome, stream);
      },
      form_->chosen.format);
  return {};
}

}  // namespace sotto::cuda
