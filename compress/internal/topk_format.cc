#include "topk_format.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include <sotto/base/bytes.h>

#include "payload.h"

namespace sotto::internal {
namespace {

constexpr std::size_t kTopkHeaderBytes = sizeof(std::uint32_t) + sizeof(std::uint8_t);

}  // namespace

std::size_t topk_max_bytes(std::size_t k, std::size_t elements) {
  const int p = rice_parameter(k, elements);
  return kTopkHeaderBytes + k * sizeof(float) + (rice_bits_bound(k, elements, p) + 7) / 8;
}

std::size_t write_topk(std::span<const std::uint32_t> indices, std::span<const float> values,
                       std::size_t elements, std::span<std::byte> out) {
  const int p = rice_parameter(indices.size(), elements);
  ByteWriter writer(out);
  writer.write(static_cast<std::uint32_t>(indices.size()));
  writer.write(static_cast<std::uint8_t>(p));
  writer.write_bytes(std::as_bytes(values));
  RiceWriter gaps(out.subspan(writer.position()), p);
  gaps.write(indices);
  return writer.position() + gaps.finish();
}

Result<TopkPayload> read_topk(std::span<const std::byte> bytes, std::size_t k,
                              std::size_t elements) {
  ByteReader reader(bytes);
  const auto stated = reader.read<std::uint32_t>();
  const auto p = reader.read<std::uint8_t>();
  TopkPayload payload;
  payload.values = reader.take(k * sizeof(float));
  payload.p = p;
  payload.elements = elements;
  if (reader.failed() || stated != k || p > kMostRiceParameter) {
    return malformed(
        fmt::format("topk: {} bytes with k = {}, p = {} where k = {} of {} elements are due",
                    bytes.size(), stated, p, k, elements));
  }
  payload.coded = reader.take(reader.remaining());
  RiceReader judge = payload.indices();
  std::array<std::uint32_t, 256> room{};
  for (std::size_t first = 0; first < k; first += room.size()) {
    const auto batch = std::span(room).first(std::min(room.size(), k - first));
    if (const std::size_t read = judge.read(batch); read < batch.size()) {
      return malformed(fmt::format("topk: index {} of {} is not below {} or is cut off",
                                   first + read, k, elements));
    }
  }
  for (std::size_t i = 0; i < k; ++i) {
    if (!std::isfinite(load<float>(payload.values, i))) {
      return non_finite(fmt::format("topk: value {} of {} is not finite", i, k));
    }
  }
  if (!judge.finished()) {
    return malformed("topk: something follows the last index");
  }
  return payload;
}

}  // namespace sotto::internal
