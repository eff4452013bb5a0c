// Packed files where zlib is not: they are refused, and others come as they are.
#include <sotto/base/error.h>
#include <sotto/base/unpacker.h>

namespace sotto {

Unpacked unpack(std::string bytes, const std::string& name, std::uint64_t /*max_bytes*/) {
  if (is_gzip(bytes)) {
    throw Error(name + ": it is gzip, which this build does not read");
  }
  return {.bytes = std::move(bytes), .members = 0};
}

}  // namespace sotto
