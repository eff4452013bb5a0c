// The IDX format of MNIST: a big-endian header and an array of numbers, plain or gzip.
//
//   00 00 TYPE D | D extents of 4 bytes | the numbers, row-major
//
// TYPE: 08 unsigned bytes, 09 signed bytes, 0B and 0C integers of 16 and 32 bits, 0D and 0E
// floating point of 32 and 64 bits. Private to the loaders. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <sotto/base/unpacker.h>

namespace sotto {

/// The type of the numbers in an IDX file; the values are the format's.
enum class IdxType : std::uint8_t {
  u8 = 0x08,
  i8 = 0x09,
  i16 = 0x0B,
  i32 = 0x0C,
  f32 = 0x0D,
  f64 = 0x0E,
};

/// An array of numbers with one to three extents.
struct IdxArray {
  std::vector<std::size_t> extents;
  IdxType type = IdxType::u8;
  std::string bytes;  ///< bytes of the numbers, as they stand in the file

  std::size_t size() const;
  double at(std::size_t index) const;
  /// The offset of a number in the unpacked file.
  std::size_t place_of(std::size_t index) const;
};

/// A file with its header read, and with its numbers not unpacked yet.
class IdxFile {
 public:
  /// Expects an array of `dimensions` extents. Throws Error for another magic number, an extent of
  /// 0, and more than 2^30 values or more than the file can hold.
  IdxFile(std::filesystem::path path, std::size_t dimensions);

  const std::filesystem::path& path() const { return path_; }
  const std::vector<std::size_t>& extents() const { return array_.extents; }

  /// Unpacks the numbers; to be called once. Throws Error for a damaged gzip stream, a file that
  /// ends early, and one that goes on.
  IdxArray read();

 private:
  std::filesystem::path path_;
  std::string content_;
  Unpacker in_;
  IdxArray array_;  ///< the array, without its numbers until read()
};

/// The whole array of `dimensions` extents; throws Error as IdxFile does.
IdxArray read_idx(const std::filesystem::path& path, std::size_t dimensions);

}  // namespace sotto
