// The IDX format of MNIST: a big-endian header and an array of bytes, plain or gzip.
//
//   00 00 08 D | D extents of 4 bytes | the bytes, row-major
//
// Private to the loaders. Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace sotto {

/// An array of unsigned bytes with one to three extents.
struct IdxArray {
  std::vector<std::size_t> extents;
  std::vector<std::uint8_t> values;
};

/// Bytes in front of the values of an array with `dimensions` extents.
constexpr std::size_t idx_header_bytes(std::size_t dimensions) { return 4 + 4 * dimensions; }

/// Reads an array of `dimensions` extents. Throws Error for another magic number, an extent of 0,
/// more than 2^30 values or more than the file can hold, a damaged gzip stream, a file that ends
/// early, and one that goes on.
IdxArray read_idx(const std::filesystem::path& path, std::size_t dimensions);

}  // namespace sotto
