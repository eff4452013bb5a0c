#include "idx.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>
#include <new>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "file.h"

namespace sotto {
namespace {

constexpr std::uint64_t kMaxValues = std::uint64_t{1} << 30;
/// No deflate stream expands further: 258 bytes from one bit each for length and distance.
constexpr std::uint64_t kMaxExpansion = 1032;

/// A file's bytes, unpacked if it is gzip.
class GzipReader {
 public:
  explicit GzipReader(const std::filesystem::path& path)
      : path_(path), file_bytes_(regular_file_size(path)), file_(path, std::ios::binary) {
    if (!file_) {
      refuse_file(path_, "", "it cannot be opened");
    }
    refill();
    packed_ = starts_as_gzip();
    // 16 asks for gzip's header and trailer.
    if (packed_ && inflateInit2(&stream_, MAX_WBITS + 16) != Z_OK) {
      throw std::bad_alloc();
    }
  }
  ~GzipReader() {
    if (packed_) {
      inflateEnd(&stream_);
    }
  }
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  /// Fills as much of `out` as the file has; throws Error for a damaged stream and for one that is
  /// followed by anything else.
  std::size_t read(std::span<std::uint8_t> out) {
    const std::size_t filled = packed_ ? inflate_into(out) : copy_into(out);
    at_ += filled;
    return filled;
  }

  /// The most bytes that the file can hold, unpacked.
  std::uint64_t capacity() const { return packed_ ? file_bytes_ * kMaxExpansion : file_bytes_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  static constexpr std::size_t kChunk = std::size_t{1} << 16;

  bool starts_as_gzip() const {
    return stream_.avail_in >= 2 && stream_.next_in[0] == 0x1F && stream_.next_in[1] == 0x8B;
  }

  /// Reads on when no input is left; false at the end of the file.
  bool refill() {
    if (stream_.avail_in > 0) {
      return true;
    }
    file_.read(reinterpret_cast<char*>(input_.data()), static_cast<std::streamsize>(kChunk));
    const auto got = static_cast<std::size_t>(file_.gcount());
    if (file_.bad()) {
      refuse_file(path_, fmt::format("byte {}", taken_), "it cannot be read");
    }
    taken_ += got;
    stream_.next_in = input_.data();
    stream_.avail_in = static_cast<unsigned>(got);
    return got > 0;
  }

  std::size_t copy_into(std::span<std::uint8_t> out) {
    std::size_t filled = 0;
    while (filled < out.size() && refill()) {
      const auto part = std::min<std::size_t>(out.size() - filled, stream_.avail_in);
      std::copy_n(stream_.next_in, part, out.data() + filled);
      stream_.next_in += part;
      stream_.avail_in -= static_cast<unsigned>(part);
      filled += part;
    }
    return filled;
  }

  std::size_t inflate_into(std::span<std::uint8_t> out) {
    std::size_t filled = 0;
    while (filled < out.size() && !ended_) {
      if (!refill()) {
        refuse_file(path_, fmt::format("byte {}", at_ + filled),
                    "damaged gzip data: the file ends too early");
      }
      const auto room = std::min(out.size() - filled, std::size_t{1} << 20);
      stream_.next_out = out.data() + filled;
      stream_.avail_out = static_cast<unsigned>(room);
      const int code = inflate(&stream_, Z_NO_FLUSH);
      filled += room - stream_.avail_out;
      if (code == Z_STREAM_END) {
        end_member();
      } else if (code != Z_OK) {
        refuse_file(path_, fmt::format("byte {}", at_ + filled),
                    fmt::format("damaged gzip data: {}",
                                stream_.msg == nullptr ? zError(code) : stream_.msg));
      }
    }
    return filled;
  }

  /// Behind a gzip member comes the end of the file. (RFC 1952 allows further members; no IDX file
  /// has them.)
  void end_member() {
    ended_ = true;
    if (refill()) {
      refuse_file(path_, fmt::format("byte {}", taken_ - stream_.avail_in),
                  "the file goes on behind the end of its gzip data");
    }
  }

  std::filesystem::path path_;
  std::uint64_t file_bytes_;
  std::ifstream file_;
  std::vector<std::uint8_t> input_ = std::vector<std::uint8_t>(kChunk);
  z_stream stream_{};        // the input not yet used, packed or not
  std::uint64_t taken_ = 0;  // bytes read from the file
  std::uint64_t at_ = 0;     // unpacked bytes handed out
  bool packed_ = false;
  bool ended_ = false;  // the gzip member is complete
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
