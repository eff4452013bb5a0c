#include "idx.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "file.h"

namespace sotto {
namespace {

constexpr std::uint64_t kMostValues = std::uint64_t{1} << 30;
constexpr std::uint64_t kMostIdxBytes = std::uint64_t{8} << 30;
constexpr std::size_t kMostExtents = 3;

constexpr std::size_t header_bytes(std::size_t dimensions) { return 4 + 4 * dimensions; }

/// Bytes of a number; 0 for what is no type.
std::size_t bytes_of(IdxType type) {
  switch (type) {
    case IdxType::u8:
    case IdxType::i8:
      return 1;
    case IdxType::i16:
      return 2;
    case IdxType::i32:
    case IdxType::f32:
      return 4;
    case IdxType::f64:
      return 8;
  }
  return 0;
}

/// The bits that stand there, the most significant byte first.
std::uint64_t big_endian_at(std::string_view bytes, std::size_t at, std::size_t count) {
  std::uint64_t bits = 0;
  for (const char byte : bytes.substr(at, count)) {
    bits = bits << 8U | static_cast<std::uint8_t>(byte);
  }
  return bits;
}

/// Fills type and extents.
IdxArray read_header(Unpacker& in, const std::filesystem::path& path, std::size_t dimensions) {
  std::array<char, header_bytes(kMostExtents)> bytes{};
  const auto header = std::span(bytes).first(header_bytes(dimensions));
  if (const std::size_t got = in.read(header); got < header.size()) {
    refuse_file(path, fmt::format("byte {}", got),
                fmt::format("a header of {} bytes is expected; the file ends", header.size()));
  }
  const std::string_view text(header.data(), header.size());
  const std::uint64_t magic = big_endian_at(text, 0, 4);
  IdxArray array{.extents = {}, .type = static_cast<IdxType>(magic >> 8U & 0xFFU), .bytes = {}};
  if (magic >> 16U != 0 || (magic & 0xFFU) != dimensions || bytes_of(array.type) == 0) {
    refuse_file(path, "byte 0",
                fmt::format("IDX's magic number {:08x} is expected, or that of another type of "
                            "numbers; found {:08x}",
                            0x0800 + dimensions, magic));
  }
  for (std::size_t at = 4; at < header.size(); at += 4) {
    array.extents.push_back(big_endian_at(text, at, 4));
    if (array.extents.back() == 0) {
      refuse_file(path, fmt::format("byte {}", at), "an extent of 0");
    }
  }
  return array;
}

/// "60000 × 28 × 28"
std::string shape_of(const IdxArray& array) {
  return fmt::format("{}", fmt::join(array.extents, " × "));
}

}  // namespace

std::size_t IdxArray::size() const { return bytes.size() / bytes_of(type); }

double IdxArray::at(std::size_t index) const {
  const std::size_t width = bytes_of(type);
  const std::uint64_t bits = big_endian_at(bytes, index * width, width);
  switch (type) {
    case IdxType::u8:
      return static_cast<double>(bits);
    case IdxType::i8:
      return static_cast<std::int8_t>(bits);
    case IdxType::i16:
      return static_cast<std::int16_t>(bits);
    case IdxType::i32:
      return static_cast<std::int32_t>(bits);
    case IdxType::f32:
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case IdxType::f64:
      return std::bit_cast<double>(bits);
  }
  return 0;
}

std::size_t IdxArray::place_of(std::size_t index) const {
  return header_bytes(extents.size()) + index * bytes_of(type);
}

IdxFile::IdxFile(std::filesystem::path path, std::size_t dimensions)
    : path_(std::move(path)),
      content_(read_file(path_, kMostIdxBytes)),
      in_(content_, path_.string()),
      array_(read_header(in_, path_, dimensions)) {
  const std::size_t width = bytes_of(array_.type);
  std::uint64_t count = 1;
  for (const std::size_t extent : array_.extents) {
    // Both factors are below 2^32, so the product does not wrap.
    count *= extent;
    if (count > kMostValues || count * width > in_.capacity()) {
      refuse_file(path_, "byte 4",
                  fmt::format("{} values are announced; {}", shape_of(array_),
                              count > kMostValues ? fmt::format("{} is the limit", kMostValues)
                                                  : "the file is too small to hold them"));
    }
  }
}

IdxArray IdxFile::read() {
  const std::size_t width = bytes_of(array_.type);
  const std::size_t header = header_bytes(array_.extents.size());
  const std::size_t count = std::accumulate(array_.extents.begin(), array_.extents.end(),
                                            std::size_t{1}, std::multiplies<>());
  array_.bytes.resize(count * width);
  if (const std::size_t got = in_.read(array_.bytes); got < array_.bytes.size()) {
    refuse_file(path_, fmt::format("byte {}", header + got),
                fmt::format("{} values are announced; the file ends after {}", shape_of(array_),
                            got / width));
  }
  if (std::array<char, 1> more{}; in_.read(more) != 0) {
    refuse_file(path_, fmt::format("byte {}", in_.place_of(header + array_.bytes.size())),
                fmt::format("the file goes on behind the {} values announced", shape_of(array_)));
  }
  return std::move(array_);
}

IdxArray read_idx(const std::filesystem::path& path, std::size_t dimensions) {
  return IdxFile(path, dimensions).read();
}

}  // namespace sotto
