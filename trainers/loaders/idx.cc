#include "idx.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "file.h"

namespace sotto {
namespace {

constexpr std::uint64_t kMaxValues = std::uint64_t{1} << 30;
/// No deflate stream expands further: 258 bytes from one bit each for length and distance.
constexpr std::uint64_t kMaxExpansion = 1032;

struct CloseGzip {
  void operator()(gzFile file) const { gzclose(file); }
};

/// A file read through zlib, which passes plain files through as they are.
class GzipReader {
 public:
  explicit GzipReader(const std::filesystem::path& path)
      : path_(path), file_bytes_(regular_file_size(path)), file_(gzopen(path.c_str(), "rb")) {
    if (file_ == nullptr) {
      refuse_file(path_, "", "it cannot be opened");
    }
  }

  /// Fills as much of `out` as the file has; throws Error for a damaged stream.
  std::size_t read(std::span<std::uint8_t> out) {
    std::size_t filled = 0;
    while (filled < out.size()) {
      const auto want = static_cast<unsigned>(std::min(out.size() - filled, std::size_t{1} << 20));
      const int got = gzread(file_.get(), out.data() + filled, want);
      int code = Z_OK;
      const char* message = gzerror(file_.get(), &code);
      if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) {
        refuse_file(path_, fmt::format("byte {}", at_ + filled),
                    fmt::format("damaged gzip data: {}", message));
      }
      if (got == 0) {
        break;
      }
      filled += static_cast<std::size_t>(got);
    }
    at_ += filled;
    return filled;
  }

  /// The most bytes that the file can hold, unpacked. Known once something was read.
  std::uint64_t capacity() const {
    return gzdirect(file_.get()) != 0 ? file_bytes_ : file_bytes_ * kMaxExpansion;
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::uint64_t file_bytes_;
  std::unique_ptr<gzFile_s, CloseGzip> file_;
  std::uint64_t at_ = 0;  // unpacked bytes read so far
};

std::uint32_t big_endian(std::span<const std::uint8_t> four) {
  return std::uint32_t{four[0]} << 24 | std::uint32_t{four[1]} << 16 | std::uint32_t{four[2]} << 8 |
         std::uint32_t{four[3]};
}

std::vector<std::size_t> read_extents(GzipReader& in, std::size_t dimensions) {
  std::array<std::uint8_t, idx_header_bytes(3)> bytes{};
  const auto header = std::span(bytes).first(idx_header_bytes(dimensions));
  if (const std::size_t got = in.read(header); got < header.size()) {
    refuse_file(in.path(), fmt::format("byte {}", got),
                fmt::format("a header of {} bytes is expected; the file ends", header.size()));
  }
  constexpr std::uint32_t kUnsignedBytes = 0x0800;
  const auto expected = kUnsignedBytes + static_cast<std::uint32_t>(dimensions);
  if (const std::uint32_t magic = big_endian(header); magic != expected) {
    refuse_file(
        in.path(), "byte 0",
        fmt::format("IDX's magic number {:08x} is expected; found {:08x}", expected, magic));
  }
  std::vector<std::size_t> extents;
  for (std::size_t at = 4; at < header.size(); at += 4) {
    extents.push_back(big_endian(header.subspan(at)));
    if (extents.back() == 0) {
      refuse_file(in.path(), fmt::format("byte {}", at), "an extent of 0");
    }
  }
  return extents;
}

}  // namespace

IdxArray read_idx(const std::filesystem::path& path, std::size_t dimensions) {
  GzipReader in(path);
  IdxArray array{.extents = read_extents(in, dimensions), .values = {}};
  const std::string shape = fmt::format("{}", fmt::join(array.extents, " × "));
  std::uint64_t count = 1;
  for (const std::size_t extent : array.extents) {
    // Both factors are below 2^32, so the product does not wrap.
    count *= extent;
    if (count > kMaxValues || count > in.capacity()) {
      refuse_file(path, "byte 4",
                  fmt::format("{} values are announced; {}", shape,
                              count > kMaxValues ? fmt::format("{} is the limit", kMaxValues)
                                                 : "the file is too small to hold them"));
    }
  }
  array.values.resize(count);
  const std::size_t header = idx_header_bytes(dimensions);
  if (const std::size_t got = in.read(array.values); got < count) {
    refuse_file(path, fmt::format("byte {}", header + got),
                fmt::format("{} values are announced; the file ends after {}", shape, got));
  }
  if (std::array<std::uint8_t, 1> more{}; in.read(more) != 0) {
    refuse_file(path, fmt::format("byte {}", header + count),
                fmt::format("the file goes on behind the {} values announced", shape));
  }
  return array;
}

}  // namespace sotto
